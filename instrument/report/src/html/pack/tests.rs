//! Tests of the packed data: what goes in comes out, and a noisy page stays small.

use super::*;

use model::outcome::Outcome;
use model::picture::{Series, SlowTransaction};
use model::result::Timeline;
use model::row::{NO_STAMP, Row, STAGES_MAX};

/// Numbers without a pattern (splitmix64): the worst case of a compressor.
struct Noise(u64);

impl Noise {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }

    fn signed(&mut self, below: u64) -> i64 {
        i64::try_from(self.next(below)).expect("small")
    }
}

fn noisy_trial(
    noise: &mut Noise,
    columns: usize,
    cells: u8,
    series: usize,
) -> (TrialResult, TrialPicture) {
    let width_ns = 1_000_000_000;
    let mut line = Timeline { width_ns, ..Timeline::default() };
    let mut picture = TrialPicture {
        path: "settings/x/trial-0".to_owned(),
        stages: vec!["committed".to_owned()],
        kinds: (0..41).map(|index| format!("GET /{index}")).collect(),
        errors: vec![String::new()],
        ..TrialPicture::default()
    };
    for column in 0..columns {
        let failed = [("server", noise.next(50)), ("unknown", noise.next(9))];
        let p50 = 10_000_000 + noise.signed(2_000_000);
        line.columns.push(TimelineColumn {
            offered: 2_000 + noise.next(100),
            sent: 2_000 + noise.next(100),
            committed: 1_900 + noise.next(100),
            failed: failed.into_iter().map(|(class, count)| (class.to_owned(), count)).collect(),
            reached: vec![1_900 + noise.next(100)],
            outstanding: noise.signed(60),
            p50_ns: Some(p50),
            p99_ns: Some(p50 * 4 + noise.signed(9_000_000)),
            p999_ns: Some(p50 * 9 + noise.signed(40_000_000)),
            max_ns: Some(p50 * 20 + noise.signed(90_000_000)),
            own_lag_p99_ns: Some(noise.signed(90_000)),
        });
        let from = 60 + u8::try_from(noise.next(9)).expect("small");
        let counts = (0..cells)
            .map(|cell| (from + cell, 1 + u32::try_from(noise.next(200)).expect("small")));
        picture.density.push(counts.collect());
        for _ in 0..8 {
            picture.slowest.push(SlowTransaction { column, row: row(noise, column, width_ns) });
        }
    }
    for index in 0..series {
        let mean: Vec<f64> = (0..columns).map(|_| noise.signed(1 << 40) as f64).collect();
        let below = mean.iter().map(|it| it * 0.9 - noise.signed(1 << 36) as f64).collect();
        let above = mean.iter().map(|it| it * 1.1 + noise.signed(1 << 36) as f64).collect();
        picture.series.push(Series {
            source: format!("node-{index}"),
            name: "rss_bytes".to_owned(),
            min: below,
            mean,
            max: above,
        });
    }
    (TrialResult { timeline: line, ..blank_trial() }, picture)
}

fn row(noise: &mut Noise, column: usize, width_ns: i64) -> Row {
    let due = i64::try_from(column).expect("small") * width_ns + noise.signed(1_000_000_000);
    let mut marks = [NO_STAMP; STAGES_MAX];
    let mark = due + 100_000_000 + noise.signed(900_000_000);
    marks[0] = mark;
    Row {
        tx: u64::try_from(column).expect("small") * 2_000 + noise.next(2_000),
        due,
        ready: due + noise.signed(50_000),
        sent: due + 50_000 + noise.signed(50_000),
        marks,
        end: mark,
        receive_lag: NO_STAMP,
        outcome: Outcome::Committed,
        code: 200,
        error: 0,
        kind: u32::try_from(noise.next(41)).expect("small"),
        connection: u32::try_from(noise.next(64)).expect("small"),
        worker: u8::try_from(noise.next(2)).expect("small"),
        stream: 0,
        attempts: 1,
        client: 0,
        bytes_out: 0,
        bytes_in: 0,
    }
}

fn run_of(trials: Vec<(TrialResult, TrialPicture)>) -> (RunResult, RunPicture) {
    let (results, pictures): (Vec<_>, Vec<_>) = trials.into_iter().unzip();
    let settings: Vec<Value> = results
        .iter()
        .enumerate()
        .map(|(index, trial)| {
            json!({ "key": format!("rate={index}"), "values": {}, "verdict": "pass", "expect": null,
                "saturated": false, "trials": [trial] })
        })
        .collect();
    let run = json!({ "schema": "assay.result/2", "name": "noise", "question": "", "notes": "", "started": "",
        "seed": 1, "verdict": "pass", "reason": "", "exit_code": 0, "exit_meaning": "", "interrupted": false,
        "fidelity": [], "percentile_method": "", "settings": settings, "tables": [], "knee": "", "load_series": [],
        "audits": [], "environment": {} });
    let result = serde_json::from_value(run).expect("a run of these trials");
    (result, RunPicture { trials: pictures, ..RunPicture::default() })
}

fn noisy_run(columns: usize, cells: u8) -> (RunResult, RunPicture) {
    let mut noise = Noise(4);
    run_of((0..4).map(|_| noisy_trial(&mut noise, columns, cells, 16)).collect())
}

/// The script's part: the index and the arrays out of the text.
fn unpack(text: &str) -> (Value, Vec<u8>) {
    let bytes = STANDARD.decode(text).expect("base64");
    let bytes = miniz_oxide::inflate::decompress_to_vec(&bytes).expect("deflate");
    let length = u32::from_le_bytes(bytes[..4].try_into().expect("four bytes")) as usize;
    let index = serde_json::from_slice(&bytes[4..4 + length]).expect("JSON");
    (index, bytes[4 + length..].to_vec())
}

fn ints(array: &Value, bytes: &[u8]) -> Vec<i64> {
    let mut at = array["at"].as_u64().expect("a place") as usize;
    let mut before = 0;
    (0..array["n"].as_u64().expect("a count"))
        .map(|_| {
            let (mut zigzag, mut shift) = (0_u64, 0);
            loop {
                let byte = bytes[at];
                at += 1;
                zigzag |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            before += (zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed();
            before
        })
        .collect()
}

fn maybes(array: &Value, bytes: &[u8]) -> Vec<Option<i64>> {
    let stored = ints(array, bytes).into_iter();
    stored.map(|v| (v != 0).then_some(if v > 0 { v - 1 } else { v })).collect()
}

/// Claim: every whole number comes out as it went in, a missing one and a negative one included.
#[test]
fn numbers_come_out_as_they_went_in() {
    let mut run = noisy_run(40, 20);
    let columns = &mut run.0.settings[1].trials[0].timeline.columns;
    columns[3].p99_ns = None;
    columns[4].own_lag_p99_ns = Some(-7);
    columns[5].outstanding = -2;
    columns[6].p50_ns = Some(0);
    let (index, bytes) = unpack(&pack(std::slice::from_ref(&run)));
    assert_eq!(index["form"], "assay.page/1");
    assert_eq!(index["runs"][0]["trials"], json!([0, 1, 2, 3]));
    let trial = &index["trials"][1];
    let columns = &run.0.settings[1].trials[0].timeline.columns;
    let of = |key: &str| maybes(&trial[key], &bytes);
    assert_eq!(of("p50_ns"), columns.iter().map(|it| it.p50_ns).collect::<Vec<_>>());
    assert_eq!(of("p99_ns"), columns.iter().map(|it| it.p99_ns).collect::<Vec<_>>());
    assert_eq!(
        of("own_lag_p99_ns"),
        columns.iter().map(|it| it.own_lag_p99_ns).collect::<Vec<_>>()
    );
    let outstanding = ints(&trial["outstanding"], &bytes);
    assert_eq!(outstanding, columns.iter().map(|it| it.outstanding).collect::<Vec<_>>());
    let server = ints(&trial["failed"]["server"], &bytes);
    let expected: Vec<i64> = columns.iter().map(|it| it.failed["server"].cast_signed()).collect();
    assert_eq!(server, expected);

    let picture = &run.1.trials[1];
    let slow = &trial["slow"];
    let mut rows: Vec<&SlowTransaction> = picture.slowest.iter().collect();
    rows.sort_by_key(|it| (it.column, it.row.due, it.row.tx));
    let due = ints(&slow["due"], &bytes);
    assert_eq!(due, rows.iter().map(|it| it.row.due).collect::<Vec<_>>());
    let mark = maybes(&slow["marks"][0], &bytes);
    let expected: Vec<_> = rows.iter().map(|it| Some(it.row.marks[0] - it.row.due)).collect();
    assert_eq!(mark, expected);

    let series = &trial["series"][2];
    let stored = maybes(&series["mean"], &bytes);
    let (from, step) = (
        series["mean"]["from"].as_f64().expect("from"),
        series["mean"]["step"].as_f64().expect("step"),
    );
    for (stored, value) in stored.iter().zip(&picture.series[2].mean) {
        let shown = from + step * stored.expect("a value") as f64;
        assert!((shown - value).abs() <= step * 0.5000001, "{shown} {value}");
    }
}

/// Claim: counts of a density are merged, never lost, when a document has too many cells.
#[test]
fn a_merged_density_loses_nobody() {
    let run = noisy_run(1_200, 60);
    let (index, bytes) = unpack(&pack(std::slice::from_ref(&run)));
    let mut cells = 0;
    for (trial, picture) in index["trials"].as_array().expect("trials").iter().zip(&run.1.trials) {
        assert_eq!(trial["density"]["per_decade"], 6);
        let counts = ints(&trial["density"]["count"], &bytes);
        cells += counts.len();
        let sum: i64 = picture.density.iter().flatten().map(|(_, count)| i64::from(*count)).sum();
        assert_eq!(counts.iter().sum::<i64>(), sum);
    }
    assert!(cells <= density::DENSITY_CELLS_MAX);
}

/// Claim: the noisiest picture of four trials of 1,200 columns and 16 series packs into less than 850 kB, which leaves room
/// for charts, tables and script in a page of 1 MB; real series are calmer.
#[test]
fn noise_stays_small() {
    for (columns, cells) in [(900, 60), (1_200, 60), (1_200, 20)] {
        let run = noisy_run(columns, cells);
        let packed = pack(std::slice::from_ref(&run));
        let (index, bytes) = unpack(&packed);
        let slow: usize = index["trials"]
            .as_array()
            .expect("trials")
            .iter()
            .map(|trial| ints(&trial["slow"]["tx"], &bytes).len())
            .sum();
        println!("{columns} columns, {cells} cells: {} bytes, {slow} slow", packed.len());
        assert!(slow <= SLOW_ROWS_MAX && slow > SLOW_ROWS_MAX / 3, "{slow}");
        assert!(packed.len() < 850_000, "{} bytes", packed.len());
    }
}

/// Claim: a page of nothing but noise, four trials of 900 columns with 16 series, all its charts and tables included, is
/// bounded: below 1.4 MB. Real series repeat themselves.
#[test]
fn a_noisy_page_is_bounded() {
    for columns in [450, 900] {
        let run = noisy_run(columns, 60);
        let packed = pack(std::slice::from_ref(&run)).len();
        let page = crate::html::page::html(&[run], &crate::html::Assets::built()).expect("a page");
        let drawn: usize = page.split("<svg").skip(1).filter_map(|it| it.find("</svg>")).sum();
        println!("{columns} columns: {} bytes, {packed} packed, {drawn} drawn", page.len());
        assert!(page.len() < 1_400_000, "{} bytes", page.len());
    }
}

/// Claim: where even one of each column is too many, each trial keeps its share, and it is the slowest that stay.
#[test]
fn too_many_columns_keep_the_slowest() {
    let mut noise = Noise(5);
    let run = run_of((0..8).map(|_| noisy_trial(&mut noise, 1_200, 2, 0)).collect());
    let (index, bytes) = unpack(&pack(std::slice::from_ref(&run)));
    for (trial, picture) in run.1.trials.iter().enumerate() {
        let kept = ints(&index["trials"][trial]["slow"]["tx"], &bytes);
        assert_eq!(kept.len(), SLOW_ROWS_MAX / 8);
        let slowest = picture.slowest.iter().max_by_key(|it| it.row.end - it.row.due);
        let slowest = slowest.expect("a trial of many").row.tx;
        // Of several of one column the first is kept: the noise is not sorted, real pictures are.
        let is_first = picture.slowest.iter().step_by(8).any(|it| it.row.tx == slowest);
        assert!(!is_first || kept.contains(&i64::try_from(slowest).expect("small")), "{trial}");
    }
}
