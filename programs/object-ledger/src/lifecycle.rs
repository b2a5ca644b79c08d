//! What the commands of the program have in common: its threads, the signal that ends it, the line that says it is ready.

use std::future::Future;
use std::io::Write as _;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// Says that requests are served, to who reads the output.
pub(crate) fn ready(addresses: &str) {
    let mut out = std::io::stdout().lock();
    // Who has closed the output does not wait for the line.
    let _ = writeln!(out, "ready {addresses}").and_then(|()| out.flush());
}

/// Ready when the program is asked to end: by a signal, and where asked when standard input ends.
pub(crate) fn ends(parent_pipe: bool) -> Result<impl Future<Output = ()>, String> {
    let failed = |error| format!("waiting for signals: {error}");
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let (closed, input) = tokio::sync::oneshot::channel::<()>();
    if parent_pipe {
        let wait = move || {
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            drop(closed);
        };
        let thread = std::thread::Builder::new().name("input".to_owned()).spawn(wait);
        thread.map_err(|error| format!("starting a thread: {error}"))?;
    } else {
        std::mem::forget(closed);
    }
    Ok(async move {
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {}, _ = input => {} }
    })
}

/// The runtime.
pub(crate) fn runtime() -> Result<Runtime, String> {
    let made = Builder::new_multi_thread().enable_all().build();
    made.map_err(|error| format!("starting threads: {error}"))
}
