//! vegeta's reports against the 23 that were published in 2020 for an Ethereum API (tests/data): parser, printer,
//! and the formulas that the published figures follow.
//!
//! It must never correct the data: one report was published without its error set, and stays so.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::result::{TrialResult, VegetaResult};
use report::{parse_vegeta_text, vegeta_12_7_text, vegeta_json, vegeta_text};

/// The report that was published without its error set.
const CUT_OFF: &str = "large_240_TX_50";

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// Name, text and parsed form of every report.
fn published() -> Vec<(String, String, VegetaResult)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(data()).expect("tests/data is there") {
        let path = entry.expect("readable").path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("readable");
        let parsed = parse_vegeta_text(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        all.push((name, text, parsed));
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(all.len(), 23);
    all
}

/// Claim: each published report is read, and printed again with the same bytes.
#[test]
fn printed_back_byte_for_byte() {
    for (name, text, parsed) in published() {
        let expected = if name == CUT_OFF { format!("{text}Error Set:\n") } else { text };
        assert_eq!(vegeta_12_7_text(&parsed), expected, "{name}");
    }
}

/// Claim: every value of the published table is in the report of its run.
#[test]
fn the_published_table() {
    let table = std::fs::read_to_string(data().join("published.tsv")).expect("readable");
    let mut lines = table.lines();
    let heads: Vec<&str> = lines.next().expect("a head").split('\t').collect();
    let reports: BTreeMap<String, VegetaResult> =
        published().into_iter().map(|(name, _, parsed)| (name, parsed)).collect();
    let mut rows = 0;
    for line in lines {
        let row: BTreeMap<&str, &str> = heads.iter().copied().zip(line.split('\t')).collect();
        let run = row["run"];
        let report = &reports[run];
        let ms = |ns: i64| format!("{:.1}", ns as f64 / 1e6);
        assert_eq!(report.requests.to_string(), row["requests"], "{run}");
        assert_eq!(format!("{:.2}", report.rate), row["rate"], "{run}");
        assert_eq!(format!("{:.2}", report.throughput), row["throughput"], "{run}");
        assert_eq!(ms(report.wait_ns), row["wait_ms"], "{run}");
        assert_eq!(ms(report.mean_ns), row["mean_ms"], "{run}");
        assert_eq!(ms(report.p50_ns), row["p50_ms"], "{run}");
        assert_eq!(ms(report.p95_ns), row["p95_ms"], "{run}");
        assert_eq!(ms(report.p99_ns), row["p99_ms"], "{run}");
        assert_eq!(ms(report.max_ns), row["max_ms"], "{run}");
        assert_eq!(report.bytes_in.to_string(), row["bytes_in"], "{run}");
        assert_eq!(format!("{:.2}", report.success * 100.0), row["success_percent"], "{run}");
        let codes: Vec<String> =
            report.status_codes.iter().map(|(code, count)| format!("{code}:{count}")).collect();
        assert_eq!(codes.join(" "), row["codes"], "{run}");
        rows += 1;
    }
    assert_eq!(rows, 23);
}

/// Claim: the published figures follow vegeta's formulas: requests = rate × duration, success = share of 200,
/// total = attack + wait, throughput = 200-count ÷ (attack + wait) within 0.01.
#[test]
fn the_formulas() {
    for (name, _, report) in published() {
        let seconds: f64 = name.split('_').nth(1).expect("in the name").parse().expect("seconds");
        let asked: f64 = name.split('_').nth(3).expect("in the name").parse().expect("a rate");
        assert_eq!(report.requests as f64, asked * seconds, "{name}");
        let answered = report.status_codes.get("200").copied().unwrap_or(0) as f64;
        let all: u64 = report.status_codes.values().sum();
        assert_eq!(all, report.requests, "{name}");
        assert!((report.success - answered / report.requests as f64).abs() < 0.000_05, "{name}");
        assert_eq!(report.total_ns, report.attack_ns + report.wait_ns, "{name}");
        let throughput = answered / (report.total_ns as f64 / 1e9);
        assert!((report.throughput - throughput).abs() <= 0.01, "{name}: {throughput}");
        // The attack time is the last send minus the first: one gap short of the duration.
        let attack = seconds - 1.0 / asked;
        assert!((report.attack_ns as f64 / 1e9 - attack).abs() < 0.001, "{name}");
    }
}

/// Claim: the current form has vegeta's columns, rounding and blanks, and is read back to what it shows.
#[test]
fn the_current_form() {
    let text = "\
Requests      [total, rate, throughput]         6000, 100.01, 99.71
Duration      [total, attack, wait]             59.995s, 59.992s, 2.909ms
Latencies     [min, mean, 50, 90, 95, 99, max]  609.326µs, 66.243ms, 1.154ms, 1.566ms, 34.676ms, 2.178s, 2.74s
Bytes In      [total, mean]                     929228, 154.87
Bytes Out     [total, mean]                     0, 0.00
Success       [ratio]                           99.70%
Status Codes  [code:count]                      0:18  200:5982  \nError Set:
read: connection reset by peer
";
    let parsed = parse_vegeta_text(text).expect("vegeta's own output");
    assert_eq!(parsed.min_ns, 609_326);
    assert_eq!(parsed.p90_ns, 1_566_000);
    assert_eq!(vegeta_text(&parsed), text);
    let precise = VegetaResult { wait_ns: 2_909_449, p50_ns: 1_153_501, ..parsed };
    assert_eq!(vegeta_text(&precise), text, "durations are rounded to the next finer unit");
}

/// Claim: a text that is no report is refused with the row that is wrong, and never a panic.
#[test]
fn what_is_no_report() {
    let good = std::fs::read_to_string(data().join("all_600_TX_20.txt")).expect("readable");
    for (from, to, message) in [
        ("Requests", "Bequests", "there is no `Requests` row"),
        ("Latencies", "Latency", "there is no `Latencies` row"),
        ("12000,", "many,", "`many` is not a value for `total` in the `Requests` row"),
        ("107.82981ms", "soon", "`soon` is not a value for `wait` in the `Duration` row"),
        ("97.41%", "97.41", "`97.41` is not a value for `ratio` in the `Success` row"),
        ("200:11689", "200-11689", "`200-11689` is not a value for `code:count`"),
        ("[total, attack, wait]", "[total]", "`` is not a value for `attack`"),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good);
        let error = parse_vegeta_text(&text).expect_err(message).to_string();
        assert!(error.contains(message), "{error}");
    }
    // Bytes of a seeded generator over the text: whatever comes, it is read or refused.
    const LETTERS: &[u8] = b"0123456789.,:%[]smh\xc2\xb5\n -xN";
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..20_000 {
        let mut bytes = good.clone().into_bytes();
        for _ in 0..3 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let place = (state >> 33) as usize % bytes.len();
            bytes[place] = LETTERS[(state >> 20) as usize % LETTERS.len()];
        }
        let _ = parse_vegeta_text(&String::from_utf8_lossy(&bytes));
    }
    for cut in (0..good.len()).filter(|&cut| good.is_char_boundary(cut)) {
        let _ = parse_vegeta_text(&good[..cut]);
    }
}

/// Claim: the JSON report has vegeta's keys and the figures of the text.
#[test]
fn the_json_report() {
    let (_, _, parsed) = published().swap_remove(0);
    let text = vegeta_json(&trial_with(parsed.clone()));
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["requests"], 4800);
    assert_eq!(value["latencies"]["99th"], 388_164_886);
    assert_eq!(value["latencies"]["total"], parsed.mean_ns * 4800);
    assert_eq!(value["wait"], 319_453_846);
    assert_eq!(value["status_codes"]["404"], 234);
    assert_eq!(value["errors"][0], "404 Not Found");
}

fn trial_with(vegeta: VegetaResult) -> TrialResult {
    let mut trial = crate::sample_parts::trial("rate=20/s");
    trial.vegeta = vegeta;
    trial
}
