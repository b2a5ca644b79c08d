//! Steps of the suite and what came of them: each says what it took, and at the end a table says where the time went.

use std::path::Path;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::thread::JoinHandle;

/// A part may take so many times what it declares before it is ended: the machine may be shared. Beyond what it
/// declares it is said by name.
pub const SLACK: u32 = 4;

/// What `timeout` says of a command that it ended.
const TIMED_OUT: i32 = 124;

/// What `assay run` says where the measurement does not hold. A toy's times are nobody's answer,
/// and what it must show, that the run goes through, it has shown.
const INVALID: i32 = 97;

/// A step that runs beside others; what it says is kept until it is joined.
pub struct Beside {
    name: String,
    words: String,
    process: JoinHandle<(std::io::Result<Output>, f64)>,
}

/// Starts a step beside those that follow.
pub fn beside(root: &Path, name: &str, words: &[&str]) -> Beside {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(root).stdin(Stdio::null());
    let process = std::thread::spawn(move || {
        let before = uptime_s();
        (command.output(), uptime_s() - before)
    });
    Beside { name: name.to_owned(), words: words.join(" "), process }
}

/// What came of the steps.
#[derive(Default)]
pub struct Tally {
    passed: u32,
    failed: Vec<String>,
    pub skipped: Vec<String>,
    /// Passed before with the same code and inputs.
    pub unchanged: Vec<String>,
    /// Parts whose turn it was not.
    pub not_drawn: Vec<String>,
    /// Beyond what they declare, and not so far that they were ended.
    slow: Vec<String>,
    /// Went through and measured nothing that holds.
    invalid: Vec<String>,
    /// Seconds by step, in their order.
    took: Vec<(String, f64)>,
}

impl Tally {
    /// Runs one step to its end.
    pub fn step(&mut self, root: &Path, name: &str, words: &[&str]) {
        self.step_with(root, name, words, &[]);
    }

    /// The same with variables in its environment; whether it passed.
    pub fn step_with(
        &mut self,
        root: &Path,
        name: &str,
        words: &[&str],
        env: &[(&str, &Path)],
    ) -> bool {
        println!("\n=== {name}: {}", words.join(" "));
        let mut process = Command::new(words[0]);
        process.args(&words[1..]).current_dir(root).stdin(Stdio::null());
        process.envs(env.iter().copied());
        let before = uptime_s();
        let status = process.status();
        let seconds = uptime_s() - before;
        self.ended(name, status, seconds)
    }

    /// Runs a step that declares how long it may take, and ends it with all that it started when that is exceeded beyond
    /// all slack; whether it passed.
    pub fn bounded(&mut self, root: &Path, name: &str, words: &[String], seconds: u32) -> bool {
        let at_most = (seconds * SLACK).to_string();
        let timeout = ["timeout".to_owned(), "--kill-after=10".to_owned(), at_most];
        println!("\n=== {name}: {}", words.join(" "));
        let mut process = Command::new(&timeout[0]);
        process.args(&timeout[1..]).args(words).current_dir(root).stdin(Stdio::null());
        let before = uptime_s();
        let status = process.status();
        let took = uptime_s() - before;
        if status.as_ref().is_ok_and(|status| status.code() == Some(TIMED_OUT)) {
            self.took(name, took);
            self.failed.push(format!(
                "{name} (ended after {took:.0} s: it declares {seconds} s, and {SLACK} times that is the most)"
            ));
            return false;
        }
        if took > f64::from(seconds) {
            self.slow.push(format!("{name} took {took:.0} s and declares {seconds} s"));
        }
        if status.as_ref().is_ok_and(|status| status.code() == Some(INVALID)) {
            self.invalid.push(format!("{name}: exit code {INVALID}; run it on an idle machine"));
            return self.done(name, Ok(()), took);
        }
        self.ended(name, status, took)
    }

    /// Waits for a step that ran beside others, and says what it said.
    pub fn join(&mut self, beside: Beside) -> bool {
        println!("\n=== {}, beside the steps before it: {}", beside.name, beside.words);
        let Ok((output, seconds)) = beside.process.join() else {
            return self.done(&beside.name, Err("it panicked".to_owned()), 0.0);
        };
        let status = output.map(|output| {
            for said in [&output.stdout, &output.stderr] {
                print!("{}", String::from_utf8_lossy(said));
            }
            output.status
        });
        self.ended(&beside.name, status, seconds)
    }

    /// A step that was carried out here.
    pub fn done(&mut self, name: &str, result: Result<(), String>, seconds: f64) -> bool {
        self.took(name, seconds);
        let is_passed = result.is_ok();
        match result {
            Ok(()) => self.passed += 1,
            Err(why) => self.failed.push(format!("{name} ({why})")),
        }
        is_passed
    }

    fn ended(&mut self, name: &str, status: std::io::Result<ExitStatus>, seconds: f64) -> bool {
        let result = match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(status.to_string()),
            Err(error) => Err(format!("could not start: {error}")),
        };
        self.done(name, result, seconds)
    }

    fn took(&mut self, name: &str, seconds: f64) {
        println!("=== {name}: {seconds:.0} s");
        self.took.push((name.to_owned(), seconds));
    }

    /// Says everything.
    pub fn conclude(&self, began_s: f64) -> Result<(), String> {
        println!("\n{}", self.table(uptime_s() - began_s));
        for (what, lines) in [
            ("UNCHANGED", &in_one_line(&self.unchanged)),
            ("NOT DRAWN", &in_one_line(&self.not_drawn)),
            ("SKIPPED", &self.skipped),
            ("SLOW", &self.slow),
            ("INVALID", &self.invalid),
            ("FAILED", &self.failed),
        ] {
            for line in lines {
                println!("{what} {line}");
            }
        }
        println!(
            "suite: {} passed, {} failed, {} skipped, {} unchanged, {} not drawn (--all runs those, too)",
            self.passed,
            self.failed.len(),
            self.skipped.len(),
            self.unchanged.len(),
            self.not_drawn.len()
        );
        if self.failed.is_empty() { Ok(()) } else { Err(self.failed.join(", ")) }
    }

    /// Where the time went, longest first; test programs that ran beside each other count in full. What took less than a
    /// second is one row.
    fn table(&self, whole_s: f64) -> String {
        let (mut rows, short): (Vec<_>, Vec<_>) =
            self.took.iter().cloned().partition(|(_, seconds)| *seconds >= 1.0);
        if !short.is_empty() {
            let sum = short.iter().map(|(_, seconds)| seconds).sum();
            rows.push((format!("{} shorter ones", short.len()), sum));
        }
        rows.sort_by(|a, b| b.1.total_cmp(&a.1));
        let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(5);
        let mut table = format!("{:<width$}  seconds  of {whole_s:.0} s\n", "step");
        for (name, seconds) in rows {
            let share = 100.0 * seconds / whole_s.max(1.0);
            table.push_str(&format!("{name:<width$}  {seconds:>7.0}  {share:>6.0} %\n"));
        }
        table
    }
}

/// Names as one line, if there are any.
fn in_one_line(names: &[String]) -> Vec<String> {
    if names.is_empty() { Vec::new() } else { vec![names.join(", ")] }
}

/// Seconds since the host was started, for a reader of the log: which step the suite's time goes into.
pub fn uptime_s() -> f64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    text.split(' ').next().and_then(|seconds| seconds.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    /// Claim: a step beside others passes or fails as its program does.
    #[test]
    fn beside_others() {
        let mut tally = Tally::default();
        let steps = [("right", "true"), ("wrong", "false"), ("missing", "/there/is/none")];
        let steps = steps.map(|(name, program)| beside(Path::new("/"), name, &[program]));
        let passed = steps.map(|step| tally.join(step));
        assert_eq!((passed, tally.passed, tally.failed.len()), ([true, false, false], 1, 2));
    }

    /// Claim: what goes beyond all slack is ended with what it started and fails by name; what fails fails; and each stands
    /// in the table with its time.
    #[test]
    fn bounded_parts() {
        let mut tally = Tally::default();
        let here = Path::new("/");
        tally.bounded(here, "endless", &words("sh -c sleep\t600&wait"), 1);
        tally.bounded(here, "wrong", &words("false"), 60);
        tally.bounded(here, "right", &words("true"), 60);
        tally.bounded(here, "busy", &words("sh -c exit\t97"), 60);
        assert_eq!((tally.passed, tally.failed.len(), tally.invalid.len()), (2, 2, 1));
        assert!(tally.failed[0].starts_with("endless (ended after "), "{:?}", tally.failed);
        assert!(tally.failed[1].starts_with("wrong (exit status: 1"), "{:?}", tally.failed);
        let table = tally.table(10.0);
        let first = table.lines().nth(1).unwrap_or_default();
        assert!(first.starts_with("endless ") && table.contains("\n3 shorter ones "), "{table}");
    }
}
