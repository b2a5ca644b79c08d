//! The list of systems: one line each. This is all that the command line knows of them.

use analysis::LedgerCheck;
use model::Row;
use model::facts::LedgerEntry;
use sut::{Adapter, Check, CheckState};

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

/// The checks of a system's ledger, in the form that the analysis takes.
pub fn ledger_checks(kind: &str) -> Vec<Box<dyn LedgerCheck>> {
    let checks = adapter(kind).map_or(&[][..], |adapter| adapter.checks);
    let running = |check: &Check| -> Box<dyn LedgerCheck> {
        Box::new(Running { name: check.name, state: (check.start)() })
    };
    checks.iter().map(running).collect()
}

/// A check of the contract, as the analysis sees it.
struct Running {
    name: &'static str,
    state: Box<dyn CheckState>,
}

impl LedgerCheck for Running {
    fn row(&mut self, row: &Row) {
        self.state.row(row);
    }

    fn entry(&mut self, entry: &LedgerEntry) {
        self.state.entry(entry);
    }

    fn finish(self: Box<Self>) -> (String, Result<String, String>) {
        (self.name.to_owned(), self.state.finish())
    }
}
