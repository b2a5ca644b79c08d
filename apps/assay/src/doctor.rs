//! `assay doctor`: what the instrument reaches on this host, what the host says of itself, and which peers and
//! real systems are installed; `--install` brings one, pinned, into the cache folder.

use std::path::Path;

use clock::Clock;
use model::facts::{Calibration, Environment};
use model::quantity::show_ns;
use model::result::Exit;

use crate::cli::DoctorArguments;
use crate::terminal;
use crate::terminal::say;

/// Prints the data sheet, or installs a program.
pub fn doctor(arguments: &DoctorArguments) -> Exit {
    let done = match &arguments.install {
        Some(name) => install(name, arguments.checkout.as_deref()),
        None => sheet(arguments.json),
    };
    match done {
        Ok(()) => Exit::Ok,
        Err(message) => {
            say!("assay doctor: {message}");
            Exit::CouldNotRun
        }
    }
}

fn install(name: &str, checkout: Option<&Path>) -> Result<(), String> {
    let path = testbed::install::install(name, checkout, &mut |line| say!("{line}"))
        .map_err(|e| e.to_string())?;
    terminal::print(&format!("{}\n", path.display()))
}

fn sheet(json: bool) -> Result<(), String> {
    let environment = testbed::environment(Vec::new(), crate::cli::VERSION.to_owned());
    let calibration = load::calibrate(Clock::start()).map_err(|error| error.to_string())?;
    if json {
        let document = serde_json::json!({
            "schema": "assay.doctor/1",
            "environment": environment,
            "calibration": calibration,
        });
        return terminal::print(&format!("{document:#}\n"));
    }
    terminal::print(&text(&environment, &calibration))
}

fn text(environment: &Environment, calibration: &Calibration) -> String {
    let mut text = format!(
        "assay {}\n\nhost         {}, {} processors, {} GiB, {} {}\n",
        environment.assay,
        environment.cpu,
        environment.cpus,
        environment.memory_bytes >> 30,
        environment.os,
        environment.kernel
    );
    for (ok, finding) in testbed::host_findings(environment, 1_000) {
        text.push_str(&format!("             {} {finding}\n", if ok { "✓" } else { "!" }));
    }
    text.push_str(&format!(
        "\ninstrument   against a target in this process that does nothing, over loopback\n\
         \x20            largest rate      {:.0}/s with one engine thread, closed loop\n\
         \x20            cost              {} of processor time a request\n\
         \x20            latency floor     {} (p50, one connection)\n\
         \x20            pacing            own lag p99 {}\n\nprograms\n",
        calibration.rate_max,
        show_ns(round(calibration.cpu_ns_per_request)),
        show_ns(calibration.floor_p50_ns),
        show_ns(calibration.lag_p99_ns)
    ));
    let programs = testbed::install::list();
    let name = programs.iter().map(|status| status.name.len()).max().unwrap_or(0);
    for status in programs {
        let found = status.path.map_or_else(|| "–".to_owned(), |path| path.display().to_string());
        text.push_str(&format!("  {:<name$}  {found}\n", status.name));
    }
    text.push_str("\nassay doctor --install NAME brings one of them.\nA node that is a program of its own is built from the checkout: assay doctor --install NAME-node (or as its system's page calls it).\n");
    text
}

#[expect(clippy::cast_possible_truncation, reason = "nanoseconds of processor time for a request")]
fn round(ns: f64) -> i64 {
    ns.round() as i64
}
