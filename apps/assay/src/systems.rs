//! The list of systems: one line each. This is all that the command line knows of them.

use sut::{Adapter, Check};

/// Every adapter, in alphabetical order.
pub const ADAPTERS: &[Adapter] = &[
    cometbft_adapter::ADAPTER,
    echo_adapter::ADAPTER,
    http_adapter::ADAPTER,
    // new-system: above this line
];

/// The adapter called `kind`.
pub fn adapter(kind: &str) -> Option<&'static Adapter> {
    ADAPTERS.iter().find(|adapter| adapter.kind == kind)
}

/// Runs a built-in system's node in this process (`assay serve …`).
pub fn serve(words: &[String]) -> std::process::ExitCode {
    match words.first().map(String::as_str) {
        Some("echo") => echo_node::serve(&words[1..]),
        Some(other) => {
            eprintln!("assay serve: there is no built-in system `{other}`; there is: echo");
            std::process::ExitCode::from(2)
        }
        None => unreachable!("the command line requires a system"),
    }
}

/// The checks that the system called `kind` brings.
pub fn checks(kind: &str) -> &'static [Check] {
    adapter(kind).map_or(&[], |adapter| adapter.checks)
}
