//! The `cometbft` program: which one, whether it is a version that this adapter knows, and running it to its end
//! for files. Nodes are started by the testbed, never here.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use clock::Clock;
use sut::SutError;

/// The line of versions whose settings, replies and error texts this adapter knows.
const KNOWN: &str = "0.38.";

/// How long the program may take to say its version, or to write the files of a testnet: it takes 50 ms, and
/// some seconds for 200 nodes.
const END_WITHIN: Duration = Duration::from_secs(60);

/// How often it is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A program that was asked what it is.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) version: String,
}

impl Program {
    /// The one that the experiment names, or the one that is installed.
    pub(crate) fn find(named: Option<&Path>, clock: Clock) -> Result<Self, SutError> {
        let path = sut::program(named, "cometbft")?;
        let said = run(&path, &["version"], clock)?;
        let version = said.trim().to_owned();
        if !version.starts_with(KNOWN) {
            let said: String = version.chars().take(80).collect();
            return Err(SutError::Deploy(format!(
                "asking {} for its version: it says `{said}`, and this adapter knows {KNOWN}x only; run: assay doctor --install cometbft",
                path.display()
            )));
        }
        Ok(Self { path, version })
    }

    /// Runs it with `arguments` to its end.
    pub(crate) fn run(&self, arguments: &[&str], clock: Clock) -> Result<String, SutError> {
        run(&self.path, arguments, clock)
    }
}

/// Runs a program that ends by itself, within a time; gives its standard output.
fn run(path: &Path, arguments: &[&str], clock: Clock) -> Result<String, SutError> {
    let failed = |why: String| {
        let words = arguments.join(" ");
        SutError::Deploy(format!("running `{} {words}`: {why}", path.display()))
    };
    let mut command = Command::new(path);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let (out, err) = (reader(child.stdout.take()), reader(child.stderr.take()));
    if !ends(&mut child, clock) {
        // It may have ended just now; either way it is waited for below.
        let _ = child.kill();
        let _ = child.wait();
        return Err(failed(format!("it did not end within {} s", END_WITHIN.as_secs())));
    }
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    let [out, err] = [out, err].map(|text| text.join().unwrap_or_default());
    if !status.success() {
        return Err(failed(format!("{status}: {}", err.trim())));
    }
    Ok(out)
}

/// Reads a pipe to its end beside the program: for 200 nodes it prints more than a pipe holds, and would wait for
/// somebody to read it.
fn reader(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut pipe) = pipe {
            // What cannot be read is not there; the status says whether the program did its work.
            let _ = pipe.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// Whether it ends in time.
fn ends(child: &mut Child, clock: Clock) -> bool {
    let deadline = clock.now().plus(END_WITHIN);
    loop {
        match child.try_wait() {
            Ok(None) if clock.now() < deadline => {
                clock.sleep_until(clock.now().plus(LOOK_EVERY));
            }
            Ok(None) => return false,
            Ok(Some(_)) | Err(_) => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a program that prints more than a pipe holds, on both, ends and is heard in full.
    #[test]
    fn one_that_says_much() {
        let line = "i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789; i=$((i+1)); done";
        let script = format!("{line}; ({line}) >&2");
        let said = run(Path::new("/bin/sh"), &["-c", &script], Clock::start()).unwrap();
        assert_eq!(said.len(), 3_000 * 41);
    }
}
