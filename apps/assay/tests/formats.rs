//! `assay report --format csv|junit|svg` on a run folder, as a user calls it: what is written, where, and what is said.
//!
//! The content of the forms is tested beside them, in `instrument/report`; here it must only agree with the run's document.

use std::path::PathBuf;

use crate::harness::{Place, beside_others};
use serde_json::Value;

/// A short run of two rates, and the path of its folder.
fn run() -> (Place, Value, PathBuf) {
    let _machine = beside_others();
    let place = Place::new();
    let (_, document) = place.experiment(
        r#"
        name = "formats"
        system.kind = "echo"
        load = { rate = "100/s", connections = 2, warmup = "100ms", duration = "600ms" }
        [system.deploy]
        service = "1ms"
        [matrix]
        rate = { set = "load.rate", values = ["100/s", "200/s"] }
        [[threshold]]
        expr = "p50 < 1ns"
        "#,
    );
    assert_eq!(document["settings"].as_array().map(Vec::len), Some(2), "{document}");
    let folder = place.path().join(place.run_folder());
    (place, document, folder)
}

/// Claim: every form agrees with the run's document, is written where it was asked for, ends with the run's own exit
/// code where that is asked for, and figures without a folder are a usage error that names what to do.
#[test]
fn forms_are_written_where_asked() {
    let (place, document, folder) = run();
    let folder = folder.to_str().expect("a plain path");
    let report = |more: &[&str]| {
        let mut words = vec!["report", folder, "--verdict"];
        words.extend(more);
        place.assay(&words)
    };
    let exit = document["exit_code"].as_i64().expect("a code");

    let csv = report(&["--format", "csv"]);
    assert_eq!(i64::from(csv.code), exit, "{}", csv.stderr);
    let lines: Vec<&str> = csv.stdout.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 3, "{}", csv.stdout);
    assert!(lines[0].contains(",offered_per_s,"), "{}", lines[0]);
    for (index, line) in lines[1..].iter().enumerate() {
        let rates = &document["settings"][index]["trials"][0]["rates"];
        assert!(line.contains(&format!(",{},", rates["offered_per_s"])), "{line}");
    }

    let junit = report(&["--format", "junit", "-o", "junit.xml"]);
    assert_eq!((i64::from(junit.code), junit.stdout.as_str()), (exit, ""), "{}", junit.stderr);
    let text = std::fs::read_to_string(place.path().join("junit.xml")).expect("it was written");
    assert_eq!(text.matches("<testsuite ").count(), 2 + usize::from(text.contains("(run)")));
    assert_eq!(text.matches("name=\"threshold p50 &lt; 1ns\"").count(), 2, "{text}");
    assert!(text.contains("<failure ") || text.contains("<error "), "{text}");

    for arguments in [&["--format", "svg"][..], &["--format", "svg", "-o", "-"]] {
        let refused = report(arguments);
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
        assert!(refused.stderr.contains("-o figures"), "{}", refused.stderr);
    }
    let svg = report(&["--format", "svg", "-o", "some/figures"]);
    assert_eq!((i64::from(svg.code), svg.stdout.as_str()), (exit, ""), "{}", svg.stderr);
    let written = std::fs::read_dir(place.path().join("some/figures")).expect("it was made");
    let names: Vec<String> = written
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    for name in ["hdr.svg", "goodput-offered.svg", "latency-0-rate-100pers.svg"] {
        assert!(names.iter().any(|it| it == name), "{name} in {names:?}");
    }
    for name in &names {
        assert!(svg.stderr.contains(name.as_str()), "{name} is said: {}", svg.stderr);
        let file = place.path().join("some/figures").join(name);
        let text = std::fs::read_to_string(file).expect("it was just written");
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"), "{name}");
    }
}

/// Claim: several runs are one CSV and one JUnit document, and their figures do not overwrite each other.
#[test]
fn several_runs_are_kept_apart() {
    let (place, _, folder) = run();
    let folder = folder.to_str().expect("a plain path");
    let report = |more: &[&str]| {
        let mut words = vec!["report", folder, folder, "--verdict"];
        words.extend(more);
        place.assay(&words)
    };
    assert_eq!(report(&["--format", "csv"]).stdout.split_terminator("\r\n").count(), 5);
    assert_eq!(report(&["--format", "junit"]).stdout.matches("<testsuites ").count(), 1);
    report(&["--format", "svg", "-o", "figures"]);
    let folders = std::fs::read_dir(place.path().join("figures")).expect("it was made");
    assert_eq!(folders.count(), 2);
}

/// Claim: every form of what readers of shares have counted is that of the run, byte for byte; a part that is missing, there
/// twice, cut off, changed or of another run is an error that says what to do, and writes nothing.
#[test]
fn parts_make_the_report_of_the_whole() {
    let (place, _, folder) = run();
    let (_other_place, _, other) = run();
    let folder = folder.to_str().expect("a plain path");
    let report = |more: &[&str]| place.assay(&[&["report", folder], more].concat());
    for part in ["1/3", "2/3", "3/3"] {
        let written = report(&["--part", part, "-o", &part.replace('/', "-")]);
        assert_eq!((written.stdout.as_str(), written.stderr.as_str()), ("", ""));
        written.expect_code(0);
    }
    let merge = ["--merge", "3-3", "1-3", "2-3"];
    for format in ["json", "html", "md", "csv", "junit", "vegeta"] {
        let whole = report(&["--format", format]);
        let merged = report(&[&["--format", format][..], &merge[..]].concat());
        assert!(
            whole.stdout == merged.stdout && whole.stdout.len() > 100,
            "{format}: {}",
            merged.stderr
        );
        merged.expect_code(0);
    }
    let bytes = std::fs::read(place.path().join("3-3")).expect("it was written");
    place.write("cut", &bytes[..bytes.len() - 1]);
    let at = bytes.len() - 20;
    place.write("changed", [&bytes[..at], &[bytes[at] ^ 1], &bytes[at + 1..]].concat());
    let line = bytes.iter().position(|byte| *byte == b'\n').expect("a first line");
    let mut head: Value = serde_json::from_slice(&bytes[..line]).expect("a line of JSON");
    (head["trials"], head["crc32"]) = (serde_json::json!([]), serde_json::json!(0));
    place.write("of-nothing", format!("{head}\n"));
    let of_other = place.path().join("other");
    let of_other = of_other.to_str().expect("a plain path");
    let other = other.to_str().expect("a plain path");
    place.assay(&["report", other, "--part", "3/3", "-o", of_other]).expect_code(0);
    for (parts, words) in [
        (&["1-3", "2-3"][..], "expected each part once"),
        (&["1-3", "2-3", "2-3"], "1/3, 2/3, 2/3"),
        (&["1-3", "2-3", "cut"], "it is cut off; make it again with assay report --part"),
        (&["1-3", "2-3", "changed"], "its bytes have changed"),
        (&["1-3", "2-3", of_other], "the parts are of other rows"),
        (&["1-3", "2-3", "of-nothing"], "the parts are of other rows"),
        (&["1-3", "2-3", "none"], "none is missing"),
        (&["1-3", "2-3", "report.html"], "no file of --part"),
    ] {
        place.write("report.html", "<html>");
        let refused = report(&[&["-o", "out", "--merge"][..], parts].concat());
        refused.expect_code(1).expect_stderr(words);
        assert!(!place.path().join("out").exists());
    }
    for (arguments, words) in [
        (&["--part", "4/3", "-o", "x"][..], "as 1/4, got `4/3`"),
        (&["--part", "1/3"], "--part writes a file for --merge"),
        (&["--part", "1/3", "--merge", "x"], "cannot be used with"),
    ] {
        report(arguments).expect_code(2).expect_stderr(words);
    }
    place
        .assay(&["report", folder, other, "--merge", "1-3"])
        .expect_code(1)
        .expect_stderr("one run");
}
