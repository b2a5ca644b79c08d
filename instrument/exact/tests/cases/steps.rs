//! Loads that go up and down in steps: generators of a rate each, and clients of a closed loop.

use std::time::Duration;

use exact::{Client, Law, Script};
use model::Outcome;

use crate::{MS, run, run_as};

/// Exactly 200/s; what finds fifty inside is refused at once.
fn of_200() -> Script {
    Script::queue(1, Law::Constant(Duration::from_millis(5))).holds_at_most(50)
}

fn experiment(load: &str) -> String {
    format!(
        "name = 'steps'\nquestion = 'Is every step the one on paper?'\n[system]\nkind = 'script'\n\
         [load]\nwarmup = '0s'\nconnections = 1\n{load}\n\
         [[threshold]]\nexpr = 'goodput >= 95% of offered'\nlevel = 'saturated'"
    )
}

/// Claim: three generators of 100/s join, stay and leave; each step has its own offered rate, its own goodput, which is
/// never more than the server can do, and its own fates; knee and recovery stand where they are.
#[test]
fn generators_join_and_leave() {
    let load = "rate = '100/s'\nrate_per = 'generator'\nsteps = { every = '2s', add = { generators = 1 }, \
                until = { generators = 3 }, hold = '4s', leave = true }";
    let kept = run(&experiment(load), of_200);
    let rows = kept.rows();
    assert_eq!(rows.len(), 200 + 400 + 1200 + 400 + 200);
    let trial = kept.trial(0);
    let of = trial.steps.as_ref().unwrap();
    let steps = &of.steps;
    let planned: Vec<_> = steps
        .iter()
        .map(|it| (it.start_ns / (1_000 * MS), it.generators, it.offered_per_s, it.counts.due))
        .collect();
    assert_eq!(
        planned,
        [
            (0, Some(1), 100.0, 200),
            (2, Some(2), 200.0, 400),
            (4, Some(3), 300.0, 1_200),
            (8, Some(2), 200.0, 400),
            (10, Some(1), 100.0, 200)
        ]
    );
    for (index, step) in steps.iter().enumerate() {
        let span = step.start_ns..step.start_ns + step.length_ns;
        let of_step: Vec<_> = rows.iter().filter(|row| span.contains(&row.due)).collect();
        let committed = of_step.iter().filter(|row| row.outcome == Outcome::Committed).count();
        assert_eq!(step.counts.committed, committed as u64, "step {index}");
        assert_eq!(step.counts.committed + step.counts.rejected, step.counts.due, "step {index}");
        // A server is busy with what was left over at the start of a step, or idle; never faster than it is.
        assert!(step.goodput_per_s <= 200.5, "step {index}: {}", step.goodput_per_s);
        let open = rows.iter().filter(|row| row.due < span.end && row.end >= span.end).count();
        assert_eq!(step.outstanding, i64::try_from(open).unwrap(), "step {index}");
        assert_eq!(step.keeps_up, index != 2, "step {index}: {step:?}");
    }
    assert_eq!((steps[0].goodput_per_s, steps[0].p99_ns.is_some()), (100.0, true));
    // Fifty inside are full after half a second; from then on a third is refused.
    assert_eq!(steps[2].counts.rejected_by_class.keys().collect::<Vec<_>>(), ["overloaded"]);
    assert!((350..=355).contains(&steps[2].counts.rejected), "{:?}", steps[2].counts);
    assert_eq!((of.knee, of.recovers, of.collapses), (Some(1), Some(3), false));
    assert!(of.words.starts_with("keeps up at 2 generators (200/s offered"), "{}", of.words);
    assert!(kept.ran.page.contains("Step by step"));
}

/// Claim: clients join and leave a closed loop; each step has as many transactions as its clients can make, and the words
/// count clients.
#[test]
fn clients_join_and_leave() {
    let load = "model = 'closed'\nsteps = [{ clients = 1, for = '1s' }, { clients = 4, for = '1s' }, \
                { clients = 0, for = '1s' }, { clients = 2, for = '1s' }]";
    let script = || Script::unbounded(Law::Constant(Duration::from_millis(10)));
    let client =
        Client { in_flight_max: 1 << 20, closes_after_timeout: false, hears_accepted: false };
    let kept = run_as(client, &experiment(load), |_, _| script());
    let steps = &kept.trial(0).steps.as_ref().unwrap().steps;
    let counts: Vec<_> = steps.iter().map(|it| (it.clients, it.counts.due)).collect();
    assert_eq!(counts, [(Some(1), 100), (Some(4), 400), (Some(0), 0), (Some(2), 200)]);
    assert!(steps.iter().all(|step| step.generators.is_none() && step.planned_per_s.is_none()));
    assert!(kept.rows().iter().all(|row| row.end == row.due + 10 * MS));
}
