//! Streams that go through a client library, alone and beside wires.

use std::sync::Arc;
use std::time::Duration;

use model::plan::{ProbePlan, ProbeSchedule};
use model::{NO_STAMP, Outcome, PROBE_BASE, Row, Seed};
use sut::{
    Client, Deployment, Kind, Link, Made, Returned, Role, SutError, System, Testbed, Transaction,
    Workload,
};

use super::toy::{
    Act, Kept, Toy, ToySystem, closed, constant, count, plan, try_run_of, with_each_driver,
};
use crate::threads::Choice;
use crate::{Control, Live, Loaded, Setup};

/// A client library that takes ten milliseconds, and now and then a second.
struct Library;

impl Client for Library {
    fn execute(
        &mut self,
        tx: &Transaction<'_>,
        reached: &mut dyn FnMut(u8),
        seen: &mut dyn FnMut(&[u8]),
    ) -> Returned<'_> {
        reached(0);
        seen(&tx.id.to_le_bytes());
        if tx.id == 3 {
            seen(&vec![0; model::OBSERVATION_BYTES_MAX + 1]);
        }
        std::thread::sleep(Duration::from_millis(if tx.id % 10 == 9 { 1_000 } else { 10 }));
        match tx.id % 10 {
            5 => Returned::ended(Outcome::Rejected(model::Class::Server), 7, "no leader"),
            _ => Returned::committed(7, 3),
        }
    }
}

struct NoPayload;

impl Workload for NoPayload {
    fn next(&mut self, _id: u64, client: Option<u32>, _payload: &mut Vec<u8>) -> Made {
        Made::of(0, client)
    }
}

struct Called;

impl System for Called {
    fn stages(&self) -> Vec<String> {
        vec!["begun".to_owned(), "done".to_owned()]
    }
    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::recorded("call")]
    }
    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        Ok(Deployment::new(bed.clock()))
    }
    fn workload(&self, _seed: Seed, _worker: u32, _workers: u32) -> Box<dyn Workload> {
        Box::new(NoPayload)
    }
    fn connect(&self, _to: &Deployment, _role: Role, _index: u32) -> Result<Link, SutError> {
        Ok(Link::Call(Box::new(Library)))
    }
}

/// Claim: calls give the same rows: exact due times, stamped stages, refusals, timeouts with late returns, and
/// the conservation of every transaction; open and closed.
#[test]
fn client_libraries_are_called() {
    for (arrivals, clients) in [(constant(100), 0), (closed(4), 4)] {
        let mut plan = plan(arrivals);
        plan.load.timeout = Duration::from_millis(400);
        plan.load.duration = Duration::from_millis(500);
        plan.load.connections = 16;
        let mut kept = Kept::default();
        let setup = Setup {
            part: None,
            plan: &plan,
            stages: Called.stages(),
            final_stages: model::FinalStages::all(1),
            system: &Called,
            deployment: &Deployment::new(clock::Clock::start()),
            seed: Seed(1),
            control: Arc::<Control>::default(),
            live: Arc::<Live>::default(),
        };
        let facts = crate::run(setup, &mut kept).unwrap().facts;
        kept.rows.sort_by_key(|row| row.tx);
        assert_eq!(facts.driver, "call");
        assert!(facts.errors.iter().any(|text| text == "no leader"), "{:?}", facts.errors);
        assert_eq!(facts.workers[0].due, kept.rows.len() as u64);
        assert!(kept.rows.len() >= 30, "{}", kept.rows.len());
        for (n, row) in kept.rows.iter().enumerate() {
            // Of a closed loop's last ids, one a client may never have been sent.
            assert!((n..=n + clients).contains(&usize::try_from(row.tx).unwrap()), "{row:?}");
            assert!(row.due <= row.ready && row.ready <= row.sent && row.marks[0] >= row.sent);
            match row.tx % 10 {
                5 => assert_eq!(row.outcome, Outcome::Rejected(model::Class::Server)),
                9 => assert_eq!((row.outcome, row.marks[1]), (Outcome::Unknown, NO_STAMP)),
                _ => assert!(row.outcome == Outcome::Committed && row.marks[1] == row.end),
            }
        }
        let slow = kept.rows.iter().filter(|row| row.tx % 10 == 9).count() as u64;
        assert_eq!(facts.workers[0].late_answers, slow);
        // What each call saw, once, while it was under way; and what was too long, nowhere.
        kept.seen.sort();
        assert_eq!(kept.seen.len(), kept.rows.len());
        for ((tx, at, bytes), row) in kept.seen.iter().zip(&kept.rows) {
            assert_eq!((*tx, bytes[..] == tx.to_le_bytes()), (row.tx, true));
            assert!(*at >= row.sent && *at <= row.end, "{at} of {row:?}");
        }
        assert_eq!(facts.workers[0].observations, kept.rows.len() as u64);
        assert_eq!(facts.workers[0].observations_left_out, 1);
    }
}

/// A library that is prompt, refuses one transaction in ten with words of its own, and blocks for ever so long where
/// it is told to.
struct Prompt {
    words: String,
    pause: Duration,
}

impl Client for Prompt {
    fn execute(
        &mut self,
        tx: &Transaction<'_>,
        _: &mut dyn FnMut(u8),
        _: &mut dyn FnMut(&[u8]),
    ) -> Returned<'_> {
        std::thread::sleep(self.pause);
        if tx.id.is_multiple_of(10) {
            return Returned::ended(Outcome::Rejected(model::Class::Overloaded), 3, &self.words);
        }
        Returned::committed(0, 1)
    }
}

/// Roles that are called; the others have wires to the toy server.
struct Mixed {
    toy: ToySystem,
    called: Vec<Role>,
    pause: Duration,
}

impl System for Mixed {
    fn stages(&self) -> Vec<String> {
        self.toy.stages()
    }
    fn kinds(&self) -> Vec<Kind> {
        self.toy.kinds()
    }
    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        self.toy.deploy(bed)
    }
    fn workload(&self, seed: Seed, worker: u32, workers: u32) -> Box<dyn Workload> {
        self.toy.workload(seed, worker, workers)
    }
    fn connect(&self, to: &Deployment, role: Role, index: u32) -> Result<Link, SutError> {
        if !self.called.contains(&role) {
            return self.toy.connect(to, role, index);
        }
        // Longer than what is kept of it, with a letter of two bytes where it is cut.
        let words = format!("no quorum{}", "é".repeat(300));
        Ok(Link::Call(Box::new(Prompt { words, pause: self.pause })))
    }
    fn observers(&self) -> u32 {
        self.toy.observers
    }
}

/// 100 transactions of the main load and 30 probes.
fn mixed_plan() -> model::plan::SettingPlan {
    let mut plan = plan(constant(1_000));
    plan.load.transactions_max = 100;
    plan.load.threads = 2;
    plan.probe = Some(ProbePlan {
        trials: 30,
        schedule: ProbeSchedule::Open,
        interval: Duration::from_millis(10),
        timeout: Duration::from_secs(2),
        connections: 2,
        until: String::new(),
    });
    plan
}

fn run_mixed(
    plan: &model::plan::SettingPlan,
    system: &Mixed,
    choice: Choice,
    control: Arc<Control>,
) -> (Loaded, Vec<Row>) {
    let mut kept = Kept::default();
    let loaded = try_run_of(plan, system, choice, &mut kept, control).expect("the load begins");
    kept.rows.sort_by_key(|row| row.tx);
    (loaded, kept.rows)
}

/// Claim: a probe through a client library beside a load over wires, and the reverse: both streams are whole, each
/// row names its own thread and connection, the library's refusals carry its words, and what an observer sees of a
/// called transaction neither ends it nor counts as a phantom.
#[test]
fn calls_and_wires_run_beside_each_other() {
    with_each_driver(|choice| {
        for (called, driver_is_first) in [(Role::Probe, true), (Role::Submit, false)] {
            let server = Toy::start(move |asked| {
                let of_calls = if called == Role::Probe { PROBE_BASE + 1 } else { 1 };
                vec![Act::Publish(asked.id, 0), Act::Publish(of_calls, 0)]
            });
            let toy = ToySystem { observers: 1, ..ToySystem::new(server.address) };
            let pause = Duration::from_millis(2);
            let system = Mixed { toy, called: vec![called], pause };
            let (loaded, rows) = run_mixed(&mixed_plan(), &system, choice, Arc::default());
            let facts = loaded.facts;
            let (main, probe): (Vec<Row>, Vec<Row>) =
                rows.into_iter().partition(|row| row.stream == 0);
            assert_eq!((main.len(), probe.len()), (100, 30), "{called:?}");
            let workers = if called == Role::Probe { 3 } else { 2 };
            assert_eq!(facts.workers.len(), workers, "the workers and the one that dispatches");
            assert!(facts.driver.ends_with(" and call"), "{}", facts.driver);
            let (calls, wires) = if driver_is_first { (&probe, &main) } else { (&main, &probe) };
            assert_eq!(count(wires, Outcome::Committed), wires.len());
            for row in calls {
                assert_eq!(usize::from(row.worker), workers - 1);
                let words = &facts.errors[usize::from(row.error)];
                if row.tx % 10 == 0 {
                    assert_eq!(row.outcome, Outcome::Rejected(model::Class::Overloaded));
                    assert!(words.starts_with("no quorumé") && words.len() <= 200, "{words}");
                } else {
                    assert_eq!((row.outcome, words.as_str()), (Outcome::Committed, ""));
                    let stamps = [row.due, row.ready, row.sent, row.end];
                    assert!(stamps.is_sorted() && row.end - row.sent >= 2_000_000, "{row:?}");
                }
            }
            assert!(wires.iter().all(|row| usize::from(row.worker) < workers - 1));
            let phantoms: u64 = facts.workers.iter().map(|worker| worker.phantom_answers).sum();
            assert_eq!(phantoms, 0, "{called:?}");
            assert_ne!(facts.drain_end, NO_STAMP);
        }
    });
}

/// Claim: a load that ends at the first stage beside a probe that ends at the last, one over wires and one through a
/// client library, either way round: each row ends with the mark of its own stream's final stage and has none above it,
/// and what the system goes on to say of it is no duplicate.
#[test]
fn each_stream_ends_at_its_own_stage() {
    with_each_driver(|choice| {
        for called in [Role::Probe, Role::Submit] {
            let server = Toy::start(|asked| {
                let later = Act::Pause(Duration::from_micros(200));
                vec![Act::Answer(asked.id, 0), later, Act::Answer(asked.id, 1)]
            });
            let toy = ToySystem { stages: 2, in_flight_max: 64, ..ToySystem::new(server.address) };
            let pause = Duration::from_millis(2);
            let system = Mixed { toy, called: vec![called], pause };
            let mut plan = mixed_plan();
            plan.load.until = system.stages().swap_remove(0);
            let (loaded, rows) = run_mixed(&plan, &system, choice, Arc::default());
            assert_eq!(rows.len(), 130);
            for row in rows.iter().filter(|row| row.outcome == Outcome::Committed) {
                let last = usize::from(row.stream);
                assert_eq!(row.marks[last], row.end, "{called:?}: {row:?}");
                assert!(row.marks[last + 1..].iter().all(|mark| *mark == NO_STAMP), "{row:?}");
            }
            // Of the called ones the library refuses one in ten.
            let refused = if called == Role::Probe { 3 } else { 10 };
            assert_eq!(count(&rows, Outcome::Committed), 130 - refused, "{called:?}");
            let doubted = |it: &model::facts::WorkerFacts| it.duplicate_answers + it.late_answers;
            assert_eq!(loaded.facts.workers.iter().map(doubted).sum::<u64>(), 0, "{called:?}");
        }
    });
}

/// Claim: a request to stop ends both kinds of stream, a second one cuts both drains, and no transaction is without
/// a row.
#[test]
fn a_mixed_trial_is_stopped_whole() {
    let server =
        Toy::start(|asked| vec![Act::Pause(Duration::from_millis(1)), Act::Answer(asked.id, 0)]);
    for is_cut in [false, true] {
        let pause = Duration::from_millis(if is_cut { 400 } else { 1 });
        let toy = ToySystem::new(server.address);
        let system = Mixed { toy, called: vec![Role::Probe], pause };
        let mut plan = mixed_plan();
        plan.load.transactions_max = 0;
        plan.load.duration = Duration::from_secs(60);
        plan.probe.as_mut().expect("there is one").trials = 6_000;
        let control = Arc::<Control>::default();
        let (loaded, rows) = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                control.stop();
                if is_cut {
                    control.quit();
                }
            });
            run_mixed(&plan, &system, Choice::Epoll, Arc::clone(&control))
        });
        let facts = loaded.facts;
        let due: u64 = facts.workers.iter().map(|worker| worker.due).sum();
        assert_eq!(due, rows.len() as u64);
        assert!((0..2).all(|stream| rows.iter().any(|row| row.stream == stream)));
        assert!(facts.interrupted.starts_with("stopped by request"), "{}", facts.interrupted);
        assert_eq!(facts.drain_end == NO_STAMP, is_cut);
        let cut_off = rows.iter().filter(|row| row.stream == 1 && row.outcome == Outcome::Unknown);
        assert_eq!(cut_off.count() > 0, is_cut);
    }
}

/// Claim: connections of one role that are of two kinds are an error that says which.
#[test]
fn one_role_has_one_kind_of_link() {
    struct Odd(ToySystem);
    impl System for Odd {
        fn stages(&self) -> Vec<String> {
            self.0.stages()
        }
        fn kinds(&self) -> Vec<Kind> {
            self.0.kinds()
        }
        fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
            self.0.deploy(bed)
        }
        fn workload(&self, seed: Seed, worker: u32, workers: u32) -> Box<dyn Workload> {
            self.0.workload(seed, worker, workers)
        }
        fn connect(&self, to: &Deployment, role: Role, index: u32) -> Result<Link, SutError> {
            match index {
                2 => Ok(Link::Call(Box::new(Library))),
                _ => self.0.connect(to, role, index),
            }
        }
    }
    let server = Toy::prompt();
    let system = Odd(ToySystem::new(server.address));
    let mut kept = Kept::default();
    let refused =
        try_run_of(&plan(constant(10)), &system, Choice::Epoll, &mut kept, Arc::default());
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("connection 2 is a client library and the first one"), "{said}");
}
