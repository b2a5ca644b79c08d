//! The system's answers and their outcomes: stages, refusals, answers that are late, repeated or invented.

use std::time::Duration;

use model::{Class, NO_STAMP, Outcome};
use sut::Abandon;

use super::toy::{
    Act, REFUSE, Toy, ToySystem, closed, constant, count, plan, plan_of, run, with_each_driver,
};

/// Claim: the ladder's stages are stamped one by one, and the final one ends the transaction.
#[test]
fn stages_are_stamped_in_turn() {
    with_each_driver(|choice| {
        let server = Toy::start(|asked| {
            vec![Act::Answer(asked.id, 0), Act::Answer(asked.id, 1), Act::Answer(asked.id, 2)]
        });
        let system = ToySystem { stages: 3, ..ToySystem::new(server.address) };
        let (_, kept) = run(&plan(constant(1_000)), &system, choice);
        assert_eq!(count(&kept.rows, Outcome::Committed), 300);
        for row in &kept.rows {
            assert!(
                row.marks[..3].iter().all(|mark| *mark != NO_STAMP) && row.marks[..3].is_sorted()
            );
            assert_eq!((row.marks[3], row.code), (NO_STAMP, 200));
        }
    });
}

/// Claim: what each answer brought is kept whole, once, with the stamp of its mark, on any number of threads and through
/// more batches than there are buffers; and it is counted.
#[test]
fn observations_are_stamped_like_marks() {
    with_each_driver(|choice| {
        let server = Toy::prompt();
        let system = ToySystem { in_flight_max: 64, reads: true, ..ToySystem::new(server.address) };
        let mut plan = plan_of(40_000, closed(100));
        plan.load.threads = 2;
        let (facts, mut kept) = run(&plan, &system, choice);
        kept.seen.sort();
        assert_eq!((kept.rows.len(), kept.seen.len()), (40_000, 40_000));
        for ((tx, at, bytes), row) in kept.seen.iter().zip(&kept.rows) {
            assert_eq!((*tx, *at), (row.tx, row.marks[0]));
            assert_eq!(bytes[..8], row.tx.to_le_bytes());
        }
        assert_eq!(facts.workers.iter().map(|worker| worker.observations).sum::<u64>(), 40_000);
    });
}

/// Claim: a refusal ends a transaction with its class, code and text, on any pipelining depth.
#[test]
fn refusals_keep_their_text() {
    with_each_driver(|choice| {
        let server = Toy::start(|asked| {
            vec![Act::Answer(asked.id, if asked.id % 3 == 0 { REFUSE } else { 0 })]
        });
        for in_flight_max in [1, 64] {
            let system = ToySystem { in_flight_max, ..ToySystem::new(server.address) };
            let (facts, kept) = run(&plan_of(3_000, closed(100)), &system, choice);
            assert_eq!(kept.rows.len(), 3_000);
            let refused = kept.rows.iter().filter(|row| row.tx % 3 == 0).count();
            assert_eq!(count(&kept.rows, Outcome::Rejected(Class::BadRequest)), refused);
            assert_eq!(count(&kept.rows, Outcome::Committed), 3_000 - refused);
            let refused = &kept.rows[3];
            assert_eq!(
                (refused.code, facts.errors[usize::from(refused.error)].as_str()),
                (400, "refused")
            );
            assert_eq!(facts.errors.len(), 2);
        }
    });
}

/// Claim: an answer after the timeout is late, a second one is a duplicate, one for an id never sent is a
/// phantom; each is counted and kept as an event, and none of them changes a row.
#[test]
fn late_duplicate_and_phantom_are_told_apart() {
    with_each_driver(|choice| {
        let server = Toy::start(|asked| match asked.id {
            10 => vec![Act::Pause(Duration::from_millis(600)), Act::Answer(10, 0)],
            100 => vec![Act::Answer(100, 0), Act::Answer(100, 0)],
            110 => vec![Act::Answer(110, 0), Act::Answer(1 << 30, 0), Act::Answer(1 << 50, 0)],
            120 => vec![Act::Answer(120, 0), Act::Answer(119, 0)],
            id => vec![Act::Answer(id, 0)],
        });
        let system = ToySystem {
            in_flight_max: 100,
            abandon: Abandon::Keep,
            ..ToySystem::new(server.address)
        };
        // A second and a half, of which what is asked after the slow one has more than half to be late in.
        let mut plan = plan(constant(100));
        plan.load.duration = Duration::from_millis(1_500);
        plan.load.connections = 1;
        plan.load.connections_max = 1;
        plan.load.timeout = Duration::from_millis(500);
        let (facts, kept) = run(&plan, &system, choice);
        let worker = &facts.workers[0];
        let unknown = count(&kept.rows, Outcome::Unknown) as u64;
        assert!(unknown >= 1, "the one that took 600 ms");
        assert_eq!(worker.late_answers, unknown, "each given up was answered once more");
        assert_eq!((worker.duplicate_answers, worker.phantom_answers), (2, 2));
        let named =
            |name: &str| kept.events.iter().filter(|event| event.name == name).count() as u64;
        assert_eq!(named("late_answer"), unknown);
        assert_eq!((named("duplicate_answer"), named("phantom_answer")), (2, 2));
        assert!(kept.events.iter().any(|event| event.tx == Some(1 << 30)));
        let error = usize::from(kept.rows[10].error);
        assert_eq!(facts.errors[error], "no answer within the timeout");
        assert!(kept.rows[10].end - kept.rows[10].due >= 500_000_000);
    });
}

/// Claim: a stage reached twice before the end is a duplicate, too, and the first stamp stays.
#[test]
fn a_stage_twice_is_a_duplicate() {
    with_each_driver(|choice| {
        let server = Toy::start(|asked| {
            vec![Act::Answer(asked.id, 0), Act::Answer(asked.id, 0), Act::Answer(asked.id, 1)]
        });
        let system = ToySystem { stages: 2, ..ToySystem::new(server.address) };
        let (facts, kept) = run(&plan(constant(500)), &system, choice);
        assert_eq!(count(&kept.rows, Outcome::Committed), 150);
        assert_eq!(facts.workers[0].duplicate_answers, 150);
    });
}

/// Claim: marks seen by an observer connection on worker 0 end the transactions of every worker, with stamps
/// of their own.
#[test]
fn observers_serve_all_workers() {
    with_each_driver(|choice| {
        let server = Toy::start(|asked| vec![Act::Answer(asked.id, 0), Act::Publish(asked.id, 1)]);
        let system = ToySystem {
            observers: 1,
            stages: 2,
            in_flight_max: 1_000,
            ..ToySystem::new(server.address)
        };
        let mut plan = plan(constant(1_000));
        plan.load.threads = 2;
        let (facts, kept) = run(&plan, &system, choice);
        assert_eq!(facts.workers.len(), 2);
        assert_eq!(count(&kept.rows, Outcome::Committed), 300);
        assert!(facts.workers.iter().all(|worker| worker.answered == 150));
        assert_eq!(facts.drain_left, 0);
    });
}

/// Claim: a repeated answer that an observer sees for another worker's transaction is counted by its owner.
#[test]
fn observed_duplicates_reach_their_owner() {
    with_each_driver(|choice| {
        let server = Toy::start(|asked| match asked.id {
            101 => vec![Act::Publish(101, 0), Act::Publish(101, 0), Act::Publish(7_000_001, 0)],
            id => vec![Act::Publish(id, 0)],
        });
        let system =
            ToySystem { observers: 1, in_flight_max: 100, ..ToySystem::new(server.address) };
        let mut plan = plan(constant(1_000));
        plan.load.threads = 2;
        let (facts, kept) = run(&plan, &system, choice);
        assert_eq!(count(&kept.rows, Outcome::Committed), 300);
        let worker = &facts.workers[1];
        assert_eq!((worker.duplicate_answers, worker.phantom_answers), (1, 1));
        assert_eq!(facts.workers[0].duplicate_answers, 0);
    });
}
