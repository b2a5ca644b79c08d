//! Runs what gets a program, and looks at what came.
//!
//! It shows every command before it runs it, bounds its time, and gives the client's own last words when it is
//! refused. It must never run anything that the table does not name.

use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use clock::Clock;
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::{Entry, How, InstallError, Shelf, VERIFIED, folder_in, go_modules};
use crate::guard::Guard;

/// The longest that one command may take: a large program built on a busy two-core machine.
const COMMAND_MAX: Duration = Duration::from_secs(3600);
/// The longest that a program may take to say its version.
pub(super) const VERIFY_MAX: Duration = Duration::from_secs(60);
const LAST_LINES_MAX: usize = 15;
/// The file of what pip may install, with digests.
const REQUIREMENTS: &str = "requirements.txt";

/// The project of what Maven may copy, the folder that it copies to, and the list of the files' digests.
const PROJECT: &str = "pom.xml";
const JARS: &str = "jars";
const DIGESTS: &str = "jars.sha256";
/// The plugin that copies, in a version of its own: which one Maven would take otherwise depends on its own version.
const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies";
/// Runs a class of the jars beside it, with the options of the Java machine before it.
const RUN_CLASS: &str = "#!/bin/sh\nexec java -cp \"$(dirname \"$0\")/jars/*\" \"$@\"\n";

/// One command.
pub(super) struct Step {
    program: PathBuf,
    args: Vec<String>,
    env: Vec<(&'static str, PathBuf)>,
    /// It goes on when this process ends: the distribution's package manager leaves half a package otherwise.
    goes_on: bool,
}

impl Step {
    pub(super) fn new<T: Into<String>>(
        program: PathBuf,
        args: impl IntoIterator<Item = T>,
    ) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self { program, args, env: Vec::new(), goes_on: false }
    }

    pub(super) fn arg(mut self, word: impl Into<String>) -> Self {
        self.args.push(word.into());
        self
    }

    fn env(mut self, name: &'static str, value: PathBuf) -> Self {
        self.env.push((name, value));
        self
    }

    pub(super) fn in_words(&self) -> String {
        let env = self.env.iter().map(|(name, value)| format!("{name}={}", value.display()));
        let name = self.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let words: Vec<String> = env.chain([name]).chain(self.args.iter().cloned()).collect();
        words.join(" ")
    }
}

/// How an entry is had, for a list.
pub(super) fn in_words(entry: &Entry) -> String {
    match entry.how {
        How::System { package } => format!("apt-get install {package}"),
        How::Cargo { package, version } => format!("cargo install --locked {package}@{version}"),
        How::Go { package, version } => format!("go install {package}@{version}"),
        How::GoModule { package, version } => {
            format!("go get {package}@{version} && go build {package}")
        }
        How::Npm { package, version, .. } => format!("npm install {package}@{version}"),
        How::Maven { .. } => {
            format!("mvn copy-dependencies ({} {})", entry.name, entry.how.version())
        }
        How::Python { packages, .. } => format!("pip install {}", packages.join(" ")),
        How::Nowhere { reason } => format!("cannot be had: {reason}"),
    }
}

/// Gets the program and verifies it.
pub(super) fn install(
    shelf: &Shelf,
    entry: &Entry,
    log: &mut dyn FnMut(&str),
) -> Result<PathBuf, InstallError> {
    let is_ours = entry.how.program_path(entry.program).is_some();
    let cache = if is_ours { shelf.cache_for(entry.name)? } else { Path::new("/") };
    let folder = folder_in(cache, entry);
    let build = build_folder(cache, entry);
    let steps = steps(shelf, entry, (&folder, &build))?;
    let cache_error = |source| InstallError::Cache {
        name: entry.name.to_owned(),
        folder: folder.clone(),
        source,
    };
    if is_ours {
        std::fs::create_dir_all(&folder).map_err(cache_error)?;
    }
    if let How::Python { lock, .. } = entry.how {
        std::fs::write(folder.join(REQUIREMENTS), lock).map_err(cache_error)?;
    }
    if let How::Maven { project, digests, .. } = entry.how {
        lay_out(&folder, entry.program, project, digests).map_err(cache_error)?;
    }
    if matches!(entry.how, How::GoModule { .. }) {
        // What an attempt left that was broken off is in the way of a new module.
        let _ = std::fs::remove_dir_all(&build);
        std::fs::create_dir_all(&build).map_err(cache_error)?;
    }
    for step in &steps {
        carry_out(shelf, entry.name, step, log)?;
    }
    if let How::Npm { package, version, integrity, .. } = entry.how
        && !has_integrity(&folder, package, integrity).map_err(cache_error)?
    {
        // Nothing of it has been run: its scripts were left out.
        let _ = std::fs::remove_dir_all(&folder);
        return Err(InstallError::NotIt {
            name: entry.name.to_owned(),
            command: format!("npm install {package}@{version}"),
            wanted: integrity.to_owned(),
            said: "a package with another digest".to_owned(),
        });
    }
    if let How::Maven { digests, .. } = entry.how {
        let came = names(&folder.join(JARS)).map_err(cache_error)?;
        let wanted: Vec<&str> = digests.lines().filter_map(|line| line.get(66..)).collect();
        if let Some(other) = came.iter().find(|name| !wanted.contains(&name.as_str())) {
            // Nothing of it has been run, and all of the folder would be.
            let _ = std::fs::remove_dir_all(&folder);
            return Err(InstallError::NotIt {
                name: entry.name.to_owned(),
                command: COPY.to_owned(),
                wanted: format!("{} files with known digests", wanted.len()),
                said: format!("{other} is none of them"),
            });
        }
    }
    let program = match entry.how.program_path(entry.program) {
        Some(inside) => folder.join(inside),
        None => shelf.which(entry.program).unwrap_or_else(|| PathBuf::from(entry.program)),
    };
    if let How::Go { package, version } | How::GoModule { package, version } = entry.how {
        check_modules(shelf, entry.name, &program, (package, version), log)?;
    }
    verify(shelf, entry, &program, log)?;
    if is_ours {
        std::fs::write(folder.join(VERIFIED), format!("{}\n", in_words(entry)))
            .map_err(cache_error)?;
        let _ = std::fs::remove_dir_all(&build);
    }
    log(&format!("{} is there: {}", entry.name, program.display()));
    Ok(program)
}

/// Writes all that Maven does not bring: its project, the digests of what it is to bring, and the program.
fn lay_out(folder: &Path, program: &str, project: &str, digests: &str) -> std::io::Result<()> {
    // Files of an attempt that was broken off would be run, too.
    let _ = std::fs::remove_dir_all(folder.join(JARS));
    std::fs::write(folder.join(PROJECT), project)?;
    let jars = folder.join(JARS).display().to_string();
    let places = digests.lines().filter_map(|line| line.split_once("  "));
    let places: String =
        places.map(|(digest, name)| format!("{digest}  {jars}/{name}\n")).collect();
    std::fs::write(folder.join(DIGESTS), places)?;
    std::fs::write(folder.join(program), RUN_CLASS)?;
    std::fs::set_permissions(folder.join(program), std::fs::Permissions::from_mode(0o755))
}

/// The names of a folder's files.
fn names(folder: &Path) -> std::io::Result<Vec<String>> {
    let entries = std::fs::read_dir(folder)?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// Says whether the client's lock file has this digest for this package; it has checked the bytes against it.
fn has_integrity(folder: &Path, package: &str, integrity: &str) -> std::io::Result<bool> {
    let lock = std::fs::read_to_string(folder.join("package-lock.json"))?;
    // One that is no JSON has no digest.
    let lock: serde_json::Value = serde_json::from_str(&lock).unwrap_or_default();
    Ok(lock["packages"][format!("node_modules/{package}")]["integrity"] == integrity)
}

/// Compares the modules in a program that Go built with our list of sums. Nothing of them has been run; a program that
/// differs is removed.
fn check_modules(
    shelf: &Shelf,
    name: &str,
    program: &Path,
    (package, version): (&str, &str),
    log: &mut dyn FnMut(&str),
) -> Result<(), InstallError> {
    let go = shelf.which("go").unwrap_or_else(|| PathBuf::from("go"));
    let step = Step::new(go, ["version", "-m"]).arg(program.to_string_lossy());
    log(&format!("$ {}", step.in_words()));
    let mut said = String::new();
    let ran = run(shelf, &step, VERIFY_MAX, &mut |line| {
        if said.len() < go_modules::BYTES_MAX {
            said.push_str(line);
            said.push('\n');
        }
    });
    let checked = match ran {
        Ok(_) => go_modules::check(&said, package, version, go_modules::SUMS),
        Err(how) => Err(how),
    };
    checked.map_err(|reason| {
        let _ = std::fs::remove_file(program);
        InstallError::NotIt {
            name: name.to_owned(),
            command: step.in_words(),
            wanted: format!("{package}@{version} and modules with known sums"),
            said: reason,
        }
    })
}

fn build_folder(cache: &Path, entry: &Entry) -> PathBuf {
    cache.join("build").join(entry.name)
}

/// The commands that get the program into `folder`, by way of `build`.
fn steps(
    shelf: &Shelf,
    entry: &Entry,
    (folder, build): (&Path, &Path),
) -> Result<Vec<Step>, InstallError> {
    let name = || entry.name.to_owned();
    let client = |client: &str| {
        let missing = || InstallError::NoClient { name: name(), client: client.to_owned() };
        shelf.which(client).ok_or_else(missing)
    };
    let text = |path: &Path| path.to_string_lossy().into_owned();
    Ok(match entry.how {
        How::Nowhere { reason } => {
            return Err(InstallError::Nowhere { name: name(), reason: reason.to_owned() });
        }
        How::System { package } => {
            let apt = client("apt-get")?;
            let install =
                Step::new(apt.clone(), ["install", "--yes", "--no-install-recommends", package]);
            if !shelf.is_root {
                let command = install.in_words();
                return Err(InstallError::NeedsRoot { name: name(), command });
            }
            let install = install.env("DEBIAN_FRONTEND", PathBuf::from("noninteractive"));
            let install = Step { goes_on: true, ..install };
            vec![Step::new(apt, ["update"]), install]
        }
        How::Cargo { package, version } => {
            let root = text(folder);
            let exact = format!("={version}");
            let args = ["install", "--locked", "--root", &root, "--version", &exact, package];
            vec![Step::new(client("cargo")?, args).env("CARGO_TARGET_DIR", build.to_owned())]
        }
        How::Go { package, version } => {
            let args = ["install".to_owned(), format!("{package}@{version}")];
            vec![Step::new(client("go")?, args).env("GOBIN", folder.to_owned())]
        }
        How::GoModule { package, version } => {
            let go = client("go")?;
            let at = ["-C".to_owned(), text(build)];
            let exact = format!("{package}@{version}");
            let into = text(&folder.join(entry.program));
            let step = |words: &[&str]| {
                Step::new(go.clone(), at.iter().map(String::as_str).chain(words.iter().copied()))
            };
            vec![
                step(&["mod", "init", "build"]),
                step(&["get", &exact]),
                step(&["build", "-o", &into, package]),
            ]
        }
        How::Npm { package, version, .. } => {
            let prefix = text(folder);
            let exact = format!("{package}@{version}");
            let quiet = ["--no-audit", "--no-fund", "--ignore-scripts"];
            let args = ["install", "--prefix", &prefix].into_iter().chain(quiet).chain([&*exact]);
            vec![Step::new(client("npm")?, args)]
        }
        How::Maven { .. } => {
            client("java")?;
            let project = text(&folder.join(PROJECT));
            let jars = format!("-DoutputDirectory={}", text(&folder.join(JARS)));
            let copy = ["--batch-mode", "--quiet", "--file", &project, COPY, &jars];
            let copy = copy.into_iter().chain(["-DincludeScope=runtime"]);
            let digests = text(&folder.join(DIGESTS));
            vec![
                Step::new(client("mvn")?, copy),
                Step::new(
                    client("sha256sum")?,
                    ["--check", "--strict", "--quiet", digests.as_str()],
                ),
            ]
        }
        How::Python { .. } => {
            let root = text(folder);
            let wanted = text(&folder.join(REQUIREMENTS));
            let pip = ["-m", "pip", "install", "--disable-pip-version-check", "--require-hashes"];
            let pip = pip.into_iter().chain(["--requirement", &wanted]);
            vec![
                Step::new(client("python3")?, ["-m", "venv", &root]),
                Step::new(folder.join("bin/python"), pip),
            ]
        }
    })
}

/// Runs one command to its end.
pub(super) fn carry_out(
    shelf: &Shelf,
    name: &str,
    step: &Step,
    log: &mut dyn FnMut(&str),
) -> Result<(), InstallError> {
    log(&format!("$ {}", step.in_words()));
    let mut last = Vec::new();
    let how = run(shelf, step, COMMAND_MAX, &mut |line| {
        log(line);
        if last.len() == LAST_LINES_MAX {
            last.remove(0);
        }
        last.push(line.to_owned());
    });
    match how {
        Ok(true) => Ok(()),
        Ok(false) | Err(_) => Err(InstallError::Refused {
            name: name.to_owned(),
            command: step.in_words(),
            how: how.map_or_else(|error| error, |_| "failed".to_owned()),
            log: last.join("\n"),
        }),
    }
}

/// Asks the program what it is.
fn verify(
    shelf: &Shelf,
    entry: &Entry,
    program: &Path,
    log: &mut dyn FnMut(&str),
) -> Result<(), InstallError> {
    let step = Step::new(program.to_owned(), entry.asked.iter().copied());
    log(&format!("$ {}", step.in_words()));
    let mut said = String::new();
    let ran = run(shelf, &step, VERIFY_MAX, &mut |line| {
        // A usage text has a few kilobytes; what is printed beyond that does not tell who is printing.
        if said.len() < 64 << 10 {
            said.push_str(line);
            said.push('\n');
        }
    });
    if let Err(how) = ran {
        said.push_str(&how);
    }
    if said.contains(entry.says) {
        return Ok(());
    }
    Err(InstallError::NotIt {
        name: entry.name.to_owned(),
        command: step.in_words(),
        wanted: entry.says.to_owned(),
        said,
    })
}

/// Runs a command and hands over its lines, of both streams. Gives whether it succeeded, or why it could not be
/// run to its end.
pub(super) fn run(
    shelf: &Shelf,
    step: &Step,
    at_most: Duration,
    line: &mut dyn FnMut(&str),
) -> Result<bool, String> {
    // When this process ends before the command, the kernel ends that, and the guard what it has started.
    let not_started = |error| format!("did not start: {error}");
    let mut guard = if step.goes_on { None } else { Some(Guard::start().map_err(not_started)?) };
    let mut command = command(shelf, step);
    if guard.is_some() {
        crate::end_with_thread(&mut command);
    }
    let mut child = command.spawn().map_err(not_started)?;
    let group = Pid::from_child(&child);
    if let Some(Err(error)) = guard.as_mut().map(|guard| guard.add(group)) {
        end(&mut child);
        return Err(not_started(error));
    }
    // It is forgotten before its id is given back to the kernel. A guard that was killed cannot be told.
    let mut forget = || guard.as_mut().map(|guard| guard.forget(group));
    let (sender, lines) = channel();
    forward(child.stdout.take(), sender.clone());
    forward(child.stderr.take(), sender);
    let clock = Clock::start();
    let deadline = clock.now().plus(at_most);
    loop {
        match lines.recv_timeout(deadline.saturating_since(clock.now())) {
            Ok(text) => line(&text),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let _ = forget();
                end(&mut child);
                return Err(format!("was ended after {} s", at_most.as_secs()));
            }
        }
    }
    let without_reaping = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let _ = retry_on_intr(|| waitid(WaitId::Pid(group), without_reaping));
    let _ = forget();
    let status = child.wait().map_err(|error| format!("cannot be waited for: {error}"))?;
    Ok(status.success())
}

fn command(shelf: &Shelf, step: &Step) -> Command {
    let mut command = Command::new(&step.program);
    command
        .args(&step.args)
        // Where this process was started says nothing about the program (a folder may carry settings of cargo or npm).
        .current_dir(
            shelf.cache.as_deref().filter(|cache| cache.is_dir()).unwrap_or(Path::new("/")),
        )
        // Set by cargo for programs that it runs; the cargo that we run is to see none of them.
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("PYTHONPATH")
        .env_remove("PYTHONHOME")
        .env_remove("VIRTUAL_ENV")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    // Build scripts may look at what cargo says of a package (ring's does): it would be built anew, and again afterwards.
    for (name, _) in std::env::vars_os() {
        let word = name.to_string_lossy();
        if word.starts_with("CARGO_PKG_") || word.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    for (name, value) in &step.env {
        command.env(name, value);
    }
    command
}

/// Sends each line of a stream on, from a thread that ends with the stream.
fn forward(stream: Option<impl Read + Send + 'static>, lines: Sender<String>) {
    let Some(stream) = stream else { return };
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut bytes = Vec::new();
        while matches!(reader.read_until(b'\n', &mut bytes), Ok(count) if count > 0) {
            let text = String::from_utf8_lossy(&bytes).trim_end().to_owned();
            if lines.send(text).is_err() {
                return;
            }
            bytes.clear();
        }
    });
}

fn end(child: &mut Child) {
    // The group's id is the child's, which has not been reaped.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::super::table::ENTRIES;
    use super::*;

    /// Claim: a package with another digest than the table's is not taken for it, also where another package has that
    /// one or the lock cannot be read, and every package for Python stands in its
    /// list with digests.
    #[test]
    fn digests() {
        let folder = tempfile::tempdir().expect("the temporary folder can be written");
        let has = |lock: &str, package: &str, integrity: &str| {
            let path = folder.path().join("package-lock.json");
            std::fs::write(path, lock).expect("it can be written");
            has_integrity(folder.path(), package, integrity).expect("it is there")
        };
        let lock = r#"{ "packages": {
            "": { "integrity": "sha512-own" },
            "node_modules/@of/azurite": { "integrity": "sha512-other" },
            "node_modules/x": { "integrity": "sha512-own" }
        } }"#;
        assert!(has(lock, "x", "sha512-own") && has(lock, "@of/azurite", "sha512-other"));
        assert!(!has(lock, "@of/azurite", "sha512-own"), "another package's");
        assert!(!has(lock, "y", "sha512-own") && !has("\"integrity\": \"a\"", "y", "a"));
        for entry in ENTRIES {
            if let How::Python { packages, lock, .. } = entry.how {
                for package in packages {
                    let line = format!("{package} \\\n    --hash=sha256:");
                    assert!(lock.contains(&line), "{package}");
                }
            }
        }
    }
}
