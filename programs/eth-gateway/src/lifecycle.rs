//! What the commands of the program have in common: its threads, the signal that ends it, and what it prints.

use std::io::{ErrorKind, Write as _};

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

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
