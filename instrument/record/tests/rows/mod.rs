//! Rows and trial folders that the tests of this crate start from. It asserts nothing.
#![allow(dead_code, reason = "each test binary uses another part, so `expect` would fail in some")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::HashMap;

use clock::WallTime;
use model::facts::{DeclaredFacts, KindFacts, LoadFacts, TrialFacts};
use model::seed::Rng;
use model::{NO_STAMP, Outcome, Row, STAGES_MAX};
use record::{RowsRead, RunFolder, TrialFolder};

/// A run folder of its own with one trial, whose ladder has `stages` stages.
pub fn new_trial(stages: usize) -> (tempfile::TempDir, TrialFolder) {
    let folder = tempfile::tempdir().unwrap();
    let run = RunFolder::create(folder.path(), "test", WallTime::from_unix_ns(0)).unwrap();
    let trial = run.trial("default", 0).unwrap();
    trial.write_facts(&facts(stages)).unwrap();
    (folder, trial)
}

pub fn facts(stages: usize) -> TrialFacts {
    let names = ["accepted", "committed", "verified", "archived"];
    TrialFacts {
        declared: DeclaredFacts {
            stages: names[..stages].iter().map(|name| (*name).to_owned()).collect(),
            final_stage: stages.saturating_sub(1),
            kinds: vec![KindFacts::recorded("GET /")],
            ..DeclaredFacts::default()
        },
        load: LoadFacts {
            errors: vec![String::new(), "500 Internal Server Error".to_owned()],
            started: WallTime::from_unix_ns(1_795_243_832_000_000_000),
            ..LoadFacts::default()
        },
        ..TrialFacts::default()
    }
}

pub fn read_all(trial: &TrialFolder) -> (RowsRead, Vec<Row>) {
    let mut rows = Vec::new();
    let read = trial.for_each_batch(|batch| rows.extend_from_slice(batch)).unwrap();
    (read, rows)
}

/// A row as an HTTP load has it: due every 20 µs, sent about a microsecond later, answered after some 80 µs.
pub fn http_row(rng: &mut Rng, tx: u64) -> Row {
    let due = i64::try_from(tx).unwrap() * 20_000;
    let sent = due + 300 + rng.below(2_000).cast_signed();
    let mark = sent + 60_000 + rng.below(40_000).cast_signed();
    let mut marks = [NO_STAMP; STAGES_MAX];
    marks[0] = mark;
    Row {
        tx,
        due,
        ready: due,
        sent,
        marks,
        end: mark,
        receive_lag: 15_000 + rng.below(20_000).cast_signed(),
        outcome: Outcome::Committed,
        code: 200,
        error: 0,
        kind: 0,
        connection: u32::try_from(rng.below(64)).unwrap(),
        worker: 0,
        stream: 0,
        attempts: 1,
        client: 0,
        bytes_out: 0,
        bytes_in: 615,
    }
}

/// Any row at all: usual or extreme numbers, any stamps missing, marks on the first `stages` stages.
pub fn any_row(rng: &mut Rng, tx: u64, stages: usize) -> Row {
    let extreme = rng.below(50) == 0;
    let stamp = |rng: &mut Rng| match (rng.below(4), extreme) {
        (0, _) => NO_STAMP,
        (_, true) => rng.next_u64().cast_signed(),
        (_, false) => rng.below(60_000_000_000).cast_signed() - 1_000,
    };
    let mut marks = [NO_STAMP; STAGES_MAX];
    marks[..stages].fill_with(|| stamp(rng));
    let outcomes: Vec<Outcome> = (0..=u8::MAX).filter_map(Outcome::from_code).collect();
    let outcome = outcomes[usize::try_from(rng.below(outcomes.len() as u64)).unwrap()];
    let small = |rng: &mut Rng| {
        let bits = if rng.below(5) == 0 { 32 } else { 3 };
        u32::try_from(rng.next_u64() >> (64 - bits)).unwrap()
    };
    Row {
        tx: if extreme { rng.next_u64() } else { tx },
        due: stamp(rng),
        ready: stamp(rng),
        sent: stamp(rng),
        marks,
        end: stamp(rng),
        receive_lag: stamp(rng),
        outcome,
        code: small(rng) as u16,
        error: small(rng) as u16,
        kind: small(rng),
        connection: small(rng),
        worker: small(rng) as u8,
        stream: small(rng) as u8,
        attempts: small(rng) as u8,
        client: small(rng),
        bytes_out: small(rng),
        bytes_in: small(rng),
    }
}

/// The order that for_each_batch documents for a sealed trial, as indices.
fn sealed_indices(rows: &[Row]) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..rows.len()).collect();
    for group in indices.chunks_mut(128 << 10) {
        group.sort_by_key(|index| (rows[*index].due, rows[*index].tx));
    }
    indices
}

pub fn sealed_order(rows: &[Row]) -> Vec<Row> {
    sealed_indices(rows).into_iter().map(|index| rows[index]).collect()
}

/// Makes about half of the rows ready at the end of the row before on their connection, in the order of the
/// sealed file, or a nanosecond beside it. Says how many it was exactly that.
pub fn let_wait(rng: &mut Rng, rows: &mut [Row]) -> usize {
    let (mut carried, mut count) = (HashMap::new(), 0);
    for index in sealed_indices(rows) {
        let row = &mut rows[index];
        let key = (row.worker, row.connection);
        match (carried.get(&key), rng.below(10)) {
            (Some(end), 0..=3) => {
                row.ready = *end;
                count += usize::from(*end != NO_STAMP);
            }
            (Some(end), 4) => row.ready = end.wrapping_add(1),
            _ => {}
        }
        if row.sent != NO_STAMP {
            carried.insert(key, row.end);
        }
    }
    count
}
