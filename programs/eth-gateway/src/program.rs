//! The command line: serve, play a node, or print the OpenAPI document.

use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use clock::Clock;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use crate::gateway::Gateway;
use crate::options::{Options, SETTINGS};
use crate::{mock, openapi, server};

/// Does what the command line says.
#[must_use]
pub fn run(words: Vec<String>) -> ExitCode {
    let done = match words.first().map(String::as_str) {
        Some("--help" | "-h" | "help") => print(&help()),
        Some("--version") => print(&format!("eth-gateway {}\n", env!("CARGO_PKG_VERSION"))),
        Some("openapi") => print(&format!("{}\n", openapi::document())),
        Some("mock") => mock::run(&words[1..]),
        Some("serve") => serve(&words[1..]),
        _ => serve(&words),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("eth-gateway: {why}");
            ExitCode::FAILURE
        }
    }
}

fn serve(words: &[String]) -> Result<(), String> {
    let options = Options::read(words)?;
    let runtime = runtime(options.threads)?;
    let gateway = Gateway::new(&options, Clock::start())?;
    runtime.block_on(async {
        let ends = ends()?;
        server::serve(&options, gateway, ready, ends).await
    })
}

/// Prints a text. Whoever reads it may have had enough of it (`| head`): that is no failure; a full disk is one.
pub fn print(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("writing to standard output: {error}"))
        }
        _ => Ok(()),
    }
}

/// Says that requests are served, to who reads the output.
pub fn ready(addresses: &str) {
    let mut out = std::io::stdout().lock();
    // Who has closed the output does not wait for the line.
    let _ = writeln!(out, "ready {addresses}").and_then(|()| out.flush());
}

/// Ready when the program is asked to end.
pub fn ends() -> Result<impl Future<Output = ()>, String> {
    let failed = |error| format!("waiting for signals: {error}");
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    Ok(async move {
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
    })
}

/// The runtime; with 0 threads, one for each processor.
pub fn runtime(threads: usize) -> Result<Runtime, String> {
    let mut builder = Builder::new_multi_thread();
    if threads > 0 {
        builder.worker_threads(threads);
    }
    builder.enable_all().build().map_err(|error| format!("starting threads: {error}"))
}

fn help() -> String {
    let mut text = String::from(
        "A REST API in front of an Ethereum node.\n\n\
         eth-gateway [serve] [OPTIONS]   serve\n\
         eth-gateway mock [OPTIONS]      play a node with a chain and a limiter; mock --help says how\n\
         eth-gateway openapi             print the OpenAPI document\n\n\
         Options may also stand in a TOML file (--config FILE, ETH_GATEWAY_CONFIG) or in the environment\n\
         (ETH_GATEWAY_LISTEN). --plain turns off cache, latest, coalesce, batch, pool and pace.\n\n",
    );
    for setting in &SETTINGS {
        let name = format!("--{}", setting.key.replace('_', "-"));
        let default = if setting.default.is_empty() { "none" } else { setting.default };
        text.push_str(&format!("  {name:<28} {} [{default}]\n", setting.meaning));
    }
    text
}
