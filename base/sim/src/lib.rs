//! Nodes in virtual time: a network that delays, cuts and partitions, disks that lose what was not synced and
//! tear what was being written, processes that are killed, lose their power or stand still at any step. All of
//! it from one seed: the same seed gives the same run, to the byte.
//!
//! A [`World`] holds processes; a process is one or more machines ([`process::Node`]), joined by queues, and a
//! disk. The same nodes run on real sockets and disks in [`process::shell`]. What went wrong is drawn by
//! [`Weather`], what happened is counted in [`Coverage`], and an invariant is looked at after every step.
//!
//! Connections behave as TCP does: bytes arrive in order, in pieces of any size, late or never; a process that
//! is killed resets its connections, one that loses its power says nothing. Messages are neither repeated nor
//! reordered within a connection; over several connections they are, because each has delays of its own.

mod command;
mod coverage;
mod disk;
mod files;
mod network;
mod random;
mod trace;
mod weather;
mod world;

pub use command::{Command, Ran, first_wrong, kept_seeds};
pub use coverage::Coverage;
pub use disk::DiskTimes;
pub use files::TornFiles;
pub use network::Delays;
pub use random::Random;
pub use weather::{Fault, Weather};
pub use world::{Machine, Process, Settings, Start, Target, World, Wrong};
