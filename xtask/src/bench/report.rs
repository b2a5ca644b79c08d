//! `cargo xtask bench report`: what a report of ten million rows costs, beside DuckDB reading the same file. DuckDB is asked
//! the three questions that hold most of a report: quantiles of the response time, three latencies by outcome, and a
//! second at a time. A report answers these and all else: every audit, intervals, the picture over time, the page.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::measure::{Cost, run as run_once};

/// What makes the run: an example of the analysis.
const EXAMPLE: &str = "analyse_ten_million";
/// Readers who share the rows.
const READERS: u32 = 4;

/// How much is read, and how often.
#[derive(Clone, Copy)]
pub struct Size {
    rows: u64,
    rounds: usize,
    /// One of the two may take this long.
    seconds_max: u64,
    /// The function of DuckDB that gives quantiles.
    quantile: &'static str,
    /// None: the figures say nothing.
    page: Option<&'static str>,
}

/// That anything is read at all.
pub const TOY: Size =
    Size { rows: 300_000, rounds: 1, seconds_max: 300, quantile: EXACT, page: None };

/// Ten million rows.
pub const TEN_MILLION: Size =
    Size { rows: 10_000_000, rounds: 5, page: Some("results/bench-report.md"), ..TOY };

/// A billion, of which DuckDB gives no exact quantiles in this memory.
pub const BILLION: Size = Size {
    rows: 1_000_000_000,
    rounds: 1,
    seconds_max: 3_600,
    quantile: "approx_quantile",
    page: Some("results/bench-report-billion.md"),
};

/// Exact quantiles.
const EXACT: &str = "quantile_disc";

/// The questions to DuckDB, on one thread. A process is started for them, as for a report.
const QUERIES: &str = r#"
import duckdb, sys
db = duckdb.connect()
db.execute("SET threads = 1")
db.execute("SET enable_progress_bar = false")
path = sys.argv[1].replace("'", "''")
qs = "[0.5, 0.9, 0.95, 0.99, 0.999]"
response = "committed_after_due_ns"
quantile = sys.argv[2]
lag = "ready_after_ns + sent_after_ready_ns"
rows = db.execute(f"SELECT count(*), {quantile}({response}, {qs}) FROM '{path}'").fetchall()
db.execute(f"""SELECT outcome, {quantile}({response}, {qs}), {quantile}({response} - ({lag}), {qs}),
    {quantile}({lag}, {qs}) FROM '{path}' GROUP BY outcome""").fetchall()
db.execute(f"""SELECT due_ns // 1000000000 AS second, count(*), {quantile}({response}, {qs})
    FROM '{path}' GROUP BY second ORDER BY second""").fetchall()
print(rows[0][0], duckdb.__version__)
"#;

/// Makes a run, reports it and asks DuckDB, in turns, and has readers share it; writes the page of the size.
pub fn run(root: &Path, size: Size) -> Result<(), String> {
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
    let machine = super::machine();
    let made = make(root, &folder, size.rows)?;
    let contest = Contest { assay: root.join("target/release/assay"), python, folder, made, size };
    let mut turns = Vec::new();
    for _ in 0..size.rounds {
        turns.push(contest.turn()?);
    }
    let text = page(&machine, size, &turns, &contest.shared()?);
    print!("{text}");
    if let Some(page) = size.page {
        let path = root.join(page);
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
    size: Size,
}

/// The cost of readers of shares, and of the one who merged them.
struct Shared {
    readers: Vec<Cost>,
    merge: Cost,
}

impl Contest {
    fn turn(&self) -> Result<Turn, String> {
        let page = self.folder.join("page.html").display().to_string();
        let run = self.made.display().to_string();
        let words = ["report", &run, "--format", "html", "-o", &page].map(str::to_owned);
        let report = self.once(&self.assay, &words)?;
        let table = self.made.join("settings/default/trial-0/transactions.parquet");
        let words = ["-c", QUERIES, &table.display().to_string(), self.size.quantile];
        let words = words.map(str::to_owned);
        let duckdb = self.once(&self.python, &words)?;
        let said = duckdb.stdout.trim();
        let (rows, version) = said.split_once(' ').unwrap_or((said, ""));
        if rows.parse() != Ok(self.size.rows) {
            return Err(format!("DuckDB counted `{rows}` rows"));
        }
        Ok(Turn { version: version.to_owned(), report, duckdb })
    }

    /// The page of shares, which must be that of the whole.
    fn shared(&self) -> Result<Shared, String> {
        let run = self.made.display().to_string();
        let file = |number: u32| self.folder.join(format!("part-{number}")).display().to_string();
        let mut readers = Vec::new();
        for number in 1..=READERS {
            let (share, file) = (format!("{number}/{READERS}"), file(number));
            let words = ["report", &run, "--part", &share, "-o", &file].map(str::to_owned);
            readers.push(self.once(&self.assay, &words)?);
        }
        let page = |name: &str| self.folder.join(name);
        let merged = page("merged.html").display().to_string();
        let mut words = ["report", &run, "--format", "html", "-o", &merged, "--merge"]
            .map(str::to_owned)
            .to_vec();
        words.extend((1..=READERS).map(file));
        let merge = self.once(&self.assay, &words)?;
        let read = |name| std::fs::read(page(name)).map_err(|error| format!("{name}: {error}"));
        if read("page.html")? != read("merged.html")? {
            return Err("the page of shares is not that of the whole".to_owned());
        }
        Ok(Shared { readers, merge })
    }

    fn once(&self, program: &Path, words: &[String]) -> Result<Cost, String> {
        let cost = run_once(
            program,
            words,
            super::GENERATOR_CPU,
            &self.folder,
            self.size.seconds_max,
            None,
        )?;
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

fn page(machine: &str, size: Size, turns: &[Turn], shared: &Shared) -> String {
    let version = turns.first().map_or("", |turn| turn.version.as_str());
    let Size { rows, quantile, .. } = size;
    let flag = if rows > TEN_MILLION.rows { " --billion" } else { "" };
    let mut text = format!(
        "# The cost of a report\n\nMade by `cargo xtask bench report{flag}`. {machine}\n\nA synthetic run of {rows} rows, 50,000 a \
         second, of which one in 997 is refused; up to ten million with its ledger. *Report* is `assay report --format html`: \
         every row and ledger entry read, every audit, all intervals, the picture and the page. *DuckDB* ({version}, on one \
         thread) answers three questions of the same transactions.parquet: five quantiles (`{quantile}`) of the response time; of \
         response, service time and send lag by outcome; of the response time by second. Both on one processor, in turns, \
         start included. *Four readers* are `--part 1/4` to `4/4`, the slowest of them, each with a quarter of the rows; *merge* \
         is `--merge` of theirs, whose page is the report's to the byte; once.\n\n| | CPU s (range) | ns a row | peak MB |\n| \
         --- | --- | --- | --- |\n"
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
    let slowest = shared.readers.iter().max_by(|a, b| a.cpu_ms.total_cmp(&b.cpu_ms));
    let quarter = rows / u64::from(READERS);
    let ways = [("four readers, each", slowest, quarter), ("merge", Some(&shared.merge), rows)];
    for (name, cost, rows) in ways {
        let Some(cost) = cost else { continue };
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let each = cost.cpu_ms * 1e6 / rows as f64;
        let (s, mb) = (cost.cpu_ms / 1e3, cost.rss_bytes / 1_000_000);
        let _ = writeln!(text, "| {name} | {s:.2} | {each:.0} | {mb} |");
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
