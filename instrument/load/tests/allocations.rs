//! Nothing on the path of a transaction allocates or takes a lock, whether it succeeds or fails. Counted by an allocator of this test's own, on
//! the engine's thread alone, which the workload makes known by being called there.
#![expect(unsafe_code, reason = "an allocator that counts is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System as Heap};
use std::cell::Cell;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use load::{Control, Live, RowSink, Setup};
use model::facts::{Event, WorkerFacts};
use model::plan::{Arrivals, BatchPlan, LoadPlan, MeasurePlan, ResendPlan, SettingPlan};
use model::{Class, Observations, Outcome, Row, Seed};
use sut::{
    Abandon, Deployment, Endpoint, Kind, Link, Made, Marks, Next, Received, Role, Session,
    SutError, System, Testbed, Transaction, Workload,
};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is handed on to the system's allocator; the counter does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is handed on.
        unsafe { Heap.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is handed on.
        unsafe { Heap.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is handed on.
        unsafe { Heap.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Transactions before the counting begins: buffers have found their sizes by then.
const SETTLED: u64 = 20_000;
const TRANSACTIONS: u64 = 120_000;
static AT_SETTLED: AtomicU64 = AtomicU64::new(0);
static AT_END: AtomicU64 = AtomicU64::new(0);

/// Counts its calls: a flow has two transactions, of which it makes the first.
struct Reports {
    calls: u64,
    each: u64,
}

impl Workload for Reports {
    fn next(&mut self, id: u64, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        payload.extend_from_slice(&id.to_le_bytes());
        let count = ALLOCATIONS.with(Cell::get);
        self.calls += 1;
        if self.calls * self.each == SETTLED {
            AT_SETTLED.store(count, Relaxed);
        } else if self.calls * self.each == TRANSACTIONS {
            AT_END.store(count, Relaxed);
        }
        Made::of(0, client)
    }
}

/// Whether what comes back is an error, and the transactions that another one follows.
struct Echo(bool, Option<Vec<u64>>);

impl Session for Echo {
    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        out.extend_from_slice(&tx.id.to_le_bytes());
        if let Some(first) = self.1.as_mut().filter(|_| tx.payload.len() == 8) {
            first.push(tx.id);
        }
        8
    }
    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        for id in bytes.chunks_exact(8) {
            let id = u64::from_le_bytes(id.try_into().expect("eight bytes"));
            let first = self.1.as_mut();
            let place = first.as_ref().and_then(|first| first.iter().position(|of| *of == id));
            if let (Some(first), Some(place)) = (first, place) {
                first.swap_remove(place);
                let next = Next { kind: 0, after: Duration::ZERO };
                assert!(marks.follows(id, next, |payload| payload.extend_from_slice(b"a user")));
            }
            match (self.0, id % 2) {
                (false, _) => marks.reached(id, 0, 0, 8),
                (true, 0) => marks.ended(id, OVERLOADED, 503, 8, "503 Service Unavailable"),
                (true, _) => marks.ended(id, LIMITED, 429, 8, "429 Too Many Requests"),
            }
        }
        Ok(bytes.len() / 8 * 8)
    }
    fn abandon(&mut self, _tx: u64) -> Abandon {
        Abandon::Keep
    }
    fn in_flight_max(&self) -> u32 {
        16
    }
    fn reset(&mut self) {}
}

const OVERLOADED: Outcome = Outcome::Rejected(Class::Overloaded);
const LIMITED: Outcome = Outcome::Rejected(Class::Limited);

struct EchoSystem {
    address: SocketAddr,
    fails: bool,
    follows: bool,
}

impl System for EchoSystem {
    fn stages(&self) -> Vec<String> {
        vec!["echoed".to_owned()]
    }
    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::recorded("echo")]
    }
    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        Ok(Deployment::new(bed.clock()))
    }
    fn workload(&self, _seed: Seed, _worker: u32, _workers: u32) -> Box<dyn Workload> {
        Box::new(Reports { calls: 0, each: 1 + u64::from(self.follows) })
    }
    fn connect(&self, _to: &Deployment, _role: Role, _index: u32) -> Result<Link, SutError> {
        let first = self.follows.then(Vec::new);
        let session = Box::new(Echo(self.fails, first));
        Ok(Link::Wire(Endpoint { address: self.address, tls: None }, session))
    }
}

#[derive(Default)]
struct Counted(u64);

impl RowSink for Counted {
    fn rows(&mut self, rows: &[Row]) -> Result<(), String> {
        self.0 += rows.len() as u64;
        Ok(())
    }
    fn observations(&mut self, _: &Observations) -> Result<(), String> {
        Ok(())
    }

    fn event(&mut self, _event: Event) {}
}

fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut buffer = [0; 65_536];
                while let Ok(length @ 1..) = stream.read(&mut buffer) {
                    if stream.write_all(&buffer[..length]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// Claim: a hundred thousand transactions, answered, recorded and gone, allocate next to nothing: not one in a
/// thousand of them does. No more do as many of which each fails with a text, and none of these takes the lock of
/// the table of texts but the first of each; nor as many that leave in batches, that are kept to be sent again, or of which
/// every other follows an answer.
#[test]
fn transactions_do_not_allocate() {
    let lookups = |facts: &WorkerFacts| facts.error_lookups;
    let plain = Way::default();
    assert_eq!(lookups(&allocate_next_to_nothing(&plain)), 0, "nothing failed");
    let failing = Way { fails: true, ..Way::default() };
    assert_eq!(lookups(&allocate_next_to_nothing(&failing)), 2, "two texts");
    let batch = BatchPlan { size_max: 8, delay_max: Duration::from_millis(1), in_flight_max: 2 };
    let batched = allocate_next_to_nothing(&Way { batch: Some(batch), ..Way::default() });
    assert_eq!(batched.batches.transactions, TRANSACTIONS);
    assert!(batched.batches.count < TRANSACTIONS / 2, "{:?}", batched.batches);
    let resend = ResendPlan { attempts_max: 3, after: Duration::from_secs(5) };
    let kept = allocate_next_to_nothing(&Way { resend: Some(resend), ..Way::default() });
    assert_eq!(kept.resent, 0);
    allocate_next_to_nothing(&Way { follows: true, ..Way::default() });
}

/// How transactions go.
#[derive(Default)]
struct Way {
    fails: bool,
    batch: Option<BatchPlan>,
    resend: Option<ResendPlan>,
    follows: bool,
}

/// Runs the load, and gives the engine's counts.
fn allocate_next_to_nothing(way: &Way) -> WorkerFacts {
    let load = LoadPlan {
        backlog_max: 1_000,
        batch: way.batch,
        transactions_max: TRANSACTIONS / (1 + u64::from(way.follows)),
        resend: way.resend,
        ..LoadPlan::plain(Arrivals::closed(64), 4, Duration::from_secs(60))
    };
    let measure = MeasurePlan { ledger: false, ..MeasurePlan::default() };
    let plan = SettingPlan { measure, ..SettingPlan::plain("echo", load) };
    let system = EchoSystem { address: serve(), fails: way.fails, follows: way.follows };
    let mut rows = Counted::default();
    let setup = Setup {
        part: None,
        plan: &plan,
        stages: system.stages(),
        final_stages: model::FinalStages::all(0),
        system: &system,
        deployment: &Deployment::new(clock::Clock::start()),
        seed: Seed(1),
        control: Arc::<Control>::default(),
        live: Arc::<Live>::default(),
    };
    let mut facts = load::run(setup, &mut rows).expect("the load begins").facts;
    assert_eq!((rows.0, facts.workers[0].answered), (TRANSACTIONS, TRANSACTIONS));
    assert!(AT_SETTLED.load(Relaxed) > 0, "the counter counts: setting up does allocate");
    let allocations = AT_END.load(Relaxed) - AT_SETTLED.load(Relaxed);
    let per_thousand = (TRANSACTIONS - SETTLED) / 1_000;
    assert!(
        allocations < per_thousand,
        "{allocations} allocations in {per_thousand},000 transactions"
    );
    eprintln!("{allocations} allocations");
    facts.workers.swap_remove(0)
}
