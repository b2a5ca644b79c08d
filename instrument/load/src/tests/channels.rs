//! Programs at the other end of a socket pair: as the whole load, beside a load over wires, and with everything that can go
//! wrong there, which is the client's failure and never the system's.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use model::facts::LoadFacts;
use model::plan::{ProbePlan, ProbeSchedule, SettingPlan};
use model::{Class, Outcome, PROBE_BASE, Row, Seed};
use sut::{Abandon, Channel, Deployment, Kind, Link, Role, SutError, System, Testbed, Workload};

use super::toy::{
    GARBAGE, Kept, Toy, ToySystem, constant, count, plan, try_run_of, with_each_driver,
};
use crate::threads::Choice;

const FAILED: Outcome = Outcome::Rejected(Class::Client);

/// A program's misbehaviour in place of its answer number `nth`.
type Instead = fn(u64, &mut UnixStream) -> Does;

enum Does {
    Right,
    Nothing,
    End,
}

/// Roles in `by_channel` go to a program each connection; the others have wires to the toy server.
struct Programs {
    toy: ToySystem,
    by_channel: Role,
    channels: Vec<Channel>,
    first: Mutex<Option<u32>>,
}

/// A system with so many channels of this role, each with a thread at its other end.
fn programs(
    toy: ToySystem,
    by_channel: Role,
    count: usize,
    instead: Instead,
) -> (Programs, Vec<JoinHandle<()>>) {
    let (mut channels, mut threads) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let words = Box::new(|| "the line before\nthe last line".to_owned());
        let channel = Channel::new("toy.py", words);
        channel.begin(ours.into(), Arc::default());
        channels.push(channel);
        threads.push(std::thread::spawn(move || answer(theirs, instead)));
    }
    (Programs { toy, by_channel, channels, first: Mutex::default() }, threads)
}

/// Answers each frame, until the channel is closed.
fn answer(mut channel: UnixStream, instead: Instead) {
    let (mut frame, mut nth) = ([0; 9], 0);
    while channel.read_exact(&mut frame).is_ok() {
        nth += 1;
        frame[8] = 0;
        match instead(nth, &mut channel) {
            Does::Right => drop(channel.write_all(&frame)),
            Does::Nothing => {}
            Does::End => return,
        }
    }
}

impl System for Programs {
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
        let link = self.toy.connect(to, role, index)?;
        let Link::Wire(_, session) = link else { panic!("a wire") };
        if role != self.by_channel {
            return self.toy.connect(to, role, index);
        }
        let first = *self.first.lock().unwrap().get_or_insert(index);
        let channel = self.channels[(index - first) as usize].clone();
        Ok(Link::Channel(channel, session))
    }
}

fn run(plan: &SettingPlan, system: &Programs, choice: Choice) -> (LoadFacts, Vec<Row>) {
    let mut kept = Kept::default();
    let loaded = try_run_of(plan, system, choice, &mut kept, Arc::default());
    kept.rows.sort_by_key(|row| row.tx);
    (loaded.expect("the load begins").facts, kept.rows)
}

/// Claim: a load over channels is a load like any other, and ends with its channels closed.
#[test]
fn the_load_goes_to_programs() {
    with_each_driver(|choice| {
        let toy = ToySystem::new(([127, 0, 0, 1], 1).into());
        let (system, threads) = programs(toy, Role::Submit, 4, |_, _| Does::Right);
        let (facts, rows) = run(&plan(constant(1_000)), &system, choice);
        assert_eq!(rows.len(), 300);
        assert_eq!(count(&rows, Outcome::Committed), 300, "{:?}", facts.errors);
        assert!(facts.congestion_control.is_empty(), "there is no network");
        for thread in threads {
            // It ends when its channel does.
            thread.join().unwrap();
        }
    });
}

/// Claim: a probe on a channel runs beside a load over wires, and the reverse, in one engine; both are whole.
#[test]
fn a_probe_on_a_channel_beside_a_wired_load() {
    with_each_driver(|choice| {
        for by_channel in [Role::Probe, Role::Submit] {
            let server = Toy::prompt();
            let mut plan = plan(constant(1_000));
            plan.probe = Some(ProbePlan {
                trials: 30,
                schedule: ProbeSchedule::Open,
                interval: Duration::from_millis(10),
                timeout: Duration::from_secs(2),
                connections: 2,
                until: String::new(),
            });
            let toy = ToySystem::new(server.address);
            let (system, _threads) = programs(toy, by_channel, 4, |_, _| Does::Right);
            let (facts, rows) = run(&plan, &system, choice);
            let (probe, main): (Vec<Row>, Vec<Row>) =
                rows.into_iter().partition(|row| row.tx >= PROBE_BASE);
            assert!(probe.len() >= 29 && main.len() == 300, "{} {}", probe.len(), main.len());
            assert_eq!(count(&probe, Outcome::Committed), probe.len(), "{:?}", facts.errors);
            assert_eq!(count(&main, Outcome::Committed), main.len(), "{:?}", facts.errors);
        }
    });
}

/// Claim: a program that ends, babbles or says nothing fails its own transactions, with its last lines where it is lost;
/// what it had answered before stays, the rest of the trial's counters know nothing of it, and late answers are late.
#[test]
fn programs_that_fail() {
    let ways: [(Instead, &str); 3] = [
        (
            |nth, _| if nth <= 50 { Does::Right } else { Does::End },
            "the program closed its channel",
        ),
        (
            |nth, channel| {
                if nth <= 50 {
                    return Does::Right;
                }
                let _ = channel.write_all(&[0, 0, 0, 0, 0, 0, 0, 0, GARBAGE]);
                Does::Nothing
            },
            "not the protocol: no such code",
        ),
        (|nth, _| if nth <= 50 { Does::Right } else { Does::Nothing }, ""),
    ];
    with_each_driver(|choice| {
        for (instead, words) in ways {
            let toy = ToySystem {
                in_flight_max: 1_000,
                abandon: Abandon::Keep,
                ..ToySystem::new(([127, 0, 0, 1], 1).into())
            };
            let (system, _threads) = programs(toy, Role::Submit, 1, instead);
            let mut plan = plan(constant(1_000));
            (plan.load.connections, plan.load.connections_max) = (1, 1);
            plan.load.timeout = Duration::from_millis(600);
            let (facts, rows) = run(&plan, &system, choice);
            assert_eq!(rows.len(), 300, "{words}");
            assert_eq!(count(&rows, Outcome::Committed), 50, "{words}: {:?}", facts.errors);
            assert_eq!(count(&rows, FAILED), 250, "{words}: {:?}", facts.errors);
            let said: Vec<&str> = rows
                .iter()
                .filter(|row| row.outcome == FAILED)
                .map(|row| facts.errors[usize::from(row.error)].as_str())
                .collect();
            let expected = match words {
                "" => "no answer within the timeout".to_owned(),
                words => {
                    format!("toy.py: {words}; its last lines: the line before / the last line")
                }
            };
            assert!(said.iter().all(|said| *said == expected), "{expected}: {:?}", said.last());
            let worker = &facts.workers[0];
            let connections = &worker.connections;
            assert_eq!((worker.protocol_errors, connections.closed, connections.lost), (0, 0, 0));
            assert_eq!(worker.duplicate_answers + worker.phantom_answers, 0);
        }
    });
}

/// Claim: a program that a fault ended is a node that was down: what it had answered stays, what it had and did not answer is
/// unknown, what was never sent to it was lost on the way, and its next life takes the load up again. Nothing of that is the
/// client's failure.
#[test]
fn programs_that_a_fault_ends() {
    with_each_driver(|choice| {
        for comes_again in [true, false] {
            let toy = ToySystem { in_flight_max: 8, ..ToySystem::new(([127, 0, 0, 1], 1).into()) };
            let (system, _threads) = programs(toy, Role::Submit, 0, |_, _| Does::Right);
            let (channel, faults) = (
                Channel::new("toy.py", Box::new(|| "the last line".to_owned())),
                Arc::<AtomicBool>::default(),
            );
            let (ours, theirs) = UnixStream::pair().unwrap();
            channel.begin(ours.into(), Arc::clone(&faults));
            let system = Programs { channels: vec![channel.clone()], ..system };
            let first = std::thread::spawn(move || {
                let mut theirs = theirs;
                for _ in 0..50 {
                    let mut frame = [0; 9];
                    theirs.read_exact(&mut frame).unwrap();
                    frame[8] = 0;
                    theirs.write_all(&frame).unwrap();
                }
                faults.store(true, Ordering::SeqCst);
                comes_again.then(|| {
                    let (ours, theirs) = UnixStream::pair().unwrap();
                    channel.begin(ours.into(), Arc::default());
                    std::thread::spawn(move || answer(theirs, |_, _| Does::Right))
                })
            });
            let mut plan = plan(constant(1_000));
            (plan.load.connections, plan.load.connections_max) = (1, 1);
            let (facts, rows) = run(&plan, &system, choice);
            assert_eq!(rows.len(), 300, "{comes_again}");
            assert_eq!(count(&rows, FAILED), 0, "{comes_again}: {:?}", facts.errors);
            let [committed, unknown, refused] =
                [Outcome::Committed, Outcome::Unknown, Outcome::Rejected(Class::Transport)]
                    .map(|outcome| count(&rows, outcome));
            assert_eq!(committed + unknown + refused, 300, "{comes_again}: {:?}", facts.errors);
            assert!(unknown <= 8, "{comes_again}: {unknown}");
            assert!(if comes_again { committed >= 292 } else { committed == 50 }, "{committed}");
            let ended = "toy.py: a fault of the plan ended it";
            let of_others = rows.iter().filter(|row| row.outcome != Outcome::Committed);
            let said: Vec<&str> =
                of_others.map(|row| facts.errors[usize::from(row.error)].as_str()).collect();
            assert!(said.iter().all(|said| *said == ended), "{said:?}");
            assert_eq!(first.join().unwrap().is_some(), comes_again);
            let connections = &facts.workers[0].connections;
            assert_eq!(connections.lost, unknown as u64, "{comes_again}");
            assert!(connections.closed + connections.reset > 0, "{comes_again}");
        }
    });
}
