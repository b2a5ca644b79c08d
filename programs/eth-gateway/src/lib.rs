//! A gateway in front of an Ethereum node: a REST API over the node's JSON-RPC.
//!
//! It reads and never writes. What it knows of a chain it has from the node that it was given; it must never invent an
//! answer, and it says whose failure a failure is.

mod fuzz;
pub mod json;
pub mod quantity;
pub mod routes;
pub mod rpc;

#[cfg(feature = "server")]
mod answers;
#[cfg(feature = "server")]
mod cache;
#[cfg(feature = "server")]
mod cors;
#[cfg(feature = "server")]
mod gateway;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(feature = "server")]
mod log;
#[cfg(feature = "server")]
mod metrics;
#[cfg(feature = "server")]
mod mock;
#[cfg(feature = "server")]
mod openapi;
#[cfg(feature = "server")]
mod options;
#[cfg(feature = "server")]
mod program;
#[cfg(feature = "server")]
mod server;
#[cfg(feature = "server")]
mod signed;
#[cfg(feature = "server")]
mod swagger;
#[cfg(feature = "server")]
mod tls;
#[cfg(feature = "server")]
mod upstream;

pub use fuzz::fuzz_gateway;
#[cfg(feature = "server")]
pub use program::run;
