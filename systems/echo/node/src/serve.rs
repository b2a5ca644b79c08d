//! `assay serve echo`: the server for real. The only place of the node that touches the system.

use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

use clock::Clock;
use process::shell::{Bounds, Facts, Shell, Until, listen_address};

use crate::command_line::{self, Command};
use crate::confession::Confession;
use crate::events::Events;
use crate::ledger::Ledger;
use crate::node::EchoNode;

/// Most bytes held of requests that are not served yet, and of answers that clients do not read, over all connections.
const HELD_BYTES_MAX: usize = 128 << 20;

/// Runs the server until it is told to end. `words` is what stands behind `assay serve echo`.
#[must_use]
pub fn serve(words: &[String]) -> ExitCode {
    let command = match command_line::parse(words) {
        Ok(command) => command,
        Err(why) => {
            eprintln!("assay serve echo: {why}");
            return ExitCode::from(2);
        }
    };
    if command.help {
        print!("{}", command_line::help());
        return ExitCode::SUCCESS;
    }
    match run(command) {
        Ok(facts) => {
            report(&facts);
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("assay serve echo: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<Facts, String> {
    let frames = listen_address(command.listen.as_deref().unwrap_or("0"))?;
    let http = command.http.as_deref().map(listen_address).transpose()?;
    let metrics = command.metrics.as_deref().map(listen_address).transpose()?;
    let is_again = command.again;
    let ledger = match &command.ledger {
        Some(path) => (if is_again { Ledger::go_on(path) } else { Ledger::create(path) })
            .map_err(|error| format!("making the ledger {}: {error}", path.display()))?,
        None => Ledger::nowhere(),
    };
    if let Some(path) = command.ledger.as_deref().filter(|_| command.options.syncs) {
        // A file whose name is not on the disk is not there after a loss of power, whatever was synced of it.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))
            .and_then(|folder| folder.sync_all())
            .map_err(|error| format!("syncing the folder of {}: {error}", path.display()))?;
    }
    let confession = match &command.confess {
        Some(path) => {
            (if is_again { Confession::go_on(path) } else { Confession::create(path) })
                .map_err(|error| format!("making the confession {}: {error}", path.display()))?
        }
        None => Confession::none(),
    };
    let clock = Clock::start();
    let events = match &command.events {
        Some(path) => Events::in_file(path, is_again, clock.origin_wall())
            .map_err(|error| format!("making the events {}: {error}", path.display()))?,
        None => Events::none(),
    };
    let mut listeners = vec![("frames", frames)];
    listeners.extend(http.map(|address| ("http", address)));
    let metrics_listener = metrics.map(|_| listeners.len());
    listeners.extend(metrics.map(|address| ("metrics", address)));
    // The theory that its service is held against is one of exact service times.
    let bounds = Bounds {
        unread_bytes_of_all_max: HELD_BYTES_MAX,
        unsent_bytes_of_all_max: HELD_BYTES_MAX,
        ..Bounds::default()
    };
    let mut shell =
        Shell::bind(&listeners, bounds).map_err(|error| error.to_string())?.waking_exactly();
    let until = Until::told(command.parent_pipe).map_err(|error| error.to_string())?;
    let mut node = EchoNode::new(command.options, ledger, confession, events);
    if let Some(listener) = metrics_listener {
        node = node.saying_metrics_at(listener);
        shell = shell.saying_metrics_at(listener);
    }
    shell.announce(&[]).map_err(|error| error.to_string())?;
    shell.run(&mut node, clock, &until).map_err(|error| error.to_string())
}

/// What a log should hold of it. It must not say what was lied about.
fn report(facts: &Facts) {
    let Facts { counters, lateness, ended_by, .. } = facts;
    eprintln!(
        "ended by {ended_by}; connections accepted {} refused {}; cut off: {} sent too much, {} did not read",
        counters.accepted, counters.refused, counters.unread_full, counters.unsent_full
    );
    if lateness.count() > 0 {
        eprintln!(
            "wake-ups {}, late by: p50 {} us, p99 {} us, max {} us",
            lateness.count(),
            lateness.us_at(500),
            lateness.us_at(990),
            lateness.ns_max / 1000
        );
    }
}
