//! The command line.

use std::process::ExitCode;

use crate::{audit, client, probe, services};

const HELP: &str = "\
A ledger on object stores.

object-ledger serve queue|timestamp|sequencer|pipeline|bucket|watcher|witness     run a service
object-ledger submit|verify|length|check|watchdog|ledger [OPTIONS]                use the ledger
object-ledger prove|proof|checkpoint|repair|rotate|resume [OPTIONS]               proofs, repair, keys (submit --help)
object-ledger audit [OPTIONS]                                                     read what the buckets hold
object-ledger probe                                                               be driven over inherited descriptors

Each says more with --help.
";

/// Does what the command line says.
#[must_use]
pub fn run(words: Vec<String>) -> ExitCode {
    let rest = || words.get(1..).unwrap_or_default();
    let done = match words.first().map(String::as_str) {
        None | Some("--help" | "-h" | "help") => {
            print!("{HELP}");
            Ok(())
        }
        Some("--version") => {
            println!("object-ledger {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Some("serve") => services::run(rest()),
        Some("probe") => probe::run(rest()),
        Some("audit") => audit::run(rest()),
        Some(command) => client::run(command, rest()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("object-ledger: {why}");
            ExitCode::FAILURE
        }
    }
}
