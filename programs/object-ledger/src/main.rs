//! The ledger's services and its client as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    object_ledger_node::run(std::env::args().skip(1).collect())
}
