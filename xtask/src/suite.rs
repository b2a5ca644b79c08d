//! `cargo xtask test`: everything that must hold, in the order that finds a mistake soonest. What cannot be
//! tested here is skipped by name, with the reason, never silently.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// Readers in other languages, pinned; installed into a virtual environment in the target folder.
const PYTHON_PACKAGES: [&str; 4] =
    ["pyarrow==22.0.0", "duckdb==1.4.2", "hdrhistogram==0.10.3", "jsonschema==4.25.1"];

/// Programs of the distribution that some tests load or compare with.
const DISTRIBUTION_PACKAGES: [(&str, &str); 3] =
    [("nginx", "nginx"), ("wrk", "wrk"), ("chromium", "chromium")];

/// Systems that end-to-end tests start, as `assay doctor` calls them; it pins their versions.
const SYSTEMS: [&str; 3] = ["cometbft", "cometbft-load", "cometbft-report"];

/// Seconds that each fuzz target runs.
const FUZZ_SECONDS: u32 = 60;

/// Benchmarks and experiments at toy size, so that they cannot rot, with their words behind `cargo xtask`.
const TOYS: [(&str, &[&str]); 5] = [
    ("toy benchmark", &["bench", "load", "--toy"]),
    ("toy page", &["bench", "page", "--toy"]),
    ("toy testnet", &["bench", "testnet", "--toy"]),
    ("toy figures", &["figures", "--toy"]),
    ("toy theory", &["theory", "--toy"]),
];

struct Tally {
    passed: u32,
    failed: Vec<String>,
    skipped: Vec<String>,
}

/// Runs the suite; with `quick`, without fuzzing and benchmarks.
pub fn run(root: &Path, quick: bool) -> Result<(), String> {
    let mut tally = Tally { passed: 0, failed: Vec::new(), skipped: Vec::new() };
    // Downloads wait for a network, compilers for processors: both at once.
    let preparing = std::thread::spawn({
        let root = root.to_owned();
        move || prepare(&root)
    });
    step(&mut tally, root, "format", &["cargo", "fmt", "--all", "--check"], None);
    step(&mut tally, root, "tidy", &["cargo", "xtask", "tidy"], None);
    let clippy =
        ["cargo", "clippy", "--release", "--workspace", "--all-targets", "--", "-D", "warnings"];
    step(&mut tally, root, "lints", &clippy, None);
    // The binary first: the end-to-end tests start it.
    step(&mut tally, root, "build", &["cargo", "build", "--release", "--workspace"], None);
    let installing = std::thread::spawn({
        let root = root.to_owned();
        move || systems(&root)
    });
    let build = ["cargo", "test", "--release", "--workspace", "--no-run"];
    step(&mut tally, root, "build of the tests", &build, None);
    let prepared = preparing.join().map_err(|_| "preparing panicked".to_owned())?;
    tally.skipped.extend(prepared.skipped);
    tally.skipped.extend(installing.join().map_err(|_| "installing panicked".to_owned())?);
    let tests = ["cargo", "test", "--release", "--workspace", "--no-fail-fast"];
    step(&mut tally, root, "tests", &tests, prepared.python.as_deref());
    let fuzzing = if quick {
        tally.skipped.push("fuzzing and toy benchmarks (--quick)".to_owned());
        None
    } else {
        // Beside the rest, of which nothing is judged by its speed: fuzzing takes processors, and what follows waits
        // for browsers and for its own loads most of the time. What that leaves of the processors is its.
        let seconds = FUZZ_SECONDS.to_string();
        let fuzz = ["nice", "-n", "10", "cargo", "xtask", "fuzz", "--seconds", &seconds];
        Some(Aside::start(root, "fuzzing", &fuzz))
    };
    step(&mut tally, root, "docs", &["cargo", "xtask", "docs"], None);
    page(&mut tally, root);
    newcomer(&mut tally, root);
    if let Some(fuzzing) = fuzzing {
        for (name, words) in TOYS {
            let command: Vec<&str> =
                ["cargo", "xtask"].into_iter().chain(words.iter().copied()).collect();
            step(&mut tally, root, name, &command, None);
        }
        fuzzing.end(&mut tally);
    }
    conclude(&tally)
}

fn step(tally: &mut Tally, root: &Path, name: &str, command: &[&str], python: Option<&Path>) {
    println!("\n=== {name}: {}", command.join(" "));
    let mut process = Command::new(command[0]);
    process.args(&command[1..]).current_dir(root).stdin(Stdio::null());
    if let Some(python) = python {
        process.env("ASSAY_TEST_PYTHON", python);
    }
    let before = uptime_s();
    tally.ended(name, process.status());
    println!("=== {name}: {:.0} s", uptime_s() - before);
}

impl Tally {
    fn ended(&mut self, name: &str, status: std::io::Result<ExitStatus>) {
        match status {
            Ok(status) if status.success() => self.passed += 1,
            Ok(status) => self.failed.push(format!("{name} ({status})")),
            Err(error) => self.failed.push(format!("{name} (could not start: {error})")),
        }
    }
}

/// A step beside other steps. What it says is kept in a file, and said when it is waited for.
struct Aside {
    name: &'static str,
    child: std::io::Result<Child>,
    log: PathBuf,
    began_s: f64,
}

impl Aside {
    fn start(root: &Path, name: &'static str, command: &[&str]) -> Self {
        println!("\n=== {name}, beside what follows: {}", command.join(" "));
        let log = root.join("target").join(format!("{name}.log"));
        let child = std::fs::File::create(&log).and_then(|file| {
            let errors = file.try_clone()?;
            let mut process = Command::new(command[0]);
            process.args(&command[1..]).current_dir(root).stdin(Stdio::null());
            process.stdout(file).stderr(errors).spawn()
        });
        Self { name, child, log, began_s: uptime_s() }
    }

    fn end(self, tally: &mut Tally) {
        let status = self.child.and_then(|mut child| child.wait());
        println!("\n=== {}", self.name);
        print!("{}", std::fs::read_to_string(&self.log).unwrap_or_default());
        tally.ended(self.name, status);
        println!("=== {}: {:.0} s", self.name, uptime_s() - self.began_s);
    }
}

/// Seconds since the host was started, for a reader of the log: which step the suite's time goes into.
fn uptime_s() -> f64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    text.split(' ').next().and_then(|seconds| seconds.parse().ok()).unwrap_or_default()
}

/// What the steps need beside a compiler.
struct Prepared {
    python: Option<PathBuf>,
    skipped: Vec<String>,
}

/// Gets what is not there yet; what cannot be had is said by name.
fn prepare(root: &Path) -> Prepared {
    let mut skipped = Vec::new();
    let python = python(root).map_err(|reason| skipped.push(reason)).ok();
    skipped.extend(
        DISTRIBUTION_PACKAGES
            .iter()
            .filter_map(|(program, package)| distribution(program, package).err()),
    );
    if let Some(reason) = crate::docs::missing(root) {
        skipped.push(format!("building the book and looking at its anchors: {reason}"));
    }
    if crate::web::missing().is_none() {
        // The step that needs them says what is wrong with them.
        let _ = crate::web::install(root, &root.join("web"));
    }
    Prepared { python, skipped }
}

/// Installs the systems that tests start; a test whose system is missing says so by name. Gives what is skipped.
fn systems(root: &Path) -> Vec<String> {
    let assay = root.join("target/release/assay");
    let mut skipped = Vec::new();
    for name in SYSTEMS {
        println!("=== {name}: assay doctor --install {name}");
        if !succeeds(Command::new(&assay).args(["doctor", "--install", name])) {
            skipped.push(format!("tests that start {name}: it could not be installed"));
        }
    }
    skipped
}

/// The report's page: what is checked in is what the sources build, and a real report holds in a browser.
fn page(tally: &mut Tally, root: &Path) {
    if let Some(reason) = crate::web::missing() {
        tally.skipped.push(format!("building the page and looking at it: {reason}"));
        return;
    }
    if !crate::web::has_browser() {
        tally.skipped.push("the page in a browser: there is no chromium".to_owned());
    }
    step(tally, root, "page", &["cargo", "xtask", "web", "--check"], None);
}

/// A copy of the checkout gets a new system, whose conformance test passes before its first line is changed.
fn newcomer(tally: &mut Tally, root: &Path) {
    let copy = root.join("target/newcomer");
    let made = copy_checkout(root, &copy).and_then(|()| crate::new_system::run(&copy, "sample"));
    if let Err(error) = made {
        tally.failed.push(format!("new system ({error})"));
        return;
    }
    let manifest = copy.join("Cargo.toml").display().to_string();
    let target = root.join("target").display().to_string();
    // Nothing of the copy's build is used again, and its one test is short: it is not optimised.
    let test = [
        "cargo",
        "test",
        "--release",
        "--config",
        "profile.release.opt-level=0",
        "--manifest-path",
        &manifest,
        "--target-dir",
        &target,
        "--package",
        "sample-adapter",
    ];
    step(tally, root, "new system", &test, None);
}

/// Copies what git knows of the checkout, as it stands.
fn copy_checkout(root: &Path, copy: &Path) -> Result<(), String> {
    let _ = std::fs::remove_dir_all(copy);
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("running git: {error}"))?;
    let text = String::from_utf8_lossy(&listed.stdout);
    for name in text.split('\0').filter(|name| !name.is_empty()) {
        let (from, to) = (root.join(name), copy.join(name));
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|e| format!("making {}: {e}", folder.display()))?;
        }
        if from.is_file() {
            std::fs::copy(&from, &to).map_err(|e| format!("copying {name}: {e}"))?;
        }
    }
    Ok(())
}

fn conclude(tally: &Tally) -> Result<(), String> {
    println!();
    for skipped in &tally.skipped {
        println!("SKIPPED {skipped}");
    }
    for failed in &tally.failed {
        println!("FAILED {failed}");
    }
    println!(
        "suite: {} passed, {} failed, {} skipped",
        tally.passed,
        tally.failed.len(),
        tally.skipped.len()
    );
    if tally.failed.is_empty() { Ok(()) } else { Err(tally.failed.join(", ")) }
}

/// A Python with the readers, or why there is none.
fn python(root: &Path) -> Result<PathBuf, String> {
    let home = root.join("target/python");
    let python = home.join("bin/python3");
    let stamp = home.join("installed");
    let wanted = PYTHON_PACKAGES.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(python);
    }
    println!("=== readers in other languages: {}", PYTHON_PACKAGES.join(" "));
    let made = succeeds(Command::new("python3").args(["-m", "venv"]).arg(&home))
        && succeeds(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .args(PYTHON_PACKAGES),
        );
    if made && std::fs::write(&stamp, wanted).is_ok() {
        return Ok(python);
    }
    Err(format!(
        "reading the run folder with DuckDB, pyarrow and hdrh: could not install {}",
        PYTHON_PACKAGES.join(" ")
    ))
}

/// Where a program is, if it is installed. Servers lie where only root looks.
pub fn program(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut known = std::env::split_paths(&paths).chain([PathBuf::from("/usr/sbin")]);
    known.find_map(|folder| Some(folder.join(name)).filter(|path| path.is_file()))
}

/// Installs a program of the distribution if it is missing; or why it cannot be had.
fn distribution(program: &str, package: &str) -> Result<(), String> {
    if self::program(program).is_some() {
        return Ok(());
    }
    println!("=== {program}: apt-get install {package}");
    let quiet = ["install", "-y", "-qq", "--no-install-recommends", package];
    let installed = succeeds(Command::new("apt-get").args(quiet))
        || (succeeds(Command::new("apt-get").args(["update", "-qq"]))
            && succeeds(Command::new("apt-get").args(quiet)));
    if installed {
        return Ok(());
    }
    Err(format!("tests that load {program}: could not install {package}"))
}

fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).status().is_ok_and(|status| status.success())
}
