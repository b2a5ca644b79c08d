//! Runs the built binary in a folder of its own and reads what it says. Every run is bounded in time; nothing
//! outlives a test.

#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(missing_docs, reason = "test code")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

/// The binary under test.
pub const ASSAY: &str = env!("CARGO_BIN_EXE_assay");

/// A folder that is removed at the end of the test.
pub struct Place {
    folder: tempfile::TempDir,
}

/// What a run said.
pub struct Said {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("the temporary folder can be written") }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).expect("the temporary folder can be written");
        path
    }

    /// `assay` with `arguments`, not started yet.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(ASSAY);
        command
            .args(arguments)
            .current_dir(self.path())
            .env_remove("NO_COLOR")
            .env("HOME", self.path())
            .env("XDG_CONFIG_HOME", self.path().join("config"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn assay(&self, arguments: &[&str]) -> Said {
        let child = self.command(arguments).spawn().expect("the binary starts");
        finish(child, Duration::from_secs(120))
    }

    /// Runs an experiment given as text and gives its result document.
    pub fn experiment(&self, text: &str) -> (Said, Value) {
        self.experiment_with(text, &[])
    }

    pub fn experiment_with(&self, text: &str, more: &[&str]) -> (Said, Value) {
        let path = self.write("experiment.toml", text);
        let path = path.display().to_string();
        let mut arguments = vec!["run", &path, "--json", "--progress", "none", "--no-calibration"];
        arguments.extend_from_slice(more);
        let said = self.assay(&arguments);
        let document = serde_json::from_str(&said.stdout).unwrap_or(Value::Null);
        (said, document)
    }

    /// The only run folder under `runs`.
    pub fn run_folder(&self) -> PathBuf {
        let entries = std::fs::read_dir(self.path().join("runs")).expect("there is a folder of runs");
        let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        folders.sort();
        folders.pop().expect("there is a run")
    }
}

/// Waits for the process, killing it after `limit`.
pub fn finish(mut child: Child, limit: Duration) -> Said {
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let read = |pipe: Option<Box<dyn std::io::Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = String::new();
            if let Some(mut pipe) = pipe {
                let _ = std::io::Read::read_to_string(&mut pipe, &mut text);
            }
            text
        })
    };
    let stdout = read(stdout.map(|pipe| Box::new(pipe) as _));
    let stderr = read(stderr.map(|pipe| Box::new(pipe) as _));
    let step = Duration::from_millis(20);
    let mut left = limit;
    let status = loop {
        match child.try_wait().expect("the child can be waited for") {
            Some(status) => break status,
            None if left.is_zero() => {
                let _ = child.kill();
                let _ = child.wait();
                panic!("still running after {limit:?}");
            }
            None => {
                std::thread::sleep(step);
                left = left.saturating_sub(step);
            }
        }
    };
    Said {
        code: status.code().unwrap_or(-1),
        stdout: stdout.join().expect("the reader ends"),
        stderr: stderr.join().expect("the reader ends"),
    }
}

impl Said {
    pub fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Asserts the exit code, showing everything if it is another.
    #[track_caller]
    pub fn expect_code(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "\n--- stdout\n{}\n--- stderr\n{}", self.stdout, self.stderr);
        self
    }
}

/// The audit called `name` in the first trial of the first setting.
pub fn audit<'a>(document: &'a Value, name: &str) -> (&'a str, &'a str) {
    let trial = &document["settings"][0]["trials"][0];
    let run = document["audits"].as_array().into_iter().flatten();
    let audits = trial["audits"].as_array().into_iter().flatten().chain(run);
    let found = audits.into_iter().find(|audit| audit["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no audit called {name}"));
    (found["outcome"].as_str().unwrap_or(""), found["detail"].as_str().unwrap_or(""))
}

/// Processes whose command line contains `word`.
pub fn processes_with(word: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("there is /proc").flatten() {
        let Ok(line) = std::fs::read(entry.path().join("cmdline")) else { continue };
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(word) {
            found.push(line);
        }
    }
    found
}
