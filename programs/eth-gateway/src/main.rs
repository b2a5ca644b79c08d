//! The gateway as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    eth_gateway_node::run(std::env::args().skip(1).collect())
}
