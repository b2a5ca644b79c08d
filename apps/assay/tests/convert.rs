//! `assay convert` as people and pipes meet it: formats by name and by content, notes, refusals, exit codes.

use std::fs;
use std::io::Read as _;
use std::process::Stdio;

use crate::harness::{Place, Said, beside_others};

/// The output of a command that must have ended with `code`.
#[track_caller]
fn coded(said: Said, code: i32) -> Said {
    said.expect_code(code);
    said
}

/// As `vegeta encode --to csv` writes it: in the order of their ends, bodies and headers in base64.
const VEGETA: &str = "\
1595855109000000000,200,5000000,0,5,,aGVsbG8=,big bang,0,GET,http://h/a,Q29udGVudC1UeXBlOiB0ZXh0L3BsYWluDQoNCg==\n\
1595855109100000000,404,2500000,3,9,404 Not Found,,big bang,1,POST,\"http://h/a,b\",\n\
1595855108900000000,0,30000000000,0,0,\"Get \"\"http://h/\"\": context deadline exceeded\",,big bang,2,GET,http://h/,\n";

fn read(place: &Place, name: &str) -> Vec<u8> {
    fs::read(place.path().join(name)).expect("it was written")
}

/// Claim: rows go through CSV, NDJSON and Parquet and come out as they went in, whether the formats are told by
/// names, by flags or by content.
#[test]
fn rows_go_round() {
    let _machine = beside_others();
    let place = Place::new();
    place.write("v.csv", VEGETA);
    let said = coded(place.assay(&["convert", "v.csv", "-o", "a.csv"]), 0);
    assert!(said.stderr.contains("vegeta records no due time"), "{}", said.stderr);
    coded(place.assay(&["convert", "a.csv", "-o", "b.ndjson"]), 0);
    coded(place.assay(&["convert", "b.ndjson", "-o", "c.parquet"]), 0);
    coded(place.assay(&["convert", "c.parquet", "-o", "d.csv"]), 0);
    let sorted = |name: &str| {
        let text = String::from_utf8(read(&place, name)).expect("a text");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        // Parquet sorts rows by due time.
        lines[1..].sort();
        lines
    };
    assert_eq!(sorted("a.csv"), sorted("d.csv"));
    assert_eq!(sorted("a.csv").len(), 4);
    fs::copy(place.path().join("b.ndjson"), place.path().join("nameless")).expect("a copy");
    let piped = coded(place.assay(&["convert", "nameless", "--to", "csv"]), 0);
    assert_eq!(piped.stdout.as_bytes(), read(&place, "a.csv"));
    coded(place.assay(&["convert", "d.csv", "-o", "again.parquet"]), 0);
    // Names are numbered as they come, so the files differ and what they say does not.
    let again = coded(place.assay(&["convert", "again.parquet", "--to", "csv"]), 0).stdout;
    assert!(again.as_bytes() == read(&place, "d.csv"), "{again}");
    let left: Vec<_> = fs::read_dir(place.path()).expect("it is there").flatten().collect();
    assert!(
        left.iter().all(|entry| !entry.file_name().to_string_lossy().contains("partial")),
        "{left:?}"
    );
}

/// Claim: vegeta's results come back from rows in both of vegeta's forms, and its reports say the same of them.
#[test]
fn vegeta_goes_round() {
    let _machine = beside_others();
    let place = Place::new();
    place.write("v.csv", VEGETA);
    coded(place.assay(&["convert", "v.csv", "-o", "v.ndjson", "--to", "vegeta-ndjson"]), 0);
    let from_csv = coded(place.assay(&["convert", "v.csv", "--to", "vegeta"]), 0).stdout;
    let from_json = coded(place.assay(&["convert", "v.ndjson", "--to", "vegeta"]), 0).stdout;
    assert_eq!(from_csv, from_json);
    assert!(
        from_csv.contains("Status Codes  [code:count]                      0:1  200:1  404:1"),
        "{from_csv}"
    );
    assert!(from_csv.contains("context deadline exceeded\n404 Not Found"), "{from_csv}");
    let csv = coded(place.assay(&["convert", "v.ndjson", "--to", "vegeta-csv"]), 0).stdout;
    // Bodies, headers and the attack's name are not kept.
    let expected: String = VEGETA
        .replace("aGVsbG8=", "")
        .replace("Q29udGVudC1UeXBlOiB0ZXh0L3BsYWluDQoNCg==", "")
        .replace("big bang", "assay");
    assert_eq!(csv, expected);
    place.write("r.txt", &from_csv);
    let document = coded(place.assay(&["convert", "r.txt", "-o", "r.json"]), 0);
    assert!(document.stdout.is_empty());
    let text = coded(place.assay(&["convert", "r.json", "--to", "vegeta"]), 0).stdout;
    assert_eq!(text.lines().nth(2), from_csv.lines().nth(2));
}

/// Claim: the trial of a run becomes any format; a run with several trials is refused with their names.
#[test]
fn a_run_folder() {
    let _machine = beside_others();
    let place = Place::new();
    let text = "name = \"x\"\n[system]\nkind = \"echo\"\n[load]\nrate = \"200/s\"\nwarmup = \"500ms\"\nduration = \"1s\"\n";
    let (said, _) = place.experiment(text);
    assert!([0, 97].contains(&said.code), "{}", said.stderr);
    let run = place.runs().pop().expect("there is a run").display().to_string();
    let said = coded(place.assay(&["convert", &run, "--to", "csv"]), 0);
    assert!(said.stderr.contains("were due outside the measured window, which"), "{}", said.stderr);
    let csv = said.stdout;
    let rows = csv.lines().count() - 1;
    assert!(rows >= 250, "{rows}\n{csv}");
    coded(place.assay(&["convert", &run, "-o", "x.parquet"]), 0);
    let sealed = place.path().join(&run).join("settings/default/trial-0/transactions.parquet");
    let trial = sealed.parent().expect("it has a folder").display().to_string();
    assert_eq!(coded(place.assay(&["convert", &trial, "--to", "csv"]), 0).stdout, csv);
    let parquet = sealed.display().to_string();
    assert_eq!(coded(place.assay(&["convert", &parquet, "--to", "csv"]), 0).stdout, csv);
    let said = coded(place.assay(&["convert", &trial, "-o", "x.hgrm"]), 0);
    assert!(said.stderr.contains("outside the measured window"), "{}", said.stderr);
    let log = format!("{trial}/latency.hlog");
    let percentiles = coded(place.assay(&["convert", &log, "--to", "json"]), 0).stdout;
    assert!(percentiles.contains("\"tag\": \"send_lag\""), "{percentiles}");
    coded(place.assay(&["convert", &log, "-o", "y.hgrm"]), 0);
    coded(place.assay(&["convert", &log, "-o", "z.hgrm", "--tag", "service"]), 0);
    let said = coded(place.assay(&["convert", &log, "-o", "z.hgrm", "--tag", "x"]), 2);
    assert!(said.stderr.contains("there are: committed"), "{}", said.stderr);
}

/// Claim: what cannot be is refused with 2 and a sentence, what is damaged with 1 and its line, and neither
/// leaves a file behind or touches the one that was there.
#[test]
fn refusals() {
    let _machine = beside_others();
    let place = Place::new();
    place.write("v.csv", VEGETA);
    place.write("cut.csv", &VEGETA[..VEGETA.len() - 30]);
    place.write(
        "x.hgrm",
        "Value Percentile TotalCount 1/(1-Percentile)\n\n1.0 0.5 1 2.00\n2.0 1.0 2\n",
    );
    place.write("x.hlog", "#[Histogram log format version 1.3]\nTag=a,0.0,1.0,1.0,zzzz\n");
    place.write("old.parquet", "PAR1 not");
    place.write("results.bin", "gob");
    place.write("out.csv", "mine");
    for (arguments, code, expected) in [
        (&["x.hgrm", "-o", "out.parquet"][..], 2, "rows cannot be made of it"),
        (&["v.csv", "-o", "out"], 2, "give --to with one of"),
        (&["v.csv", "-o", "out.json"], 2, "say which"),
        (&["v.csv", "--to", "run"], 2, "cannot become run"),
        (&["v.csv", "--to", "cvs"], 2, "invalid value 'cvs' for '--to <FORMAT>'"),
        (&["results.bin", "--to", "csv"], 2, "vegeta encode --to csv"),
        (&["-", "--from", "parquet", "--to", "csv"], 2, "a pipe does not have"),
        (&["v.csv", "--tag", "a", "--to", "csv"], 2, "only an interval log has tags"),
        (&["v.csv", "--to", "csv", "-o", "."], 1, "it is a folder; name a file in it"),
        (&["cut.csv", "-o", "out.csv"], 1, "line 3"),
        (&["x.hlog", "-o", "out.csv"], 1, "x.hlog, line 2"),
        (&["old.parquet", "-o", "out.csv"], 1, "old.parquet cannot be used"),
        (&["missing", "-o", "out.csv"], 1, "reading missing"),
        (&["v.csv", "-o", "no/such/out.csv"], 1, "writing no/such/out.csv"),
    ] {
        let all: Vec<&str> = ["convert"].iter().chain(arguments).copied().collect();
        let said = coded(place.assay(&all), code);
        assert!(said.stderr.contains(expected), "{arguments:?}\n{}", said.stderr);
        assert!(said.stdout.is_empty(), "{arguments:?}");
    }
    assert_eq!(read(&place, "out.csv"), b"mine");
    let names: Vec<String> = fs::read_dir(place.path())
        .expect("it is there")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert!(
        names.iter().all(|name| !name.contains("partial") && name != "out.parquet"),
        "{names:?}"
    );
}

/// Claim: a device or a link that is named as the output is written to and not replaced, and a file of the user's
/// that ends in `.partial` stays.
#[test]
fn devices_and_links_stay() {
    use std::os::unix::fs::{FileTypeExt as _, symlink};
    let _machine = beside_others();
    let place = Place::new();
    place.write("v.csv", VEGETA);
    place.write("target.csv", "old");
    place.write("target.csv.partial", "mine");
    symlink("/dev/null", place.path().join("sink")).expect("a link");
    symlink("target.csv", place.path().join("link.csv")).expect("a link");
    coded(place.assay(&["convert", "v.csv", "--to", "csv", "-o", "sink"]), 0);
    coded(place.assay(&["convert", "v.csv", "-o", "link.csv"]), 0);
    let kind = fs::metadata(place.path().join("sink")).expect("it is there").file_type();
    assert!(kind.is_char_device(), "the link to /dev/null was replaced");
    assert!(fs::symlink_metadata(place.path().join("link.csv")).expect("a link").is_symlink());
    assert!(read(&place, "target.csv").starts_with(b"tx,due_ns"));
    assert_eq!(read(&place, "target.csv.partial"), b"mine");
    symlink("/dev/full", place.path().join("full")).expect("a link");
    let said = coded(place.assay(&["convert", "v.csv", "--to", "csv", "-o", "full"]), 1);
    assert!(said.stderr.contains("is there space"), "{}", said.stderr);
}

/// Claim: a pipe that has a name loses nothing by being looked at first.
#[test]
fn named_pipes() {
    let _machine = beside_others();
    let place = Place::new();
    let fifo = place.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo starts");
    assert!(made.success());
    let writer = std::thread::spawn(move || fs::write(fifo, VEGETA).expect("it is read"));
    let said = coded(place.assay(&["convert", "fifo", "--to", "csv"]), 0);
    writer.join().expect("it wrote");
    assert_eq!(said.stdout.lines().count(), 4, "{}", said.stdout);
}

/// Claim: a reader that has had enough ends the conversion quietly and with 0.
#[test]
fn a_closed_pipe_is_quiet() {
    let _machine = beside_others();
    let place = Place::new();
    place.write("v.csv", VEGETA.repeat(20_000));
    let mut command = place.command(&["convert", "v.csv", "--to", "ndjson"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut first = [0; 64];
    let mut pipe = child.stdout.take().expect("it is a pipe");
    pipe.read_exact(&mut first).expect("there is output");
    drop(pipe);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(first[0], b'{');
}
