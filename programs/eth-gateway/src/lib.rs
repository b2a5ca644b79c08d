//! A gateway in front of an Ethereum node: a REST API over the node's JSON-RPC.
//!
//! It knows of a chain only what its node says; it must never invent an answer, never give one that no
//! head of the node's confirms, and it says whose failure a failure is.
// The schemas are one literal.
#![recursion_limit = "256"]

mod fuzz;
pub mod json;
pub mod quantity;
pub mod query;
pub mod routes;
pub mod rpc;

#[cfg(feature = "server")]
mod answers;
#[cfg(feature = "server")]
mod cache;
#[cfg(feature = "server")]
mod cors;
#[cfg(feature = "server")]
mod follower;
#[cfg(feature = "server")]
mod gateway;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(feature = "server")]
mod lifecycle;
#[cfg(feature = "server")]
mod log;
#[cfg(feature = "server")]
mod memory;
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
#[cfg(feature = "server")]
mod view;

pub use fuzz::fuzz_gateway;
#[cfg(feature = "server")]
pub use program::run;
