//! Checks that the documents and the code still say the same, and the rules of STYLE.md that a program can
//! check. Every finding is printed; nothing is repaired, but a lower count of discouraged constructions is written down.

mod arrows;
mod lock;
mod promises;
mod prose;
mod series;

use std::fs;
use std::path::Path;

use arrows::arrows;

/// Longer files have a seam that wants finding; STYLE.md says about 600.
const FILE_LINES_MAX: usize = 700;

/// Names that say nothing. A thing has a name or is not a thing.
const EMPTY_NAMES: [&str; 7] = ["util", "utils", "common", "helper", "helpers", "misc", "shared"];

/// What reads a clock; allowed in base/clock alone.
const CLOCK_READERS: [&str; 4] =
    ["Instant::now(", "SystemTime::now(", "SystemTime::UNIX_EPOCH", "clock_gettime("];

/// Where a clock may be started, and how often: each is the origin of a line of time, and a trial has one. What is started
/// in a test, an example or a node (a process of its own) is none of the instrument's.
const CLOCK_STARTS: [(&str, usize); 11] = [
    // The trial's.
    ("apps/assay/src/run/trial.rs", 1),
    // What the instrument reaches by itself, before any trial.
    ("apps/assay/src/run/mod.rs", 2),
    ("apps/assay/src/doctor.rs", 1),
    // The processes beside a run, its own agents and their server.
    ("apps/assay/src/run/spread.rs", 1),
    // An agent's own: it stamps the rows of its parts.
    ("apps/assay/src/agent.rs", 1),
    ("apps/assay/src/init.rs", 1),
    // A run that another process carries out is looked at this often.
    ("apps/assay/src/watch_command/mod.rs", 1),
    // How long a command of an installation may take.
    ("instrument/testbed/src/install/carry_out.rs", 1),
    // Virtual time, for loads against a script; nothing of `assay` calls it.
    ("instrument/load/src/scripted.rs", 1),
    // A ring under loom, whose records have stamps of their own.
    ("fuzz/interleavings/src/lib.rs", 1),
    // That of a foreign service.
    ("base/sampler_c/src/functions.rs", 1),
];

/// What a session must not know: it is bytes in and bytes out, and the engine has the sockets and the time. The rest of an
/// adapter does open sockets and wait: it starts nodes, asks them questions and reads their ledger, beside the load.
const NOT_FOR_SESSIONS: [&str; 10] = [
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "UnixStream",
    "Questioner",
    "Clock",
    "sleep(",
    "sleep_until(",
    "thread::",
    "fs::",
];

/// Runs all checks on the checkout at `root`; with `write`, lower counts of prose are kept.
pub fn run(root: &Path, write: bool) -> Result<(), String> {
    let mut findings = arrows(root)?;
    findings.extend(sources(root)?);
    findings.extend(lock::stale(root));
    findings.extend(lock::heavy(root)?);
    crate::suite::declared::read(root)?;
    findings.extend(series::check(root));
    findings.extend(promises::check(root)?);
    findings.extend(prose::check(root, write)?);
    for finding in &findings {
        eprintln!("tidy: {finding}");
    }
    if findings.is_empty() {
        println!("tidy: the arrow table and the rules hold");
        return Ok(());
    }
    Err(format!("{} findings", findings.len()))
}

/// Rules for source files.
fn sources(root: &Path) -> Result<Vec<String>, String> {
    let mut files = Vec::new();
    walk(root, &mut |path| {
        if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path.to_path_buf());
        }
    });
    files.sort();
    let mut findings = Vec::new();
    for path in files {
        let text =
            fs::read_to_string(&path).map_err(|e| format!("reading {}: {e}", path.display()))?;
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        findings.extend(source(&shown, &text));
    }
    Ok(findings)
}

/// Rules for one source file.
fn source(shown: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX {
        findings.push(format!("{shown}: {lines} lines; where is the seam?"));
    }
    let opens = text.lines().find(|line| !line.starts_with("#!["));
    if !opens.is_some_and(|line| line.starts_with("//!")) {
        findings.push(format!("{shown}: does not open with `//!`"));
    }
    let stem = Path::new(shown).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    if EMPTY_NAMES.contains(&stem) {
        findings.push(format!("{shown}: `{stem}` says nothing; name the thing"));
    }
    if !shown.starts_with("xtask/") {
        findings.extend(time_and_sockets(shown, &tested_code(shown, text)));
    }
    let reads_clock_lawfully = shown.starts_with("base/clock/") || shown.starts_with("xtask/");
    if !reads_clock_lawfully {
        for (index, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if let Some(reader) = CLOCK_READERS.iter().find(|reader| code.contains(**reader)) {
                findings.push(format!("{shown}:{}: `{reader}` outside base/clock", index + 1));
            }
        }
    }
    findings
}

/// Clocks that are started where none may be, and sessions that know more than bytes; `code` is without tests.
fn time_and_sockets(shown: &str, code: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let is_a_process_of_its_own = shown.starts_with("base/clock/")
        || shown.starts_with("programs/")
        || shown.starts_with("systems/") && shown.contains("/node/")
        || shown.starts_with("xtask/");
    let of = |maker| code.matches(maker).count();
    let started = of("Clock::start(") + of("Clock::by_hand(");
    let allowed =
        CLOCK_STARTS.iter().find(|(path, _)| *path == shown).map_or(0, |(_, count)| *count);
    if started > allowed && !is_a_process_of_its_own {
        findings.push(format!(
            "{shown}: starts {started} clocks, and {allowed} may be: a trial has one clock, which the testbed and the deployment hand on"
        ));
    }
    if shown.starts_with("systems/") && is_session(code) {
        for word in NOT_FOR_SESSIONS.iter().filter(|word| code.contains(**word)) {
            findings.push(format!(
                "{shown}: a session must not know of `{word}`; put what does into a file of its own"
            ));
        }
    }
    findings
}

fn is_session(code: &str) -> bool {
    code.contains("impl Session for ") || code.contains("impl sut::Session for ")
}

/// The code of a file without comments and without its tests, which end it; nothing of a file that is a test or an example.
fn tested_code(shown: &str, text: &str) -> String {
    let is_test = ["/tests/", "/examples/", "tests.rs"].iter().any(|part| shown.contains(part));
    if is_test {
        return String::new();
    }
    let lines = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
    lines.map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Every file below `folder`, hidden and built folders left out, and links, whose files stand elsewhere.
pub fn walk(folder: &Path, visit: &mut dyn FnMut(&Path)) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') || name == "target" || name == "runs" || name == "node_modules" {
            continue;
        }
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            walk(&path, visit);
        } else {
            visit(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a source file is found for an empty name, a missing purpose, a clock and its length, and base/clock may read clocks.
    #[test]
    fn source_rules() {
        let clock = "//! x\nlet t = std::time::Instant::now();\n";
        assert_eq!(source("base/clock/src/lib.rs", clock), Vec::<String>::new());
        assert_eq!(
            source("instrument/load/src/lib.rs", clock),
            ["instrument/load/src/lib.rs:2: `Instant::now(` outside base/clock"]
        );
        assert_eq!(
            source("a/util.rs", "//! x\n"),
            ["a/util.rs: `util` says nothing; name the thing"]
        );
        assert_eq!(source("a/b.rs", "use x;\n"), ["a/b.rs: does not open with `//!`"]);
        let long = format!("//! x\n{}", "\n".repeat(FILE_LINES_MAX + 1));
        assert_eq!(source("a/b.rs", &long).len(), 1);
    }

    /// Claim: a clock is started only where it may be and as often; an adapter's rest may know sockets and time, its session
    /// none of them.
    #[test]
    fn clocks_and_sessions() {
        let clock = "//! x\nlet clock = Clock::start();\n";
        assert_eq!(source("apps/assay/src/run/trial.rs", clock), Vec::<String>::new());
        assert_eq!(source("systems/kv/node/src/lib.rs", clock), Vec::<String>::new());
        assert_eq!(source("systems/kv/adapter/src/tests.rs", clock), Vec::<String>::new());
        let in_tests = "//! x\n#[cfg(test)]\nmod tests { Clock::start() }\n";
        assert_eq!(source("systems/kv/adapter/src/a.rs", in_tests), Vec::<String>::new());
        for path in ["systems/kv/adapter/src/system.rs", "instrument/load/src/lib.rs"] {
            assert_eq!(source(path, clock).len(), 1, "{path}");
        }
        let by_hand = "//! x\nlet (clock, hand) = Clock::by_hand(at, wall);\n";
        assert_eq!(source("instrument/load/src/scripted.rs", by_hand), Vec::<String>::new());
        assert_eq!(source("instrument/load/src/lib.rs", by_hand).len(), 1);
        let twice = clock.to_owned() + "Clock::start()";
        assert_eq!(source("apps/assay/src/run/trial.rs", &twice).len(), 1);
        let rest = "//! x\nfn ask(node: &TcpStream, clock: Clock) { clock.sleep_until(at) }\n";
        assert_eq!(source("systems/kv/adapter/src/control.rs", rest), Vec::<String>::new());
        let session = rest.to_owned() + "impl Session for Kv {}\n";
        let findings = source("systems/kv/adapter/src/session.rs", &session);
        assert_eq!(findings.len(), 3, "{findings:?}");
        assert!(findings[0].contains("a session must not know of `TcpStream`"), "{findings:?}");
    }

    /// Claim: this checkout is tidy.
    #[test]
    fn this_checkout_is_tidy() {
        let root = crate::workspace_root();
        let mut findings = arrows(&root).expect("the table can be read");
        findings.extend(sources(&root).expect("sources can be read"));
        findings.extend(lock::heavy(&root).expect("the lock file can be read"));
        assert!(findings.is_empty(), "{findings:#?}");
    }
}
