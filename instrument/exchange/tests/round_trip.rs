//! What goes through a format comes out of it, and damaged input is read or refused.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::Path;

use exchange::{
    Format, RowsInput, hgrm_text, read_hgrm, read_hlog, stage_rows, summarise, write_rows,
};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use model::Seed;
use model::seed::Rng;

const HEADER: &str = "tx,due_ns,ready_ns,sent_ns,accepted_ns,committed_ns,end_ns,outcome,class,code,error,kind,connection,worker,stream,client,attempts,bytes_out,bytes_in,receive_lag_ns,started_unix_ns\n";

/// Rows as CSV, with any stamps missing, every outcome, and texts that need quotes.
fn rows(rng: &mut Rng, count: u64) -> String {
    let mut text = HEADER.to_owned();
    for tx in 0..count {
        let due = tx * 1_000_000;
        let stamp = |rng: &mut Rng| match rng.below(5) {
            0 => String::new(),
            _ => (due + rng.below(3_000_000_000)).to_string(),
        };
        let outcomes = ["committed,", "unknown,", "shed,", "rejected,limited", "rejected,client"];
        let errors = ["", "404 Not Found", "\"a, \"\"b\"\"\"", "\"two\nlines\"", "ünïcode"];
        let pick = |rng: &mut Rng, of: &[&str]| {
            of[usize::try_from(rng.below(of.len() as u64)).unwrap()].to_owned()
        };
        let (outcome, error) = (pick(rng, &outcomes), pick(rng, &errors));
        let stamps: Vec<String> = (0..5).map(|_| stamp(rng)).collect();
        let small: Vec<String> = (0..7).map(|_| rng.below(200).to_string()).collect();
        let lag = match rng.below(4) {
            0 => String::new(),
            _ => rng.below(90_000).to_string(),
        };
        text.push_str(&format!(
            "{tx},{due},{},{outcome},{},{error},GET /{},{},{lag},1595855108900000000\n",
            stamps.join(","),
            rng.below(600),
            rng.below(50),
            small.join(",")
        ));
    }
    text
}

fn convert(from: Format, bytes: &[u8], to: Format) -> Vec<u8> {
    let mut out = Vec::new();
    write_rows(RowsInput::text(from, "x", Box::new(bytes), None), to, &mut out).unwrap();
    out
}

/// Records of a CSV text, sorted: Parquet sorts rows by due time.
fn sorted(csv: &[u8]) -> Vec<Vec<u8>> {
    let mut records: Vec<Vec<u8>> = csv.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    records.sort();
    records
}

/// Claim: rows → CSV → NDJSON → Parquet → CSV are the same rows, whatever is missing in them.
#[test]
fn rows_survive_every_form() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..20 {
        let mut rng = Seed(seed).rng();
        let count = rng.below(9_000);
        let csv = convert(Format::Csv, rows(&mut rng, count).as_bytes(), Format::Csv);
        let ndjson = convert(Format::Csv, &csv, Format::Ndjson);
        assert_eq!(ndjson.split(|byte| *byte == b'\n').count() as u64, count + 1);
        assert!(convert(Format::Ndjson, &ndjson, Format::Ndjson) == ndjson, "seed {seed}");
        if count == 0 {
            continue;
        }
        assert!(convert(Format::Ndjson, &ndjson, Format::Csv) == csv, "seed {seed}");
        let path = folder.path().join("x.parquet");
        let mut file = std::fs::File::create(&path).unwrap();
        let input = RowsInput::text(Format::Ndjson, "x", Box::new(ndjson.as_slice()), None);
        let notes = stage_rows(input, Format::Parquet, folder.path(), &mut file).unwrap();
        assert_eq!(notes.rows, count);
        let mut back = Vec::new();
        write_rows(RowsInput::parquet(&path).unwrap(), Format::Csv, &mut back).unwrap();
        assert_eq!(sorted(&back).len(), sorted(&csv).len());
        assert!(sorted(&back) == sorted(&csv), "seed {seed}");
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 1, "the staging folder is removed");
    }
}

/// Claim: the interval log that rows become holds, read by the library, exactly their latencies, and read by us
/// the same counts.
#[test]
fn interval_logs_hold_the_latencies() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = Seed(4).rng();
    let mut text = "due_ns,sent_ns,committed_ns,end_ns,outcome\n".to_owned();
    let mut expected = Histogram::<u64>::new(3).unwrap();
    for tx in 0..20_000_u64 {
        let (due, latency) = (tx * 500_000, 1000 + (rng.next_u64() >> (30 + rng.below(20))));
        expected.record(latency).unwrap();
        text.push_str(&format!("{due},{due},{0},{0},committed\n", due + latency));
    }
    let input = RowsInput::text(Format::Csv, "x", Box::new(text.as_bytes()), None);
    let mut log = Vec::new();
    stage_rows(input, Format::Hlog, folder.path(), &mut log).unwrap();
    let mut read = Histogram::<u64>::new(3).unwrap();
    for entry in IntervalLogIterator::new(&log) {
        let LogEntry::Interval(interval) = entry.unwrap() else { continue };
        if interval.tag().is_some_and(|tag| tag.as_str() == "committed") {
            let encoded = decoded(interval.encoded_histogram());
            let one: Histogram<u64> =
                Deserializer::new().deserialize(&mut encoded.as_slice()).unwrap();
            read.add(&one).unwrap();
        }
    }
    assert_eq!(read, expected);
    let ours = read_hlog("x", Box::new(log.as_slice())).unwrap();
    let tags: Vec<&str> = ours.iter().map(|one| one.tag.as_str()).collect();
    assert_eq!(tags, ["committed", "service", "send_lag"]);
    for line in &ours[0].lines {
        let value = expected.value_at_quantile(line.quantile);
        let highest = expected.highest_equivalent(value);
        // The library takes the first slot at or above the quantile, as we do.
        assert!((line.value_ms * 1e6 - highest as f64).abs() < 1.0, "{line:?} {highest}");
    }
    assert_eq!(ours[0].count, 20_000);
}

/// Base64, which the library leaves to its caller.
fn decoded(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

/// Claim: percentile output steps as HdrHistogram's own does (its percentile iterator, five ticks a halving) and
/// is read back to what was printed.
#[test]
fn percentile_output_is_the_librarys() {
    let mut rng = Seed(6).rng();
    let mut text = "due_ns,sent_ns,committed_ns,end_ns,outcome\n".to_owned();
    let mut expected = Histogram::<u64>::new(3).unwrap();
    // A prime number of samples: no quantile of the steps lies on a sample, where the library's fractions and
    // HdrHistogram's percent are rounded differently.
    for tx in 0..4_999_u64 {
        let latency = 100_000 + rng.below(90_000_000);
        expected.record(latency).unwrap();
        text.push_str(&format!("{tx},{tx},{0},{0},committed\n", tx + latency));
    }
    text.push_str("9,9,,99,unknown\n");
    let input = RowsInput::text(Format::Csv, "x", Box::new(text.as_bytes()), None);
    let (summary, notes) = summarise(input, &mut |_| {}).unwrap();
    assert!(notes.lines.iter().any(|line| line.starts_with("1 of 5000")), "{notes:?}");
    let printed = hgrm_text(&summary.percentiles);
    let ours: Vec<(u64, String)> = summary
        .percentiles
        .lines
        .iter()
        .map(|line| (line.count, format!("{:.9}", line.quantile)))
        .collect();
    let mut seen = 0;
    let mut library: Vec<(u64, String)> = Vec::new();
    for step in expected.iter_quantiles(5) {
        seen += step.count_since_last_iteration();
        library.push((seen, format!("{:.9}", step.quantile_iterated_to())));
    }
    let by_quantile = |lines: &[(u64, String)]| -> BTreeMap<String, u64> {
        lines.iter().map(|(count, quantile)| (quantile.clone(), *count)).collect()
    };
    assert_eq!(by_quantile(&ours), by_quantile(&library));
    assert!(printed.contains(
        "#[Response times: committed, in milliseconds; 4999 samples of 5000 that were due]"
    ));
    let back = read_hgrm("x", Box::new(printed.as_bytes())).unwrap();
    assert_eq!((back.tag.as_str(), back.count, back.lines.len()), ("committed", 4999, ours.len()));
    assert_eq!(hgrm_text(&exchange::Percentiles { due: Some(5000), ..back }), printed);
}

/// Claim: vegeta's results, in either of its forms and from versions before 12.8, are the same rows.
#[test]
fn vegeta_forms_agree() {
    let csv = "1595855109000000000,200,5000000,7,5,,aGVsbG8=,a b,0,GET,http://h/a,Q29udGVudC1UeXBlOiB0ZXh0DQoNCg==\n\
               1595855109100000000,429,2500000,0,9,429 Too Many Requests,,a b,1,GET,\"http://h/a,b\",\n";
    let json = concat!(
        r#"{"attack":"a b","seq":0,"code":200,"timestamp":"2020-07-27T15:05:09+02:00","latency":5000000,"bytes_out":7,"bytes_in":5,"error":"","body":"aGVsbG8=","method":"GET","url":"http://h/a","headers":{"Content-Type":["text"]}}"#,
        "\n",
        r#"{"attack":"a b","seq":1,"code":429,"timestamp":"2020-07-27T13:05:09.1Z","latency":2500000,"bytes_out":0,"bytes_in":9,"error":"429 Too Many Requests","body":null,"method":"GET","url":"http:\/\/h\/a,b","headers":null}"#,
        "\n"
    );
    let from_csv = convert(Format::VegetaCsv, csv.as_bytes(), Format::Csv);
    assert_eq!(from_csv, convert(Format::VegetaNdjson, json.as_bytes(), Format::Csv));
    let text = String::from_utf8(from_csv).unwrap();
    assert!(
        text.contains("rejected,limited,429,429 Too Many Requests,\"GET http://h/a,b\""),
        "{text}"
    );
    let old =
        convert(Format::VegetaCsv, b"1595855109000000000,200,5000000,7,5,,,a b,0\n", Format::Csv);
    assert!(
        String::from_utf8(old)
            .unwrap()
            .lines()
            .nth(1)
            .unwrap()
            .starts_with("0,0,0,0,5000000,5000000,committed,,200,,,")
    );
}

/// Claim: damaged input of every format is read or refused with its line, and never more; what is read survives
/// being written.
#[test]
fn damage_never_panics() {
    let mut rng = Seed(12).rng();
    let csv = rows(&mut rng, 40);
    let ndjson = convert(Format::Csv, csv.as_bytes(), Format::Ndjson);
    let samples: [Vec<u8>; 5] = [
        csv.clone().into_bytes(),
        ndjson.clone(),
        convert(Format::Csv, csv.as_bytes(), Format::VegetaCsv),
        convert(Format::Csv, csv.as_bytes(), Format::VegetaNdjson),
        hgrm_text(
            &summarise(
                RowsInput::text(Format::Csv, "x", Box::new(csv.as_bytes()), None),
                &mut |_| {},
            )
            .unwrap()
            .0
            .percentiles,
        )
        .into_bytes(),
    ];
    for (index, sample) in samples.iter().enumerate() {
        let first = if index == 4 { 5 } else { u8::try_from(index).unwrap() };
        for _ in 0..4_000 {
            let mut bytes = vec![first];
            bytes.extend_from_slice(sample);
            for _ in 0..=rng.below(3) {
                let at = 1 + usize::try_from(rng.below(bytes.len() as u64 - 1)).unwrap();
                match rng.below(4) {
                    0 => bytes[at] = u8::try_from(rng.below(256)).unwrap(),
                    1 => bytes[at] = b"\",\n0-9{}:e"[usize::try_from(rng.below(10)).unwrap()],
                    2 => drop(bytes.drain(at..bytes.len().min(at + 9))),
                    _ => bytes.truncate(at + 1),
                }
            }
            exchange::fuzz_results(&bytes);
        }
    }
}

/// Claim: a Parquet file that is damaged anywhere is read or refused.
#[test]
fn damaged_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = Seed(13).rng();
    let csv = rows(&mut rng, 500);
    let mut whole = Vec::new();
    let input = RowsInput::text(Format::Csv, "x", Box::new(csv.as_bytes()), None);
    stage_rows(input, Format::Parquet, folder.path(), &mut whole).unwrap();
    let path = folder.path().join("x.parquet");
    let mut refused = 0;
    for _ in 0..300 {
        let mut bytes = whole.clone();
        let at = usize::try_from(rng.below(bytes.len() as u64)).unwrap();
        bytes[at] ^= 1 << rng.below(8);
        std::fs::write(&path, &bytes).unwrap();
        let read = RowsInput::parquet(&path)
            .and_then(|input| write_rows(input, Format::Csv, &mut std::io::sink()));
        refused += u32::from(read.is_err());
    }
    assert!(refused > 20, "{refused}");
    std::fs::remove_file(&path).unwrap();
    assert!(RowsInput::parquet(Path::new(&path)).is_err());
}

/// Claim: an endless record is refused after a bound and not collected.
#[test]
fn an_open_quote_is_bounded() {
    let endless = std::io::Read::chain(
        "due_ns,end_ns,outcome,error\n1,2,committed,\"".as_bytes(),
        std::io::Read::take(std::io::repeat(b'x'), 1 << 30),
    );
    let input = RowsInput::text(Format::Csv, "x", Box::new(BufReader::new(endless)), None);
    let error = write_rows(input, Format::Csv, &mut std::io::sink()).unwrap_err().to_string();
    assert!(
        error.contains("x, line 2") && error.contains("is a quotation mark left open?"),
        "{error}"
    );
}
