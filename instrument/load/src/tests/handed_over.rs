//! Sends leave before the client's own work goes on, with each driver: by the order of calls, and not by time.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clock::Clock;
use model::{FinalStages, Outcome, Seed, TxId};
use rustix::io::Errno;
use sut::{Deployment, Kind, Link, Made, Role, SutError, System, Testbed, Workload};

use super::toy::{Kept, Toy, ToySystem, closed, count, plan_of, with_each_driver};
use crate::driver::epoll::Epoll;
use crate::driver::ring::Ring;
use crate::driver::{Chunk, Counters, Driver, Event, KernelDriver, Key, Wait};
use crate::engine::{Seat, run as run_worker};
use crate::threads::{Choice, Wires, carry_out};
use crate::trial::Trial;
use crate::{Control, Live, Setup};

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Called {
    Prepare,
    Send,
    HandOver,
    Wait,
}

type Calls = Arc<Mutex<Vec<Called>>>;

fn note(calls: &Calls, called: Called) {
    calls.lock().unwrap().push(called);
}

/// A driver whose calls are noted.
struct Noted<D> {
    driver: D,
    calls: Calls,
}

impl<D: Driver> Driver for Noted<D> {
    const NAME: &'static str = D::NAME;
    const GATHERS: bool = D::GATHERS;

    fn connect(
        &mut self,
        token: u32,
        address: std::net::SocketAddr,
        is_stamped: bool,
    ) -> Result<Key, Errno> {
        self.driver.connect(token, address, is_stamped)
    }

    fn adopt(&mut self, token: u32, socket: OwnedFd) -> Result<Key, Errno> {
        self.driver.adopt(token, socket)
    }

    fn send(&mut self, key: Key, bytes: &mut Vec<u8>) {
        note(&self.calls, Called::Send);
        self.driver.send(key, bytes);
    }

    fn unsent(&self, key: Key) -> usize {
        self.driver.unsent(key)
    }

    fn hand_over(&mut self) {
        note(&self.calls, Called::HandOver);
        self.driver.hand_over();
    }

    fn close(&mut self, key: Key) {
        self.driver.close(key);
    }

    fn wait(&mut self, wait: Wait) -> Result<(), Errno> {
        note(&self.calls, Called::Wait);
        self.driver.wait(wait)
    }

    fn next_event(&mut self) -> Option<Event> {
        self.driver.next_event()
    }

    fn bytes(&self, chunk: &Chunk) -> &[u8] {
        self.driver.bytes(chunk)
    }

    fn release(&mut self, chunk: Chunk) {
        self.driver.release(chunk);
    }

    fn counters(&self) -> Counters {
        self.driver.counters()
    }
}

/// The toy, with transactions that take their time to prepare: some thousands of bytes signed.
struct Slow {
    toy: ToySystem,
    calls: Calls,
}

struct SlowWorkload {
    calls: Calls,
    clock: Clock,
}

impl Workload for SlowWorkload {
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        note(&self.calls, Called::Prepare);
        let end = self.clock.now().plus(Duration::from_micros(50));
        while self.clock.now() < end {}
        payload.extend_from_slice(&id.to_le_bytes());
        Made::of(0, client)
    }
}

impl System for Slow {
    fn stages(&self) -> Vec<String> {
        self.toy.stages()
    }

    fn kinds(&self) -> Vec<Kind> {
        self.toy.kinds()
    }

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        self.toy.deploy(bed)
    }

    fn workload(&self, _seed: Seed, _worker: u32, _workers: u32) -> Box<dyn Workload> {
        Box::new(SlowWorkload { calls: Arc::clone(&self.calls), clock: Clock::start() })
    }

    fn connect(&self, to: &Deployment, role: Role, index: u32) -> Result<Link, SutError> {
        self.toy.connect(to, role, index)
    }
}

fn load<D: KernelDriver>() {
    let (toy, calls) = (Toy::prompt(), Calls::default());
    let system = Slow { toy: ToySystem::new(toy.address), calls: Arc::clone(&calls) };
    let plan = plan_of(200, closed(4));
    let setup = Setup {
        part: None,
        plan: &plan,
        final_stages: FinalStages::all(0),
        stages: system.stages(),
        system: &system,
        deployment: &Deployment::new(Clock::start()),
        seed: Seed(42),
        control: Arc::<Control>::default(),
        live: Arc::<Live>::default(),
    };
    let work = |trial: &Trial<'_>, seat: Seat| {
        let noted = |count| Ok(Noted { driver: D::new(count)?, calls: Arc::clone(&calls) });
        run_worker(trial, seat, noted);
    };
    let mut kept = Kept::default();
    carry_out(setup, &mut kept, || Ok(Wires { name: D::NAME, work })).expect("the load begins");
    assert_eq!(count(&kept.rows, Outcome::Committed), 200);
    let calls = calls.lock().unwrap();
    let (mut is_held, mut held) = (false, 0);
    for called in calls.iter() {
        match called {
            Called::Send => is_held = true,
            Called::HandOver | Called::Wait => is_held = false,
            Called::Prepare => held += u32::from(is_held),
        }
    }
    assert_eq!(held, 0, "so often something was prepared while a driver held what was sent");
    assert!(calls.contains(&Called::HandOver));
}

/// Claim: where preparing takes its time nothing is prepared between a send and its system call.
#[test]
fn sends_leave_before_the_next_is_prepared() {
    with_each_driver(|choice| match choice {
        Choice::Epoll => load::<Epoll>(),
        Choice::Ring => load::<Ring>(),
    });
}
