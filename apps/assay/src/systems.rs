//! The list of systems: one line each. This is all that the command line knows of them.

use sut::Adapter;

/// Every adapter, in alphabetical order.
pub const ADAPTERS: &[Adapter] = &[
    echo_adapter::ADAPTER,
    http_adapter::ADAPTER,
    // new-system: above this line
];

/// Every stage name of any adapter's ladder: what a threshold may name before the system is built.
pub const STAGES: &[&str] = &["accepted", "committed", "verified"];

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

/// The checks of a system's ledger, in the form that the analysis takes.
pub fn ledger_checks(kind: &str) -> Vec<Box<dyn analysis::LedgerCheck>> {
    // Which checks a system has does not depend on its options; the list stands in its adapter.
    let _ = kind;
    Vec::new()
}
