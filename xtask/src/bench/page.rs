//! `cargo xtask bench page`: what the page of a long run costs: its size, the processor time of writing it, and how
//! soon a browser has drawn it. The runs are made, not waited for (`analysis/examples/long_run.rs`).

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use super::measure::run as run_once;

/// A run of four settings with 16 node series.
struct Long {
    name: &'static str,
    rows: u64,
    seconds_a_setting: u64,
}

/// What makes the runs: an example of the analysis.
const EXAMPLE: &str = "long_run";

const FULL: [Long; 3] = [
    Long { name: "10 million rows, 30 min", rows: 10_000_000, seconds_a_setting: 450 },
    Long { name: "10 million rows, 2 h", rows: 10_000_000, seconds_a_setting: 1_800 },
    Long { name: "100 million rows, 80 min", rows: 100_000_000, seconds_a_setting: 1_200 },
];
const TOY: [Long; 1] = [Long { name: "100 thousand rows", rows: 100_000, seconds_a_setting: 60 }];

/// Times that a page is opened.
const TRIES: usize = 9;
const TRIES_TOY: usize = 2;
/// Writing a report may take this long.
const SECONDS_MAX: u64 = 600;

/// Makes the runs, writes their pages, opens them; results/bench-page.md if not at toy size.
pub fn run(root: &Path, toy: bool) -> Result<(), String> {
    let folder = root.join("target/bench-page");
    let at = |doing: &str, error: std::io::Error| format!("{doing} {}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|error| at("removing", error))?;
    }
    std::fs::create_dir_all(&folder).map_err(|error| at("making", error))?;
    let mut text = format!(
        "# The page of a long run\n\nMade by `cargo xtask bench page`. {}\n\nEach run has four settings and 16 node \
         series; its rows are synthetic. Writing is `assay report --format html`, the rows read and analysed included, \
         on one processor. Drawn is the time in headless Chromium until the first complete picture, median and range of \
         {TRIES}.\n\n| run | page kB | writing, CPU s | peak MB | drawn after ms |\n| --- | --- | --- | --- | --- |\n",
        super::machine()
    );
    let (runs, tries) = if toy { (&TOY[..], TRIES_TOY) } else { (&FULL[..], TRIES) };
    for long in runs {
        let line = of(root, &folder, long, tries)?;
        println!("{line}");
        let _ = writeln!(text, "{line}");
    }
    if !toy {
        let path = root.join("results/bench-page.md");
        std::fs::write(&path, text)
            .map_err(|error| format!("writing {}: {error}", path.display()))?;
    }
    std::fs::remove_dir_all(&folder).map_err(|error| at("removing", error))
}

fn of(root: &Path, folder: &Path, long: &Long, tries: usize) -> Result<String, String> {
    // Of the whole workspace, as the tests' build has made it: alone, analysis would be built with other features.
    let build = ["build", "--release", "--quiet", "--workspace", "--example", EXAMPLE];
    let built = Command::new("cargo").args(build).current_dir(root).status();
    if !built.is_ok_and(|status| status.success()) {
        return Err(format!("making a run: the example {EXAMPLE} does not build"));
    }
    let made = Command::new(root.join("target/release/examples").join(EXAMPLE))
        .arg(folder)
        .args([long.rows.to_string(), long.seconds_a_setting.to_string()])
        .current_dir(root)
        .output()
        .map_err(|error| format!("making a run: {error}"))?;
    let run = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    if !made.status.success() || run.is_empty() {
        return Err(format!("making a run: {}", String::from_utf8_lossy(&made.stderr)));
    }
    let page = folder.join("page.html");
    let arguments =
        ["report", &run, "--format", "html", "-o", &page.display().to_string()].map(str::to_owned);
    let assay = root.join("target/release/assay");
    let cost = run_once(&assay, &arguments, super::GENERATOR_CPU, folder, SECONDS_MAX, None)?;
    let bytes = std::fs::metadata(&page)
        .map_err(|error| format!("{}: no page was written: {error}", page.display()))?
        .len();
    let drawn = drawn(root, &page, tries)?;
    std::fs::remove_dir_all(&run).map_err(|error| format!("removing {run}: {error}"))?;
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let (kb, mb) = (bytes as f64 / 1e3, cost.rss_bytes as f64 / 1e6);
    Ok(format!("| {} | {kb:.0} | {:.1} | {mb:.0} | {drawn} |", long.name, cost.cpu_ms / 1e3))
}

/// Median and range, or why there is none.
fn drawn(root: &Path, page: &Path, tries: usize) -> Result<String, String> {
    if let Some(reason) = crate::web::missing() {
        return Ok(format!("not measured: {reason}"));
    }
    if !crate::web::has_browser() {
        return Ok("not measured: there is no chromium".to_owned());
    }
    crate::web::install(root, &root.join("web"))?;
    let output = Command::new("node")
        .arg("tests/time_to_picture.mjs")
        .arg(page)
        .arg(tries.to_string())
        .current_dir(root.join("web"))
        .output()
        .map_err(|error| format!("starting node: {error}"))?;
    if !output.status.success() {
        return Err(format!("opening the page: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let mut took: Vec<f64> = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("reading what the browser said: {error}"))?;
    took.sort_by(f64::total_cmp);
    let [first, .., last] = took.as_slice() else { return Err("nothing was measured".to_owned()) };
    Ok(format!("{:.0} ({first:.0}–{last:.0})", took[took.len() / 2]))
}
