//! The rules of the protocol, one by one, by dialogue with replicas that stand on a network and disks of the test's own.

mod bounds;
mod codec;
mod group;
mod lagging;
mod leading;
mod members;
mod recovery;
mod voting;
