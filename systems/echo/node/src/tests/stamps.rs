//! What the node stamps of itself: each stage at its time, and what a stall of storing or a lie does to them.

use super::*;
use crate::events::{Event, Stage as Of};
use crate::{Faults, Lie, Window};

fn stamping(options: Options) -> Stage {
    let events = Events::in_memory();
    let node = EchoNode::new(options, Ledger::in_memory(), Confession::in_memory(), events);
    let mut rehearsal = Rehearsal::new(node);
    let connection = rehearsal.open(FRAMES_LISTENER);
    Stage { rehearsal, connection }
}

/// The stamps of a stage, in order: transaction, when and how long, in milliseconds.
fn of(events: &[Event], stage: Of) -> Vec<(u64, i64, u64)> {
    let of_stage = events.iter().filter(|event| event.stage == stage);
    of_stage.map(|it| (it.tx, it.at_unix_ns / 1_000_000, it.took_ns / 1_000_000)).collect()
}

/// Claim: each stage is stamped at its time with its length: the wait in the queue, then the service.
#[test]
fn stages_at_their_times() {
    let mut stage = stamping(Options { service: Duration::from_millis(10), ..Options::default() });
    (1..=3).for_each(|tx| stage.submit(ms(5), tx));
    stage.rehearsal.advance(ms(1_000));
    let events = stage.rehearsal.node().events().list();
    assert_eq!(of(&events, Of::Received), [(1, 5, 0), (2, 5, 0), (3, 5, 0)]);
    assert_eq!(of(&events, Of::Started), [(1, 5, 0), (2, 15, 10), (3, 25, 20)]);
    assert_eq!(of(&events, Of::Stored), [(1, 15, 10), (2, 25, 10), (3, 35, 10)]);
    assert_eq!(of(&events, Of::Answered), [(1, 15, 0), (2, 25, 0), (3, 35, 0)]);
}

/// Claim: in a stall of storing everything else goes on; at its end all of it is stored, in order, at once, and a sync
/// before its end stores it, too.
#[test]
fn a_stall_of_storing() {
    let stall = Window { at: Duration::from_millis(100), length: Duration::from_millis(200) };
    let faults = Faults { store_stalls: vec![stall], ..Options::default().faults };
    let options = Options { faults, ..Options::default() };
    let mut stage = stamping(options.clone());
    (0..40).for_each(|tx| stage.submit(ms(tx * 10), tx));
    stage.rehearsal.advance(ms(1_000));
    let answered: Vec<i64> = stage.answers().iter().map(|(at, _)| at.as_ns() / 1_000_000).collect();
    assert_eq!(answered, (0..40).map(|tx| tx * 10).collect::<Vec<i64>>());
    let stored = of(&stage.rehearsal.node().events().list(), Of::Stored);
    let expected: Vec<(u64, i64, u64)> = (0..40_u64)
        .map(|tx| {
            let came = tx * 10;
            let at = if (100..300).contains(&came) { 300 } else { came };
            (tx, at.cast_signed(), at - came)
        })
        .collect();
    assert_eq!(stored, expected);
    let mut stage = stamping(options);
    (0..20).for_each(|tx| stage.submit(ms(tx * 10), tx));
    assert_eq!(stage.rehearsal.node().ledger().entries(), 10);
    let mut bytes = Vec::new();
    write_sync(&mut bytes);
    stage.rehearsal.send(stage.connection, &bytes);
    assert_eq!(stage.rehearsal.node().ledger().entries(), 20);
}

/// Claim: what is lost was never stored, and what is never answered was never told: the stamps do not lie.
#[test]
fn stamps_do_not_lie() {
    for (lie, lacking) in [(Lie::Lose, Of::Stored), (Lie::Drop, Of::Answered)] {
        let faults = Options::default().faults.lie(lie, 10);
        let mut stage = stamping(Options { faults, ..Options::default() });
        (0..100).for_each(|tx| stage.submit(ms(tx), tx));
        stage.rehearsal.advance(ms(10_000));
        let events = stage.rehearsal.node().events().list();
        for stage in Of::ALL {
            let expected = if stage == lacking { 90 } else { 100 };
            assert_eq!(of(&events, stage).len(), expected, "{lie:?} {stage:?}");
        }
    }
}
