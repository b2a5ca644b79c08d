//! The canary: a server whose theory is known, which keeps a ledger of what it took, and lies on request.
//!
//! The way of a transaction, file by file: `protocol` or `http_face` reads it, `clients` says whether it is its turn, `limiter` and `queue`
//! whether and when it is served, `node` keeps it until then, `ledger` stores it or `registers` are read, and `faults` spoils any of this.
//! Everything but [`serve`] runs in virtual time. The node knows of no instrument: it never says in an answer
//! that it lies, and writes it down only where `--confess` tells it to.

mod bytes;
mod clients;
mod command_line;
mod commits;
mod confession;
pub mod events;
mod faults;
mod fuzz;
mod http_face;
pub mod ledger;
mod limiter;
mod metrics;
mod node;
mod options;
pub mod protocol;
mod queue;
mod registers;
mod serve;
#[cfg(test)]
mod tests;

pub use confession::Confession;
pub use faults::{Faults, Lie, Slow, Window};
pub use fuzz::fuzz_frames;
pub use limiter::Limit;
pub use node::{EchoNode, FRAMES_LISTENER, HTTP_LISTENER};
pub use options::{CommitWay, Options};
pub use queue::Distribution;
pub use serve::serve;
