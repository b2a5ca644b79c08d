//! JSON-RPC as bytes: what a call is, what came for it, and whose failure a failure is. No sockets and no time.

mod call;
mod reply;

pub use call::{Answer, Call, Failure};
pub use reply::{Reply, Stated, read};
