//! Which processes belong to a test: those that inherited its mark, whatever they are called and whoever their
//! parent is by now. It reads `/proc` and signals; it starts nothing.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// The variable that every process of a test inherits; its value is the test's folder.
pub const MARK: &str = "ASSAY_TEST_PLACE";

/// A process that is running.
#[derive(Debug)]
pub struct Process {
    pub id: u32,
    pub command: String,
}

/// The processes that were started in `place`, except those that have ended and wait to be reaped.
pub fn processes_of(place: &Path) -> Vec<Process> {
    let mut found = Vec::new();
    let mark = [MARK.as_bytes(), b"=", place.as_os_str().as_bytes()].concat();
    for entry in std::fs::read_dir("/proc").expect("there is /proc").flatten() {
        let name = entry.file_name();
        let Some(id) = number(&name) else { continue };
        let read = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
        let is_ours = read("environ").split(|byte| *byte == 0).any(|variable| variable == mark);
        if is_ours {
            let command = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
            found.push(Process { id, command });
        }
    }
    found
}

fn number(name: &OsStr) -> Option<u32> {
    name.to_str()?.parse().ok()
}

/// Sends a signal to a process; one that has ended does not mind.
pub fn signal(id: u32, kind: Signal) {
    let id = i32::try_from(id).ok().and_then(Pid::from_raw).expect("a process id");
    let _ = kill_process(id, kind);
}
