//! `cargo xtask web [--check]`: the page's script and style. Builds web/dist from its sources (with `--check` compares
//! instead), makes a real run, and lets a browser look at its page.
//!
//! It must never change a source, and never call a test passed that did not run: what cannot be had here is named.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Older ones lack what the tests use: the raw form of deflate in streams, and globs in the test runner's shell.
const NODE_MAJOR_MIN: u32 = 20;

/// What `assay run` may end with here: the fixture is about the page, and a busy machine may spoil its numbers.
const EXITS: [i32; 3] = [0, 97, 99];

/// Exit codes of `assay compare` here: which rate is the better one is not asked.
const COMPARED: [i32; 3] = [0, 97, 98];

/// The tests that need no browser.
const WITHOUT_BROWSER: [&str; 2] = ["tests/packed.test.mjs", "tests/built.test.mjs"];

/// Builds or compares, then tests.
pub fn run(root: &Path, check: bool) -> Result<(), String> {
    if let Some(reason) = missing() {
        return Err(format!("building web/: {reason}"));
    }
    let web = root.join("web");
    install(root, &web)?;
    if !check {
        succeed(
            Command::new("npm").args(["run", "--silent", "build"]).current_dir(&web),
            "building web/dist",
        )?;
    }
    let compare = ["run", "--silent", "check"];
    succeed(
        Command::new("npm").args(compare).current_dir(&web),
        "comparing web/dist with its sources",
    )?;
    if !has_browser() {
        println!("SKIPPED the page in a browser: no chromium on the PATH, and CHROMIUM names none");
        let tests =
            Command::new("node").arg("--test").args(WITHOUT_BROWSER).current_dir(&web).status();
        return ended(tests, "testing web/ without a browser");
    }
    build(root)?;
    let runs = root.join("target/web-runs");
    let _ = std::fs::remove_dir_all(&runs);
    // Runs wait most of their time.
    let search = std::thread::spawn({
        let (root, folder) = (root.to_owned(), runs.join("search"));
        move || run_of(&root, &folder, "web/tests/typical/search.toml", &[], usize::MAX)
    });
    let folder = run_of(root, &runs.join("fixture"), "web/tests/fixture.toml", &[], usize::MAX)?;
    let typical = typical(root, &runs)?;
    let searched = search.join().map_err(|_| "the search's thread panicked".to_owned())??;
    let tests = Command::new("npm")
        .args(["test", "--silent"])
        .current_dir(&web)
        .env("ASSAY_PAGE", folder.join("report.html"))
        .env("ASSAY_SUMMARY", folder.join("summary.json"))
        .env("ASSAY_COMPARISON", comparison(root, &runs)?)
        .env("ASSAY_TYPICAL", &typical)
        .env("ASSAY_PROGRAM", root.join("target/release/assay"))
        .env("ASSAY_PAGES", several(root, &runs, &searched)?)
        .stdin(Stdio::null())
        .status();
    ended(tests, "testing the page")
}

/// Why the page cannot be built or looked at here.
pub fn missing() -> Option<String> {
    let Ok(output) = Command::new("node").arg("--version").stdin(Stdio::null()).output() else {
        return Some(format!(
            "there is no node; install version {NODE_MAJOR_MIN} or newer, with npm"
        ));
    };
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let major = version.trim_start_matches('v').split('.').next().and_then(|it| it.parse().ok());
    match major {
        Some(major) if major >= NODE_MAJOR_MIN => None,
        Some::<u32>(_) | None => Some(format!(
            "node says that it is `{version}`; version {NODE_MAJOR_MIN} or newer is needed"
        )),
    }
}

/// Whether the browser tests can run.
pub fn has_browser() -> bool {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::var_os("CHROMIUM").is_some()
        || names.iter().any(|name| crate::suite::program(name).is_some())
}

/// The pinned packages, installed anew only when the lock file has changed.
pub fn install(root: &Path, web: &Path) -> Result<(), String> {
    let lock = web.join("package-lock.json");
    let wanted =
        std::fs::read_to_string(&lock).map_err(|e| format!("reading {}: {e}", lock.display()))?;
    let stamp = root.join("target/web-installed");
    let is_installed = std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted);
    if is_installed && web.join("node_modules").is_dir() {
        return Ok(());
    }
    let install = ["ci", "--no-audit", "--no-fund", "--loglevel=error"];
    succeed(Command::new("npm").args(install).current_dir(web), "installing web/'s packages")?;
    std::fs::write(&stamp, wanted).map_err(|e| format!("writing {}: {e}", stamp.display()))
}

/// The binary, which carries the script that was built a moment ago.
fn build(root: &Path) -> Result<(), String> {
    let build = ["build", "--release", "--package", "assay"];
    succeed(Command::new("cargo").args(build).current_dir(root), "building assay")
}

/// The pages that most readers will see, by what is run for them. The demo is cut short: its page is what is looked at.
const TYPICAL: [(&str, &str, &[&str]); 5] = [
    ("one", "web/tests/typical/one.toml", &[]),
    ("ramp", "web/tests/typical/ramp.toml", &[]),
    ("rates", "web/tests/typical/rates.toml", &[]),
    ("network", "web/tests/typical/network.toml", &[]),
    ("demo", "demo", &["--set", "load.duration=6s"]),
];

/// A screen of a terminal is taken to have so many columns and lines: a plain run is to fit one, and the demo three.
const SCREEN_COLUMNS: usize = 80;
const SCREEN_LINES: usize = 40;

/// A folder with the typical pages, each named by its run.
fn typical(root: &Path, runs: &Path) -> Result<PathBuf, String> {
    let pages = runs.join("pages");
    std::fs::create_dir_all(&pages).map_err(|e| format!("making {}: {e}", pages.display()))?;
    let made = |(name, experiment, more): (&str, &str, &[&str])| {
        let lines_max = if name == "demo" { 3 * SCREEN_LINES } else { usize::MAX };
        let lines_max = if name == "one" { SCREEN_LINES } else { lines_max };
        let folder = run_of(root, &runs.join(name), experiment, more, lines_max)?;
        let page = pages.join(format!("{name}.html"));
        std::fs::copy(folder.join("report.html"), &page)
            .map(|_| ())
            .map_err(|e| format!("writing {}: {e}", page.display()))
    };
    // The demo, the last, takes as long as the others together.
    let (demo, others) = TYPICAL.split_last().ok_or("no page is typical")?;
    std::thread::scope(|scope| {
        let demo = scope.spawn(|| made(*demo));
        let others = others.iter().try_for_each(|page| made(*page));
        demo.join().map_err(|_| "the demo's thread panicked".to_owned())?.and(others)
    })?;
    Ok(pages)
}

/// The page of a comparison of two rates of one run.
fn comparison(root: &Path, runs: &Path) -> Result<PathBuf, String> {
    let page = runs.join("pages/comparison.html");
    let run = report_in(&runs.join("rates"))?;
    let status = Command::new(root.join("target/release/assay"))
        .arg("compare")
        .arg(run)
        .args(["--by", "rate", "--format", "html", "-o"])
        .arg(&page)
        .stdin(Stdio::null())
        .status();
    match status {
        Ok(status) if status.code().is_some_and(|code| COMPARED.contains(&code)) => Ok(page),
        other => ended(other, "comparing two rates").map(|()| page),
    }
}

/// A folder with the page of a search and its result document, of a history, and of two runs that cannot be compared.
fn several(root: &Path, runs: &Path, searched: &Path) -> Result<PathBuf, String> {
    let pages = runs.join("several");
    std::fs::create_dir_all(&pages).map_err(|e| format!("making {}: {e}", pages.display()))?;
    for (from, to) in [("report.html", "search.html"), ("summary.json", "search.json")] {
        std::fs::copy(searched.join(from), pages.join(to))
            .map_err(|e| format!("writing {to}: {e}"))?;
    }
    let history = runs.join("history");
    for seed in ["1", "2", "3"] {
        let more = ["--seed", seed, "--duration", "2s"];
        run_of(root, &history, "web/tests/typical/one.toml", &more, usize::MAX)?;
    }
    let assay = |words: &[&Path], page: &str| {
        let mut command = Command::new(root.join("target/release/assay"));
        command.args(words).arg("-o").arg(pages.join(page)).current_dir(root);
        succeed(&mut command, page)
    };
    let word = Path::new;
    assay(&[word("list"), word("--trend"), word("one"), word("--runs"), &history], "trend.html")?;
    let (one, ramp) = (report_in(&runs.join("one"))?, report_in(&runs.join("ramp"))?);
    assay(&[word("report"), &one, &ramp, word("--format"), word("html")], "two.html")?;
    Ok(pages)
}

/// A run by the built binary: its folder. What it prints on a terminal has so many lines at most.
fn run_of(
    root: &Path,
    runs: &Path,
    experiment: &str,
    more: &[&str],
    lines_max: usize,
) -> Result<PathBuf, String> {
    let assay = root.join("target/release/assay").display().to_string();
    let runs_text = runs.display().to_string();
    let words = [&assay, "run", experiment, "--progress", "none", "--runs", &runs_text];
    let quoted: Vec<String> =
        words.iter().chain(more).map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    let line = format!("stty cols {SCREEN_COLUMNS} rows {SCREEN_LINES}; {}", quoted.join(" "));
    // A terminal of its own (util-linux has `script` on every distribution), whose exit code is the run's.
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .current_dir(root)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("running {experiment} on a terminal: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.code().is_some_and(|code| EXITS.contains(&code)) {
        return Err(format!("running {experiment}: assay ended with {}\n{said}", output.status));
    }
    let folder = report_in(runs)?;
    let lines = said.lines().count();
    if lines > lines_max && output.status.success() && is_plain(&folder)? {
        return Err(format!("{experiment}: {lines} lines, more than {lines_max}:\n{said}"));
    }
    Ok(folder)
}

/// The run folder with a page in a folder of runs.
fn report_in(runs: &Path) -> Result<PathBuf, String> {
    let entries =
        std::fs::read_dir(runs).map_err(|e| format!("reading {}: {e}", runs.display()))?;
    let mut found = entries.filter_map(Result::ok).map(|entry| entry.path());
    found
        .find(|folder| folder.join("report.html").is_file())
        .ok_or_else(|| format!("no report.html in {}", runs.display()))
}

/// Whether no audit voids a number: what one does, for the machine's sake, is told at length.
fn is_plain(folder: &Path) -> Result<bool, String> {
    let file = folder.join("summary.json");
    let fail = |e: &dyn std::fmt::Display| format!("reading {}: {e}", file.display());
    let text = std::fs::read(&file).map_err(|e| fail(&e))?;
    let document: Value = serde_json::from_slice(&text).map_err(|e| fail(&e))?;
    let list = |of: &Value, name: &str| of[name].as_array().cloned().unwrap_or_default();
    let trials = list(&document, "settings").into_iter().flat_map(|it| list(&it, "trials"));
    let mut audits = trials.flat_map(|it| list(&it, "audits"));
    Ok(audits.all(|it| list(&it, "voids").is_empty()))
}

fn succeed(command: &mut Command, what: &str) -> Result<(), String> {
    ended(command.stdin(Stdio::null()).status(), what)
}

fn ended(status: std::io::Result<std::process::ExitStatus>, what: &str) -> Result<(), String> {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{what}: it ended with {status}; what it says stands above")),
        Err(error) => Err(format!("{what}: could not start: {error}")),
    }
}
