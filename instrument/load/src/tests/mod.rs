//! Whole trials against a server in this process, each with both drivers.

mod answers;
mod calls;
mod failures;
mod shapes;
mod toy;
mod transports;
