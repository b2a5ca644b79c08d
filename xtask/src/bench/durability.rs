//! `cargo xtask bench durability`: what systems that people run lose of what they have acknowledged, by setting and by
//! fault, in one table of the experiments in experiments/durability. A cell is several trials; what is lost, stored twice
//! or out of order is counted by the ids of transactions, which the run folders name.

pub mod beside;
pub mod cost;

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::workbench::{Workbench, to_f64};

/// A part of the page: an experiment, what it is of, and how its figures become a table.
struct Part {
    file: &'static str,
    system: &'static str,
    table: fn(&Value) -> String,
}

const PARTS: [Part; 9] = [
    Part { file: "postgres", system: "PostgreSQL", table: rows },
    Part { file: "nats", system: "NATS JetStream, three servers", table: rows },
    Part { file: "nats-five", system: "NATS JetStream, five servers", table: rows },
    Part { file: "etcd", system: "etcd, three members", table: rows },
    Part { file: "kafka", system: "Kafka, one broker", table: rows },
    Part { file: "kafka-three", system: "Kafka, three brokers", table: rows },
    Part { file: "redis", system: "Redis", table: rows },
    Part { file: "redis-promoted", system: "Redis, its replica promoted", table: rows },
    Part { file: "postgres-isolation", system: "Isolation levels of PostgreSQL", table: isolation },
];

/// Where all of it stands.
const PAGE: &str = "results/bench-durability.md";

/// Exit codes of a run that came to its end: thresholds and audits may have said no, which the table says again.
const ENDED: [i32; 4] = [0, 97, 98, 99];

const HEAD: &str = "\
# Acknowledged and lost

Made by `cargo xtask bench durability`, a part alone by its name after it; the questions stand in \
[experiments/durability](../experiments/durability/README.md). Acknowledged is what clients were told is kept, lost what \
the ledger has not of it, in all trials of a row. No ledger: trials after which the system could not be asked what it holds.
";

const COLUMNS: &str = "\
| setting | fault | trials | in flight at the fault | acknowledged | lost | share | trials with loss | stored twice | out of order | no ledger |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

/// Measures, prints, and writes results/bench-durability.md if not at toy size; with `only` one experiment, whose rows take
/// the place of those that the page has; with `trials` so many a cell.
pub fn run(root: &Path, toy: bool, only: Option<&str>, trials: Option<&str>) -> Result<(), String> {
    if let Some(only) = only
        && !PARTS.iter().any(|part| part.file == only)
    {
        let known: Vec<&str> = PARTS.iter().map(|part| part.file).collect();
        return Err(format!("expected one of {}, got `{only}`", known.join(", ")));
    }
    // Of a part alone another one, so that two can be measured on a machine that carries both.
    let alone = only.map(|only| format!("-{only}")).unwrap_or_default();
    let at = Workbench::new(root, &format!("bench-durability{alone}"))?;
    for part in PARTS.iter().filter(|part| only.is_none_or(|only| only == part.file)) {
        let mut more = if toy { vec!["--profile=toy"] } else { Vec::new() };
        more.extend(trials.into_iter().flat_map(|trials| ["--trials", trials]));
        let host = super::machine();
        let made = match measured(root, &at, part.file, &more)? {
            Some(document) => (part.table)(&document),
            None => "Skipped: a program is missing.\n".to_owned(),
        };
        let made = format!("{}{host}\n\n{made}", part.heading());
        print!("{made}");
        // As it goes: a part takes minutes, and the next may fail.
        if !toy {
            keep(&root.join(PAGE), HEAD, &part.heading(), &made)?;
        }
    }
    std::fs::remove_dir_all(&at.folder)
        .map_err(|error| format!("removing {}: {error}", at.folder.display()))
}

/// Writes a part as it was measured now into a page, which begins with `head` where there is none.
fn keep(page: &Path, head: &str, heading: &str, made: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(page).unwrap_or_else(|_| head.to_owned());
    std::fs::write(page, put(&text, heading, made))
        .map_err(|error| format!("writing {}: {error}", page.display()))
}

/// A page with this part in the place of the one that it has.
fn put(page: &str, heading: &str, made: &str) -> String {
    let Some(start) = page.find(heading) else {
        return format!("{}\n\n{made}", page.trim_end());
    };
    let after = page[start + 3..].find("\n## ").map_or("", |at| &page[start + 3 + at + 1..]);
    let space = if after.is_empty() { "" } else { "\n" };
    format!("{}{made}{space}{after}", &page[..start])
}

impl Part {
    fn heading(&self) -> String {
        format!("## {}\n\n", self.system)
    }
}

/// Runs an experiment; `None`, said by name, where what it needs is not on this machine.
fn measured(
    root: &Path,
    at: &Workbench,
    file: &str,
    more: &[&str],
) -> Result<Option<Value>, String> {
    let path = root.join(format!("experiments/durability/{file}.toml"));
    let (path, runs) = (path.display().to_string(), at.runs().display().to_string());
    let mut words =
        vec!["run", &path, "--json", "--progress=none", "--no-calibration", "--runs", &runs];
    words.extend(more);
    eprintln!("{file} …");
    let output = Command::new(&at.assay)
        .args(&words)
        .current_dir(&at.folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("starting {}: {error}", at.assay.display()))?;
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    if complaint.contains("is not installed") || complaint.contains("disks take the right to mount")
    {
        println!("SKIPPED {file}: {}", complaint.lines().last().unwrap_or_default());
        return Ok(None);
    }
    if !output.status.code().is_some_and(|code| ENDED.contains(&code)) {
        return Err(format!("{file} ended with {}: {complaint}", output.status));
    }
    let document = serde_json::from_slice(&output.stdout);
    document.map(Some).map_err(|error| format!("{file} printed no JSON ({error}): {complaint}"))
}

/// The sums of all trials of a setting.
#[derive(Default)]
struct Cell {
    trials: u64,
    in_flight_min: Option<u64>,
    acknowledged: u64,
    lost: u64,
    trials_with_loss: u64,
    duplicate: u64,
    reordered: u64,
    unread: u64,
}

impl Cell {
    fn of(setting: &Value) -> Self {
        let mut cell = Self::default();
        for trial in setting["trials"].as_array().into_iter().flatten() {
            cell.trials += 1;
            let faults = trial["faults"].as_array().into_iter().flatten();
            // Of all servers the first is met by the full load, the others by what is left of it.
            let in_flight = faults.filter_map(|fault| fault["in_flight"].as_u64()).max();
            cell.in_flight_min = match (cell.in_flight_min, in_flight) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            let fates = &trial["fates"];
            if fates.is_null() {
                cell.unread += 1;
                continue;
            }
            let fate = |name: &str| fates[name].as_u64().unwrap_or_default();
            cell.acknowledged += fate("once") + fate("lost");
            cell.lost += fate("lost");
            cell.trials_with_loss += u64::from(fate("lost") > 0);
            cell.duplicate += fate("duplicate");
            cell.reordered += fate("reordered");
        }
        cell
    }

    fn share(&self) -> String {
        match self.acknowledged {
            0 => "–".to_owned(),
            all => format!("{:.1} %", to_f64(self.lost) / to_f64(all) * 100.0),
        }
    }
}

/// A row for each setting.
fn rows(document: &Value) -> String {
    let mut text = COLUMNS.to_owned();
    for setting in document["settings"].as_array().into_iter().flatten() {
        let key = setting["key"].as_str().unwrap_or_default();
        let (fault, others): (Vec<&str>, Vec<&str>) =
            key.split(',').partition(|part| part.starts_with("fault="));
        let value = |part: &&str| part.split_once('=').map_or(*part, |(_, value)| value).to_owned();
        let fault: Vec<String> = fault.iter().map(value).collect();
        let others: Vec<String> = others.iter().map(value).collect();
        let cell = Cell::of(setting);
        let in_flight =
            cell.in_flight_min.map_or_else(|| "–".to_owned(), |least| format!("≥ {least}"));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {in_flight} | {} | {} | {} | {} | {} | {} | {} |",
            if others.is_empty() { "default".to_owned() } else { others.join(", ") },
            fault.join(", "),
            cell.trials,
            cell.acknowledged,
            cell.lost,
            cell.share(),
            cell.trials_with_loss,
            cell.duplicate,
            cell.reordered,
            cell.unread,
        );
    }
    text
}

/// The finding of the check of isolation at each level.
fn isolation(document: &Value) -> String {
    let mut text = "| setting | transactions that committed | the check `list-append` |\n| --- | ---: | --- |\n".to_owned();
    for setting in document["settings"].as_array().into_iter().flatten() {
        for trial in setting["trials"].as_array().into_iter().flatten() {
            let mut checks = trial["checks"].as_array().into_iter().flatten();
            let check = checks.find(|check| check["name"] == "list-append");
            let said = check.map_or_else(String::new, |check| {
                format!("{} {}", check["count"], check["words"].as_str().unwrap_or_default())
            });
            let outcome = check.map_or("–", |check| check["outcome"].as_str().unwrap_or("–"));
            let committed = trial["counts"]["committed"].as_u64();
            let committed = committed.map_or_else(|| "–".to_owned(), |count| count.to_string());
            let key = setting["key"].as_str().unwrap_or_default();
            let said = said.replace('|', "\\|").replace('\n', " ");
            let _ = writeln!(text, "| {key} | {committed} | {outcome}: {said} |");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a part that is measured alone takes the place of the one that the page has, or stands at its end.
    #[test]
    fn one_part() {
        let page = put(&put("# Page\n", "## A\n\n", "## A\n\n1\n"), "## B\n\n", "## B\n\n2\n");
        assert_eq!(page, "# Page\n\n## A\n\n1\n\n## B\n\n2\n");
        let page = put(&page, "## A\n\n", "## A\n\n3\n");
        assert_eq!(page, "# Page\n\n## A\n\n3\n\n## B\n\n2\n");
        assert_eq!(put(&page, "## B\n\n", "## B\n\n4\n"), page.replace('2', "4"));
    }
}
