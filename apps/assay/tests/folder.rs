//! The run folder is all that a report needs, and other people's tools read it: the same bytes from a copy
//! elsewhere, and DuckDB, pyarrow, hdrh and jsonschema in agreement with the summary.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::harness::{self, Place, Said, beside_others, finish, number, trial};
use serde_json::Value;

/// One run with every kind of end in it, for all tests of this file: a matrix of two, a limiter and lost answers.
static RUN: LazyLock<(Place, Value)> = LazyLock::new(|| {
    let place = Place::lasting("folder");
    let (_, document) = place.experiment(
        r#"
        name = "folder"
        question = "What is in a run folder?"
        notes = "Two settings, one of them with failures."
        system.kind = "echo"
        load = { rate = "2000/s", connections = 4, warmup = "1s", duration = "3s", timeout = "400ms", drain = "1s" }
        workload = { kinds = ["get", "put"] }
        [system.deploy]
        servers = 32
        service = { mean = "5ms", distribution = "exponential" }
        [matrix]
        server = { set = "system.deploy.faults", labels = ["lossy", "honest"], values = [
          { drop = 23, limit = { rate = "1500/s", burst = 500 } }, {} ] }
        [[threshold]]
        expr = "p99 < 1s"
        [report]
        tables = [{ rows = "server", columns = ["requests", "p50", "p99", "success"] }]
        "#,
    );
    assert_eq!(document["schema"], "assay.result/2");
    (place, document)
});

fn report(place: &Path, run: &Path, more: &[&str]) -> Said {
    let mut command = Command::new(harness::ASSAY);
    command.arg("report").arg(run).args(more).current_dir(place);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(&mut command)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Claim: `assay report` on a copy of the folder, with another name, elsewhere, by another working folder, gives
/// the same bytes in every form, and the same code.
#[test]
fn a_copy_gives_the_same_bytes() {
    let _beside = beside_others();
    let (place, _) = &*RUN;
    let (original, elsewhere) = (place.run_folder(), Place::new());
    let copied = elsewhere.path().join("some where/renamed");
    copy(&original, &copied);
    let forms = ["text", "md", "json", "html", "vegeta", "vegeta-12.7", "vegeta-json"];
    for form in forms {
        let first = report(place.path(), &original, &["--format", form]);
        let again = report(elsewhere.path(), &copied, &["--format", form]);
        assert!(first.stdout.len() > 100, "{form}: {}", first.stderr);
        assert_eq!(first.stdout, again.stdout, "{form}");
        assert_eq!((first.code, first.stderr), (again.code, again.stderr), "{form}");
    }
    let verbose = report(elsewhere.path(), &copied, &["--verbose"]);
    assert_eq!(verbose.stdout, report(place.path(), &original, &["-v"]).stdout);
}

/// Claim: a report changes no file of the folder, works where the folder cannot be written, and does not need
/// summary.json: everything after the run is computed from the record.
#[test]
fn a_report_only_reads() {
    let _beside = beside_others();
    let (place, document) = &*RUN;
    let elsewhere = Place::new();
    let copied = elsewhere.path().join("run");
    copy(&place.run_folder(), &copied);
    let before = listing(&copied);
    let json = report(elsewhere.path(), &copied, &["--format", "json"]);
    assert_eq!(json.json(), *document, "the report of a run is the document that the run printed");
    assert_eq!(listing(&copied), before);
    std::fs::remove_file(copied.join("summary.json")).unwrap();
    let again = report(elsewhere.path(), &copied, &["--format", "json"]);
    assert_eq!(again.stdout, json.stdout);
}

/// Claim: a folder that an earlier version wrote (`earlier/COMMIT`) is read, and its figures are what that version said.
#[test]
fn earlier_folders_are_read() {
    let _beside = beside_others();
    let earlier = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/earlier");
    let folders: Vec<_> =
        std::fs::read_dir(earlier).unwrap().map(|it| it.unwrap().path()).collect();
    assert!(!folders.is_empty());
    for folder in folders {
        let elsewhere = Place::new();
        let copied = elsewhere.path().join("run");
        copy(&folder, &copied);
        let text = std::fs::read_to_string(copied.join("summary.json")).unwrap();
        let then: Value = serde_json::from_str(&text).unwrap();
        let now = report(elsewhere.path(), &copied, &["--format", "json", "--verdict"]);
        now.expect_code(0);
        let now = now.json();
        for place in [
            "counts",
            "fates/once",
            "fates/lost",
            "fates/duplicate",
            "rates",
            "latency/0/stage",
            "latency/0/response/max_ns",
        ] {
            let of = |document| trial(document).pointer(&format!("/{place}")).cloned();
            assert!(of(&then).is_some(), "{place}");
            assert_eq!(of(&now), of(&then), "{place} of {}", folder.display());
        }
        let values = |document: &Value| {
            let quantiles = &trial(document)["latency"][0]["response"]["quantiles"];
            let all: Vec<_> =
                quantiles.as_array().unwrap().iter().map(|it| it["value_ns"].clone()).collect();
            all
        };
        assert!(values(&then).len() > 3);
        assert_eq!(values(&now), values(&then), "{}", folder.display());
    }
}

/// Every file below a folder with its content's length and checksum.
fn listing(folder: &Path) -> Vec<(String, usize, u64)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(listing(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            let mut sum = 0xcbf2_9ce4_8422_2325_u64;
            for byte in &bytes {
                sum = (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
            all.push((path.display().to_string(), bytes.len(), sum));
        }
    }
    all.sort();
    all
}

/// Claim: a report goes to the file that is named, and where that cannot be written it is said with code 1.
#[test]
fn a_report_goes_where_it_is_wanted() {
    let _beside = beside_others();
    let (place, _) = &*RUN;
    let elsewhere = Place::new();
    let run = place.run_folder();
    let said = report(elsewhere.path(), &run, &["--format", "md", "-o", "report.md"]);
    assert_eq!((said.stdout.as_str(), said.stderr.as_str()), ("", ""));
    let written = std::fs::read_to_string(elsewhere.path().join("report.md")).unwrap();
    assert_eq!(written, report(elsewhere.path(), &run, &["--format", "md"]).stdout);
    assert!(written.starts_with('#') && written.contains("| "), "{written}");
    let said = report(elsewhere.path(), &run, &["--format", "md", "-o", "no/such/folder.md"]);
    said.expect_code(1).expect_stderr("writing no/such/folder.md: No such file or directory");
}

/// Claim: a file of the record that was damaged is named, with what to do, code 1 and no panic.
#[test]
fn a_damaged_folder_is_named() {
    let _beside = beside_others();
    let (place, document) = &*RUN;
    let trial = trial(document)["path"].as_str().unwrap();
    let flipped = |bytes: &mut Vec<u8>| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x20;
    };
    let halved = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() / 2);
    type Damage<'a> = &'a dyn Fn(&mut Vec<u8>);
    let damages: [(&str, Damage<'_>); 5] = [
        ("transactions.parquet", &flipped),
        ("transactions.parquet", &halved),
        ("latency.hlog", &flipped),
        ("trial.json", &halved),
        ("seal.json", &halved),
    ];
    for (file, damage) in damages {
        let elsewhere = Place::new();
        let copied = elsewhere.path().join("run");
        copy(&place.run_folder(), &copied);
        let path = copied.join(trial).join(file);
        let mut bytes = std::fs::read(&path).unwrap();
        damage(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
        let said = report(elsewhere.path(), Path::new("run"), &[]);
        said.expect_code(1).expect_stderr(file).expect_stderr("restore it from a copy");
        assert!(!said.stderr.contains("panicked"), "{file}: {}", said.stderr);
    }
}

/// Claim: a folder of another version is refused with the file, both versions and what to do; it is neither called
/// damaged nor read as if nothing were in it.
#[test]
fn a_folder_of_another_version_is_refused() {
    let _beside = beside_others();
    let (place, document) = &*RUN;
    let trial = trial(document)["path"].as_str().unwrap();
    for (file, ours, theirs) in [
        ("plan.toml".to_owned(), "assay.plan/2", "assay.plan/1"),
        (format!("{trial}/trial.json"), "assay.trial/2", "assay.trial/1"),
    ] {
        let elsewhere = Place::new();
        let copied = elsewhere.path().join("run");
        copy(&place.run_folder(), &copied);
        let path = copied.join(&file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(ours), "{file}: {text}");
        std::fs::write(&path, text.replace(ours, theirs)).unwrap();
        let said = report(elsewhere.path(), Path::new("run"), &[]);
        said.expect_code(1)
            .expect_stderr(&file)
            .expect_stderr(&format!("it is `{theirs}`; this one reads `{ours}`"))
            .expect_stderr("run the experiment again");
    }
}

/// A Python with the readers; `None`, said by name, if there is none.
fn python(test: &str) -> Option<String> {
    let Ok(python) = std::env::var("ASSAY_TEST_PYTHON") else {
        let wanted =
            "a Python with duckdb, pyarrow, hdrh and jsonschema (cargo xtask test makes one)";
        harness::say(&format!("SKIPPED {test}: ASSAY_TEST_PYTHON does not name {wanted}"));
        return None;
    };
    let tried = Command::new(&python).args([SCRIPT, "--imports"]).output();
    match tried {
        Ok(output) if output.status.success() => Some(python),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            harness::say(&format!(
                "SKIPPED {test}: {python}: {}",
                said.lines().last().unwrap_or("no reason")
            ));
            None
        }
        Err(error) => {
            harness::say(&format!("SKIPPED {test}: {python}: {error}"));
            None
        }
    }
}

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/read_run.py");

/// The readers' findings in one trial of the run.
fn read(python: &str, place: &Place, trial: &Value) -> Value {
    let schema = Place::new();
    let text = schema.assay(&["schema", "result"]).stdout;
    let schema_path = schema.write("result.schema.json", text);
    let mut command = Command::new(python);
    command.arg(SCRIPT).arg(place.run_folder()).arg(trial["path"].as_str().unwrap());
    command.arg(schema_path).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(&mut command).expect_code(0).json()
}

/// Claim: DuckDB's counts by outcome and exact quantiles, pyarrow's number of rows, hdrh's merged quantiles
/// and count, and jsonschema all agree with summary.json, in a trial with failures and in one without.
#[test]
fn other_readers_agree_with_the_summary() {
    let Some(python) = python("other_readers_agree_with_the_summary") else { return };
    let _beside = beside_others();
    let (place, document) = &*RUN;
    for setting in document["settings"].as_array().unwrap() {
        let (key, trial) = (setting["key"].as_str().unwrap(), &setting["trials"][0]);
        let found = read(&python, place, trial);
        assert_eq!(found["schema_mistakes"].as_array().map(Vec::len), Some(0), "{found}");
        counts_agree(key, trial, &found);
        quantiles_agree(key, trial, &found);
    }
}

fn counts_agree(key: &str, trial: &Value, found: &Value) {
    let (counts, duckdb) = (&trial["counts"], &found["duckdb"]);
    for outcome in ["committed", "rejected", "unknown", "shed"] {
        let by_duckdb = duckdb["outcomes"][outcome].as_u64().unwrap_or(0);
        assert_eq!(by_duckdb, number(&counts[outcome]), "{key}: {outcome}");
    }
    assert_eq!(duckdb["classes"], counts["rejected_by_class"], "{key}");
    let rows = number(&found["pyarrow"]["rows"]);
    assert_eq!(rows, number(&found["pyarrow"]["metadata_rows"]));
    // The warm-up's rows, a third of the window's, are in the file and not in the counts.
    assert_eq!(rows, number(&counts["due"]) / 3 * 4, "{key}");
    if key == "server=lossy" {
        assert!(number(&counts["unknown"]) > 50, "{counts}");
        assert!(number(&counts["rejected"]) > 100, "{counts}");
    }
}

fn quantiles_agree(key: &str, trial: &Value, found: &Value) {
    let response = &trial["latency"][0]["response"];
    let names = ["p50", "p90", "p95", "p99"];
    for (index, name) in names.into_iter().enumerate() {
        let quantiles = response["quantiles"].as_array().unwrap();
        let summary = quantiles.iter().find(|quantile| quantile["name"] == name).unwrap();
        let summary = number(&summary["value_ns"]) as f64;
        let exact = found["duckdb"]["quantiles"][index].as_f64().unwrap();
        let off = (summary / exact - 1.0).abs();
        assert!(off <= 1.1e-3, "{key} {name}: summary {summary}, duckdb {exact}");
        let merged = found["hdrh"]["quantiles"][index].as_f64().unwrap();
        let off = (merged / summary - 1.0).abs();
        assert!(off <= 2.1e-3, "{key} {name}: summary {summary}, hdrh {merged}");
    }
    let count = number(&response["count"]);
    assert_eq!(number(&found["hdrh"]["count"]), count, "{key}");
    // A second each of the window; what was due at its end is answered in the next one.
    assert!((3..=5).contains(&number(&found["hdrh"]["intervals"])), "{key}: {found}");
    let mean = response["mean_ns"].as_f64().unwrap();
    let sum: f64 = found["duckdb"]["sum"].as_str().unwrap().parse().unwrap();
    assert!((sum / count as f64 / mean - 1.0).abs() < 1e-6, "{key}: mean {mean}");
}
