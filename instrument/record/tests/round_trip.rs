//! What goes into a run folder comes out of it: every row, whatever is missing in it, from the log and sealed.

use crate::rows::{any_row, http_row, let_wait, new_trial, read_all, sealed_order};
use model::facts::{Event, LedgerEntry, MetricSample, TrialFacts};
use model::{NO_STAMP, Row, STAGES_MAX, Seed};
use record::{BATCH_ROWS_MAX, RowsRead};

/// Claim: rows with every combination of missing stamps, every outcome and extreme values come back exactly,
/// from the log in the order appended and from Parquet in the documented order.
#[test]
fn random_rows_survive_log_and_seal() {
    for seed in 0..40 {
        let mut rng = Seed(seed).rng();
        let stages = usize::try_from(rng.below(STAGES_MAX as u64 + 1)).unwrap();
        let count = rng.below(3000);
        let mut rows: Vec<Row> = (0..count).map(|tx| any_row(&mut rng, tx, stages)).collect();
        let_wait(&mut rng, &mut rows);
        let (_keep, trial) = new_trial(stages);
        let mut log = trial.row_log().unwrap();
        for batch in rows.chunks(1 + usize::try_from(rng.below(700)).unwrap()) {
            log.append(batch).unwrap();
            if rng.below(3) == 0 {
                log.flush().unwrap();
            }
        }
        log.close().unwrap();
        let (read, found) = read_all(&trial);
        assert_eq!(read, RowsRead { rows: count, from_log: true, dropped_bytes: 0 }, "seed {seed}");
        assert_eq!(found, rows, "seed {seed}");
        trial.seal().unwrap();
        let (read, found) = read_all(&trial);
        assert_eq!(read, RowsRead { rows: count, from_log: false, dropped_bytes: 0 });
        assert_eq!(found, sealed_order(&rows), "seed {seed}");
        assert_eq!(trial.row_count().unwrap(), count);
        assert!(!trial.path().join("rows.log").exists());
    }
}

/// Claim: more rows than a row group holds come back in the documented order, in batches within the bound, also of readers
/// who share them, and sealing twice changes no byte.
#[test]
fn many_row_groups() {
    let mut rng = Seed(11).rng();
    let mut rows: Vec<Row> = (0..300_000).map(|tx| http_row(&mut rng, tx)).collect();
    // Connections that carry little: a row of the last group follows one of the first.
    for (tx, connection) in (0..100).zip(100..).chain((290_000..290_100).zip(100..)) {
        rows[tx].connection = connection;
    }
    let_wait(&mut rng, &mut rows);
    let (_keep, trial) = new_trial(1);
    let mut log = trial.row_log().unwrap();
    log.append(&rows).unwrap();
    log.close().unwrap();
    trial.seal().unwrap();
    let path = trial.path().join("transactions.parquet");
    let first = std::fs::read(&path).unwrap();
    trial.seal().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), first);
    trial.for_each_batch(|batch| assert!(batch.len() <= BATCH_ROWS_MAX)).unwrap();
    let (_, found) = read_all(&trial);
    assert!(found == sealed_order(&rows));
    for of in 1..5 {
        let mut shared = Vec::new();
        for number in 1..=of {
            let share = format!("{number}/{of}").parse().unwrap();
            trial.for_each_batch_of(share, |batch| shared.extend_from_slice(batch)).unwrap();
        }
        assert!(shared == found, "{of} readers");
    }
}

/// Claim: a row takes at most ten bytes, of which two are how late its answer was read, also where transactions waited for
/// a connection: 50,000 a second, due at random, of which 64 connections carry some 33,000.
#[test]
fn a_backlog_costs_no_more() {
    let mut rng = Seed(12).rng();
    let (mut due, mut free) = (0, [0; 64]);
    let mut rows: Vec<Row> = (0..200_000)
        .map(|tx| {
            due += rng.exponential(20_000.0) as i64;
            let at = (0..free.len()).min_by_key(|at| free[*at]).unwrap();
            let ready = due.max(free[at]);
            let sent = ready + 300 + rng.exponential(1_000.0) as i64;
            let end = sent + 1_300_000 + rng.exponential(550_000.0) as i64;
            free[at] = end;
            let row = Row { tx, due, ready, sent, end, ..http_row(&mut rng, tx) };
            Row { marks: [end, NO_STAMP, NO_STAMP, NO_STAMP], connection: at as u32, ..row }
        })
        .collect();
    rows.sort_by_key(|row| row.end);
    assert!(rows.iter().filter(|row| row.ready > row.due).count() > 190_000);
    let mut rng = Seed(11).rng();
    let calm: Vec<Row> = (0..300_000).map(|tx| http_row(&mut rng, tx)).collect();
    for rows in [rows, calm] {
        let (_keep, trial) = new_trial(1);
        let mut log = trial.row_log().unwrap();
        log.append(&rows).unwrap();
        log.close().unwrap();
        trial.seal().unwrap();
        assert!(read_all(&trial).1 == sealed_order(&rows));
        let file = std::fs::metadata(trial.path().join("transactions.parquet")).unwrap();
        assert!(file.len() < rows.len() as u64 * 10, "{} bytes", file.len());
    }
}

/// Claim: a mark beyond the ladder that trial.json names is kept, under its stage's number.
#[test]
fn marks_without_a_name_are_kept() {
    let (_keep, trial) = new_trial(1);
    let mut row = http_row(&mut Seed(1).rng(), 0);
    row.marks[3] = row.end;
    let mut log = trial.row_log().unwrap();
    log.append(&[row]).unwrap();
    log.close().unwrap();
    trial.seal().unwrap();
    assert_eq!(read_all(&trial).1, [row]);
}

/// Claim: stages called like our own columns, twice the same, or with strange characters still give a file
/// that reads back.
#[test]
fn strange_stage_names() {
    let (_keep, trial) = new_trial(0);
    let stages = ["sent", "a,b \"c\"\n", "x", "x"].map(str::to_owned).to_vec();
    let mut facts = TrialFacts::default();
    facts.declared.stages = stages;
    trial.write_facts(&facts).unwrap();
    let rows: Vec<Row> = (0..100).map(|tx| any_row(&mut Seed(tx).rng(), tx, 4)).collect();
    let mut log = trial.row_log().unwrap();
    log.append(&rows).unwrap();
    log.close().unwrap();
    trial.seal().unwrap();
    assert_eq!(read_all(&trial).1, sealed_order(&rows));
}

/// Claim: an empty log seals to empty files that read as no rows.
#[test]
fn no_rows() {
    let (_keep, trial) = new_trial(2);
    trial.row_log().unwrap().close().unwrap();
    trial.seal().unwrap();
    let (read, rows) = read_all(&trial);
    assert_eq!((read.rows, read.from_log, rows.len()), (0, false, 0));
}

/// Claim: metrics, events and ledger come back as written, empty and over several row groups, and what was
/// never written reads as nothing.
#[test]
fn tables_round_trip() {
    let (_keep, trial) = new_trial(1);
    assert_eq!(trial.metrics().unwrap(), []);
    assert_eq!(trial.events().unwrap(), []);
    assert_eq!(trial.for_each_ledger_entry(|_, _| ()).unwrap(), None);
    let mut rng = Seed(3).rng();
    for count in [0_usize, 1, 70_000] {
        let samples: Vec<_> = (0..count)
            .map(|index| MetricSample {
                at: i64::try_from(index).unwrap() * 1_000_000,
                source: ["generator", "host", "node-1"][index % 3].to_owned(),
                name: ["cpu_cores", "rss_bytes"][index % 2].to_owned(),
                value: rng.unit(),
            })
            .collect();
        trial.write_metrics(&samples).unwrap();
        assert_eq!(trial.metrics().unwrap(), samples);
        let events: Vec<_> = (0..count)
            .map(|index| Event {
                at: -5,
                name: "late_answer".to_owned(),
                tx: (rng.below(2) == 0).then(|| rng.next_u64()),
                detail: format!("answer {index} — späť"),
            })
            .collect();
        trial.write_events(&events).unwrap();
        assert_eq!(trial.events().unwrap(), events);
        let entries: Vec<_> = (0..count as u64)
            .map(|position| LedgerEntry {
                is_refused: rng.below(5) == 0,
                is_waiting: rng.below(5) == 0,
                ..LedgerEntry::new(position, rng.next_u64(), rng.below(9) > 0)
            })
            .collect();
        // Some have content, of which some is empty: what has none reads as empty.
        let contents: Vec<Option<Vec<u8>>> = entries
            .iter()
            .map(|entry| (entry.tx % 3 > 0).then(|| vec![7; entry.tx as usize % 40]))
            .collect();
        let mut ledger = trial.ledger_writer().unwrap();
        for (entry, content) in entries.iter().zip(&contents) {
            ledger.push(*entry, content.as_deref()).unwrap();
        }
        ledger.close().unwrap();
        let mut found = Vec::new();
        let keep = |entry: &LedgerEntry, content: &[u8]| found.push((*entry, content.to_vec()));
        let total = trial.for_each_ledger_entry(keep).unwrap();
        assert_eq!(total, Some(count as u64));
        let contents = contents.into_iter().map(Option::unwrap_or_default);
        assert_eq!(found, entries.into_iter().zip(contents).collect::<Vec<_>>());
    }
}

/// Claim: a text that is too long is cut at a character's edge, and the rest of its event survives.
#[test]
fn long_texts_are_cut() {
    let (_keep, trial) = new_trial(1);
    let event = Event { at: 1, name: "x".to_owned(), tx: None, detail: "é".repeat(5000) };
    trial.write_events(std::slice::from_ref(&event)).unwrap();
    let found = trial.events().unwrap();
    assert_eq!(found.len(), 1);
    assert!(event.detail.starts_with(&found[0].detail) && found[0].detail.len() == 4096);
}

/// Claim: a ledger writer that is dropped leaves no ledger, and no half of one.
#[test]
fn an_unfinished_ledger_is_none() {
    let (_keep, trial) = new_trial(1);
    let mut ledger = trial.ledger_writer().unwrap();
    ledger.push(LedgerEntry::new(0, 0, true), None).unwrap();
    drop(ledger);
    assert_eq!(trial.for_each_ledger_entry(|_, _| ()).unwrap(), None);
    let names: Vec<_> = std::fs::read_dir(trial.path()).unwrap().flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

/// Claim: rows whose stamps never happened keep that, in both forms.
#[test]
fn a_shed_row_stays_shed() {
    let (_keep, trial) = new_trial(1);
    let mut row = http_row(&mut Seed(1).rng(), 7);
    row.sent = NO_STAMP;
    row.ready = NO_STAMP;
    row.marks = [NO_STAMP; STAGES_MAX];
    row.outcome = model::Outcome::Shed;
    let mut log = trial.row_log().unwrap();
    log.append(&[row]).unwrap();
    log.close().unwrap();
    assert_eq!(read_all(&trial).1, [row]);
    trial.seal().unwrap();
    assert_eq!(read_all(&trial).1, [row]);
}
