//! Each lie does what it says to exactly the transactions that it confesses, and nothing else.

use std::collections::BTreeSet;

use super::*;
use crate::commits::INVENTED;
use crate::protocol::submit_checksum;
use crate::{Faults, Lie, Limit};

const COUNT: u64 = 10_000;
const EVERY: u64 = 100;

/// What came of `COUNT` transactions, one every millisecond.
struct Told {
    stage: Stage,
    answers: Vec<(Instant, Answer)>,
    ledger: Vec<u64>,
}

fn told(options: Options, until: Instant) -> Told {
    let mut stage = Stage::new(options);
    let mut answers = Vec::new();
    for tx in 0..COUNT {
        stage.submit(ms(tx), tx);
        answers.extend(stage.answers());
    }
    stage.rehearsal.advance(until);
    answers.extend(stage.answers());
    let ledger = stage.ledger().iter().map(|record| record.tx).collect();
    Told { stage, answers, ledger }
}

fn lying(lie: Lie) -> Told {
    let faults = Options::default().faults.lie(lie, EVERY);
    let stages = if lie == Lie::Unordered { 2 } else { 1 };
    let told = told(Options { faults, stages, ..Options::default() }, ms(COUNT + 100_000));
    let confessed = told.stage.confessed(lie.word());
    assert_eq!(confessed.len() as u64, COUNT / EVERY, "{lie:?} strikes one in {EVERY}");
    told
}

fn all() -> BTreeSet<u64> {
    (0..COUNT).collect()
}

fn without(missing: &[u64]) -> BTreeSet<u64> {
    all().into_iter().filter(|tx| !missing.contains(tx)).collect()
}

fn in_order() -> Vec<u64> {
    (0..COUNT).collect()
}

/// Claim: an honest node answers each transaction once and stores each once, in order.
#[test]
fn honesty() {
    let told = told(Options::default(), ms(COUNT));
    assert_eq!(with(&told.answers, Code::Committed), in_order());
    assert_eq!(told.ledger, in_order());
    assert_eq!(told.stage.rehearsal.node().confession().list(), []);
}

/// Claim: dropped answers are stored and never come; twice answered ones come twice; the ledger knows nothing
/// of either.
#[test]
fn answers_dropped_and_doubled() {
    let dropped = lying(Lie::Drop);
    let answered: BTreeSet<u64> = with(&dropped.answers, Code::Committed).into_iter().collect();
    assert_eq!(answered, without(&dropped.stage.confessed("drop")));
    assert_eq!(dropped.ledger, in_order());
    let twice = lying(Lie::Twice);
    let mut answered = with(&twice.answers, Code::Committed);
    assert_eq!(answered.len() as u64, COUNT + COUNT / EVERY);
    for tx in twice.stage.confessed("twice") {
        let at = answered.iter().position(|known| *known == tx).unwrap();
        assert_eq!(answered.remove(at + 1), tx);
    }
    assert_eq!((answered, twice.ledger), (in_order(), in_order()));
}

/// Claim: closed connections and garbage take exactly the confessed answers; what is stored stays.
#[test]
fn connections_closed_and_garbage() {
    for lie in [Lie::Close, Lie::Garbage] {
        let told = lying(lie);
        let answered: BTreeSet<u64> = with(&told.answers, Code::Committed).into_iter().collect();
        assert_eq!(answered, without(&told.stage.confessed(lie.word())), "{lie:?}");
        assert_eq!(told.ledger, in_order(), "{lie:?}");
    }
    let mut stage = Stage::new(Options {
        faults: Options::default().faults.lie(Lie::Garbage, 1),
        ..Options::default()
    });
    stage.submit(ms(0), 0);
    let sent = stage.rehearsal.take_sent();
    assert!(next_frame(&sent[0].bytes).is_err(), "no frame begins so");
}

/// Claim: lost entries are acknowledged and missing; repeated ones stand twice; invented ones were never
/// submitted and carry the run's mark.
#[test]
fn the_ledger_lies() {
    let lost = lying(Lie::Lose);
    assert_eq!(with(&lost.answers, Code::Committed), in_order());
    let stored: BTreeSet<u64> = lost.ledger.iter().copied().collect();
    assert_eq!(stored, without(&lost.stage.confessed("lose")));
    let repeated = lying(Lie::Repeat);
    assert_eq!(repeated.ledger.len() as u64, COUNT + COUNT / EVERY);
    let mut ledger = repeated.ledger.clone();
    ledger.dedup();
    assert_eq!(ledger, in_order());
    let mut invented = lying(Lie::Invent);
    let phantoms: Vec<u64> = invented.ledger.iter().copied().filter(|tx| *tx >= COUNT).collect();
    assert_eq!(phantoms, invented.stage.confessed("invent"));
    assert!(phantoms.iter().all(|tx| tx & INVENTED != 0));
    assert!(invented.stage.ledger().iter().all(|record| record.run == RUN));
    invented.ledger.retain(|tx| *tx < COUNT);
    assert_eq!(invented.ledger, in_order());
}

/// Claim: reordered entries are all there, each behind at least `reorder_by` that were submitted after its
/// acknowledgement; the others keep their order.
#[test]
fn the_ledger_contradicts_time() {
    let told = lying(Lie::Reorder);
    let confessed = told.stage.confessed("reorder");
    assert_eq!(told.ledger.iter().copied().collect::<BTreeSet<u64>>(), all());
    let (moved, kept): (Vec<u64>, Vec<u64>) =
        told.ledger.iter().partition(|tx| confessed.contains(tx));
    assert_eq!(moved.len(), confessed.len());
    assert!(kept.is_sorted());
    let position = |tx: u64| told.ledger.iter().position(|known| *known == tx).unwrap() as u64;
    // Those near the end are stored at the sync, behind whatever there is.
    for tx in confessed.into_iter().filter(|tx| tx + 1100 < COUNT) {
        assert!(position(tx) >= tx + 990, "{tx} at {}", position(tx));
    }
}

/// Claim: late answers are stored in time and come a minute later; with two stages an unordered commit is said
/// before its acceptance.
#[test]
fn answers_at_the_wrong_time() {
    let late = lying(Lie::Late);
    assert_eq!(late.ledger, in_order());
    let confessed = late.stage.confessed("late");
    for (at, answer) in &late.answers {
        let waited = at.ns_since(ms(answer.tx)) / 1_000_000;
        assert_eq!(waited, if confessed.contains(&answer.tx) { 60_000 } else { 0 });
    }
    let unordered = lying(Lie::Unordered);
    let confessed = unordered.stage.confessed("unordered");
    for tx in 0..COUNT {
        let said = unordered.answers.iter().filter(|(_, answer)| answer.tx == tx);
        let codes: Vec<Code> = said.map(|(_, answer)| answer.code).collect();
        let expected = if confessed.contains(&tx) {
            [Code::Committed, Code::Accepted]
        } else {
            [Code::Accepted, Code::Committed]
        };
        assert_eq!(codes, expected, "{tx}");
    }
    let faults = Options::default().faults.lie(Lie::Unordered, 2);
    let service = Duration::from_millis(2);
    let three = told(
        Options { faults, stages: 3, servers: 4, service, ..Options::default() },
        ms(COUNT + 9),
    );
    for tx in three.stage.confessed("unordered") {
        let said = three.answers.iter().filter(|(_, answer)| answer.tx == tx);
        let said: Vec<_> = said.map(|(at, answer)| (at.ns_since(ms(tx)), answer.code)).collect();
        let expected =
            [(0, Code::Started), (2_000_000, Code::Accepted), (2_000_000, Code::Committed)];
        assert_eq!(said, expected);
    }
    assert_eq!(three.stage.confessed("unordered").len() as u64, COUNT / 2);
}

/// Claim: one in 100,000 strikes exactly once in 100,000 commits, whatever the seed, and which one depends on
/// the seed.
#[test]
fn one_in_a_hundred_thousand() {
    let mut struck = BTreeSet::new();
    for seed in 1..=3 {
        let every = 100_000;
        let faults = Options::default()
            .faults
            .lie(Lie::Lose, every)
            .lie(Lie::Repeat, every)
            .lie(Lie::Invent, every);
        let mut stage = Stage::new(Options { faults, seed, ..Options::default() });
        for tx in 0..every {
            stage.submit(Instant::from_ns(tx as i64 * 1000), tx);
            stage.rehearsal.take_sent();
        }
        for word in ["lose", "repeat", "invent"] {
            let confessed = stage.confessed(word);
            assert_eq!(confessed.len(), 1, "{word}, seed {seed}");
            struck.insert(confessed[0] & !INVENTED);
        }
        // Minus the lost, plus the repeated and the invented; fewer if one transaction was struck twice.
        assert_eq!(stage.ledger().len() as u64, every + 1);
    }
    assert_eq!(struck.len(), 9, "different ones: {struck:?}");
}

/// Claim: the limiter lets its burst and rate pass and answers the rest as limited with the wait; the refused
/// are not stored, and after a refusal a back-off refuses all.
#[test]
fn limited() {
    let limited = |backoff| {
        let limit = Some(Limit { rate: 100.0, burst: 50.0, backoff });
        let faults = Faults { limit, ..Options::default().faults };
        told(Options { faults, ..Options::default() }, ms(COUNT))
    };
    let bucket = limited(Duration::ZERO);
    let committed = with(&bucket.answers, Code::Committed);
    assert!((1048..=1050).contains(&committed.len()), "50 + 100/s for 10 s: {}", committed.len());
    assert_eq!(bucket.ledger, committed);
    let refused = with(&bucket.answers, Code::Limited);
    assert_eq!(committed.len() + refused.len(), COUNT as usize);
    let backed_off = limited(Duration::from_secs(2));
    let first = backed_off.answers.iter().find(|(_, a)| a.code == Code::Limited).unwrap();
    assert_eq!(first.1.wait_ms, 2000);
    let after = |tx: u64| (first.1.tx..first.1.tx + 2000).contains(&tx);
    assert!(!with(&backed_off.answers, Code::Committed).into_iter().any(after));
}

/// Claim: a refused kind, a broken checksum and a full queue are answered as such and never stored.
#[test]
fn refused() {
    let faults = Faults { refused_kind: Some(2), ..Options::default().faults };
    let mut stage = Stage::new(Options { faults, ..Options::default() });
    (0..3).for_each(|kind| stage.submit_kind(ms(0), u64::from(kind), kind));
    let mut bytes = Vec::new();
    write_submit(&mut bytes, RUN, 3, 0, b"payload");
    *bytes.last_mut().unwrap() ^= 1;
    stage.rehearsal.send(stage.connection, &bytes);
    let answers = stage.answers();
    assert_eq!(with(&answers, Code::Committed), [0, 1]);
    assert_eq!(with(&answers, Code::Invalid), [2, 3]);
    let mut full = Stage::new(Options {
        service: Duration::from_secs(1),
        queue_max: Some(1),
        ..Options::default()
    });
    (0..4).for_each(|tx| full.submit(ms(tx), tx));
    full.rehearsal.advance(ms(10_000));
    let answers = full.answers();
    assert_eq!(with(&answers, Code::Overloaded), [2, 3]);
    assert_eq!(with(&answers, Code::Committed), [0, 1]);
    let stored: Vec<u64> = full.ledger().iter().map(|record| record.tx).collect();
    assert_eq!(stored, [0, 1]);
}

/// Claim: altered entries carry another checksum than was submitted and void ones stand as refused, those that are
/// confessed and no others; both are acknowledged.
#[test]
fn entries_altered_and_void() {
    for lie in [Lie::Alter, Lie::Void] {
        let mut told = lying(lie);
        assert_eq!(with(&told.answers, Code::Committed), in_order());
        assert_eq!(told.ledger, in_order());
        let confessed = told.stage.confessed(lie.word());
        for record in told.stage.ledger() {
            let is_struck = confessed.contains(&record.tx);
            let submitted = submit_checksum(RUN, record.tx, 0, b"payload");
            assert_eq!(record.submit_crc != submitted, is_struck && lie == Lie::Alter);
            assert_eq!(record.is_refused, is_struck && lie == Lie::Void);
        }
    }
}

/// Claim: a read gives what its key holds when it is served and stores nothing; one in N gives a value that was
/// overwritten sixty-three times, and is confessed; what is refused as invalid is logged as refused where that is
/// asked for.
#[test]
fn registers() {
    let reads = Some(1);
    let faults = Options::default().faults.lie(Lie::Stale, 10);
    let mut stage = Stage::new(Options { reads, faults, ..Options::default() });
    let key = |key: u64| key.to_le_bytes();
    let (mut last, mut stale) = ([None; 3], Vec::new());
    for tx in 0..3_000_u64 {
        let of = (tx / 2 % 3) as usize;
        let mut bytes = Vec::new();
        write_submit(&mut bytes, RUN, tx, (tx % 2) as u16, &key(of as u64));
        stage.rehearsal.advance(ms(tx));
        stage.rehearsal.send(stage.connection, &bytes);
        let reply = stage.rehearsal.take_bytes(stage.connection);
        let reply = read_reply(next_frame(&reply).unwrap().unwrap().payload).unwrap();
        match reply {
            Reply::Answer(answer) => {
                assert_eq!((answer.code, answer.tx, tx % 2), (Code::Committed, tx, 0));
                last[of] = Some(tx);
            }
            Reply::Value { tx: of_tx, value } if value == last[of] => assert_eq!(of_tx, tx),
            Reply::Value { value, .. } => {
                // Each key is written every sixth transaction.
                assert_eq!(value, last[of].map(|value| value - 63 * 6));
                stale.push(tx);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(stale, stage.confessed("stale"));
    assert_eq!(stale.len(), 150);
    assert_eq!(stage.ledger().len(), 1_500);

    let faults = Faults { logs_reads: true, ..Options::default().faults };
    let mut stage = Stage::new(Options { reads, faults, ..Options::default() });
    (0..4).for_each(|tx| stage.submit_kind(ms(tx), tx, (tx % 2) as u16));
    assert_eq!(stage.ledger().len(), 4, "reads are stored where that is asked for");

    let faults = Faults { refused_kind: Some(1), logs_refused: true, ..Options::default().faults };
    let mut stage = Stage::new(Options { faults, ..Options::default() });
    (0..4).for_each(|tx| stage.submit_kind(ms(tx), tx, (tx % 2) as u16));
    let found: Vec<_> = stage.ledger().iter().map(|one| (one.tx, one.is_refused)).collect();
    assert_eq!(found, [(0, false), (1, true), (2, false), (3, true)]);
}

/// Claim: the same options and the same input give the same bytes at the same times.
#[test]
fn the_same_again() {
    let run = || {
        let mut faults = Options::default().faults;
        Lie::ALL.iter().for_each(|lie| faults.every[*lie as usize] = 97);
        let service = Duration::from_micros(700);
        let distribution = crate::Distribution::Exponential;
        let mut stage =
            Stage::new(Options { faults, service, distribution, seed: 9, ..Options::default() });
        (0..2000).for_each(|tx| stage.submit(ms(tx), tx));
        stage.rehearsal.advance(ms(100_000));
        (stage.rehearsal.take_sent(), stage.ledger())
    };
    assert!(run() == run());
}
