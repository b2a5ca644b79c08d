//! `cargo xtask bench report`: what a report of ten million rows costs, beside DuckDB reading the same file. DuckDB is asked
//! the three questions that hold most of a report: quantiles of the response time, three latencies by outcome, and a
//! second at a time. A report answers these and all else: every audit, intervals, the picture over time, the page.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::measure::{Cost, run as run_once};

/// What makes the run: an example of the analysis.
const EXAMPLE: &str = "analyse_ten_million";
const ROWS: u64 = 10_000_000;
const ROWS_TOY: u64 = 100_000;
const ROUNDS: usize = 5;
const ROUNDS_TOY: usize = 1;
/// One of the two may take this long.
const SECONDS_MAX: u64 = 300;

/// What DuckDB is asked, exactly and on one thread. Its process is started, and the library loaded, as a report's is.
const QUERIES: &str = r#"
import duckdb, sys
db = duckdb.connect()
db.execute("SET threads = 1")
db.execute("SET enable_progress_bar = false")
path = sys.argv[1].replace("'", "''")
qs = "[0.5, 0.9, 0.95, 0.99, 0.999]"
response = "committed_after_due_ns"
lag = "ready_after_ns + sent_after_ready_ns"
rows = db.execute(f"SELECT count(*), quantile_disc({response}, {qs}) FROM '{path}'").fetchall()
db.execute(f"""SELECT outcome, quantile_disc({response}, {qs}), quantile_disc({response} - ({lag}), {qs}),
    quantile_disc({lag}, {qs}) FROM '{path}' GROUP BY outcome""").fetchall()
db.execute(f"""SELECT due_ns // 1000000000 AS second, count(*), quantile_disc({response}, {qs})
    FROM '{path}' GROUP BY second ORDER BY second""").fetchall()
print(rows[0][0], duckdb.__version__)
"#;

/// Makes a run, reports it and asks DuckDB, in turns; writes results/bench-report.md if not at toy size.
pub fn run(root: &Path, toy: bool) -> Result<(), String> {
    // The suite's own has DuckDB, too; what was asked for by name comes first.
    let suites = root.join("target/python/bin/python3");
    let python = super::find_in("python", "python").or_else(|| suites.is_file().then_some(suites));
    let Some(python) = python else {
        println!("SKIPPED bench report: run assay doctor --install python, which has DuckDB");
        return Ok(());
    };
    let folder = root.join("target/bench-report");
    let at = |doing: &str, error: std::io::Error| format!("{doing} {}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|error| at("removing", error))?;
    }
    std::fs::create_dir_all(&folder).map_err(|error| at("making", error))?;
    let (rows, rounds) = if toy { (ROWS_TOY, ROUNDS_TOY) } else { (ROWS, ROUNDS) };
    let machine = super::machine();
    let made = make(root, &folder, rows)?;
    let contest = Contest { assay: root.join("target/release/assay"), python, folder, made, rows };
    let mut turns = Vec::new();
    for _ in 0..rounds {
        turns.push(contest.turn()?);
    }
    let text = page(&machine, rows, &turns);
    print!("{text}");
    if !toy {
        let path = root.join("results/bench-report.md");
        // What people wrote behind the measurement stays.
        let old = std::fs::read_to_string(&path).unwrap_or_default();
        let written = old.find("\n## ").map_or("", |at| &old[at..]);
        std::fs::write(&path, text + written)
            .map_err(|error| format!("writing {}: {error}", path.display()))?;
    }
    let folder = &contest.folder;
    std::fs::remove_dir_all(folder)
        .map_err(|error| format!("removing {}: {error}", folder.display()))
}

/// One report and the three questions, one after the other.
struct Turn {
    /// DuckDB's.
    version: String,
    report: Cost,
    duckdb: Cost,
}

struct Contest {
    assay: PathBuf,
    python: PathBuf,
    folder: PathBuf,
    made: PathBuf,
    rows: u64,
}

impl Contest {
    fn turn(&self) -> Result<Turn, String> {
        let page = self.folder.join("page.html").display().to_string();
        let run = self.made.display().to_string();
        let words = ["report", &run, "--format", "html", "-o", &page].map(str::to_owned);
        let report = self.once(&self.assay, &words)?;
        let table = self.made.join("settings/default/trial-0/transactions.parquet");
        let words = ["-c".to_owned(), QUERIES.to_owned(), table.display().to_string()];
        let duckdb = self.once(&self.python, &words)?;
        let said = duckdb.stdout.trim();
        let (rows, version) = said.split_once(' ').unwrap_or((said, ""));
        if rows.parse() != Ok(self.rows) {
            return Err(format!("DuckDB counted `{rows}` rows"));
        }
        Ok(Turn { version: version.to_owned(), report, duckdb })
    }

    fn once(&self, program: &Path, words: &[String]) -> Result<Cost, String> {
        let cost = run_once(program, words, super::GENERATOR_CPU, &self.folder, SECONDS_MAX, None)?;
        if cost.succeeded { Ok(cost) } else { Err(format!("{} failed", program.display())) }
    }
}

/// A run of so many rows in `folder`: its path.
fn make(root: &Path, folder: &Path, rows: u64) -> Result<PathBuf, String> {
    // Of the whole workspace, as the tests' build has made it: alone, analysis would be built with other features.
    let build = ["build", "--release", "--quiet", "--workspace", "--example", EXAMPLE];
    let built = Command::new("cargo").args(build).current_dir(root).status();
    if !built.is_ok_and(|status| status.success()) {
        return Err(format!("making a run: the example {EXAMPLE} does not build"));
    }
    let made = Command::new(root.join("target/release/examples").join(EXAMPLE))
        .arg("write")
        .arg(folder)
        .arg(rows.to_string())
        .output()
        .map_err(|error| format!("making a run: {error}"))?;
    let path = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    if !made.status.success() || path.is_empty() {
        return Err(format!("making a run: {}", String::from_utf8_lossy(&made.stderr)));
    }
    Ok(PathBuf::from(path))
}

fn page(machine: &str, rows: u64, turns: &[Turn]) -> String {
    let version = turns.first().map_or("", |turn| turn.version.as_str());
    let mut text = format!(
        "# The cost of a report\n\nMade by `cargo xtask bench report`. {machine}\n\nA synthetic run of {rows} rows, 50,000 a \
         second, of which one in 997 is refused, with its ledger. *Report* is `assay report --format html`: \
         every row and ledger entry read, every audit, all intervals, the picture and the page. *DuckDB* ({version}, on one \
         thread) answers three questions of the same transactions.parquet: five exact quantiles of the response time; of \
         response, service time and send lag by outcome; of the response time by second. Both on one processor, in turns, \
         start included.\n\n| | CPU s (range) | ns a row | peak MB |\n| --- | --- | --- | --- |\n"
    );
    type Of = fn(&Turn) -> &Cost;
    let both: [(&str, Of); 2] =
        [("report", |turn| &turn.report), ("DuckDB, three questions", |turn| &turn.duckdb)];
    for (name, of) in both {
        let cpu: Vec<f64> = turns.iter().map(|turn| of(turn).cpu_ms / 1e3).collect();
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let each: Vec<f64> = cpu.iter().map(|s| s * 1e9 / rows as f64).collect();
        let peak = turns.iter().map(|turn| of(turn).rss_bytes).max().unwrap_or(0) / 1_000_000;
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {peak} |",
            super::spread(&cpu, 2),
            super::middle(&each, 0)
        );
    }
    let ratios: Vec<f64> =
        turns.iter().map(|turn| turn.report.cpu_ms / turn.duckdb.cpu_ms.max(1.0)).collect();
    let _ = writeln!(
        text,
        "\nReport ÷ DuckDB, same turn: {}. Medians of {} turns.",
        super::spread(&ratios, 2),
        turns.len()
    );
    text
}
