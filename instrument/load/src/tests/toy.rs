//! A server, a protocol and a plan for the tests: nine bytes out (id, kind), nine bytes back (id, code).

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clock::Clock;
use model::facts::{Event, LoadFacts};
use model::plan::{Arrivals, LoadPlan, MeasurePlan, SettingPlan};
use model::quantity::Rate;
use model::{Class, FinalStages, Observation, Observations, Outcome, Row, Seed, Stamp};
use sut::{
    Abandon, Deployment, Endpoint, Kind, Link, Made, Marks, ProtocolError, Received, Role, Session,
    StepFacts, SutError, System, Testbed, Tls, Transaction, Workload,
};

use crate::threads::{Choice, run_with};
use crate::{Control, Live, LoadError, Loaded, RowSink, Setup};

/// Codes below this are stages; this one is a refusal, and this one no code of the protocol.
pub const REFUSE: u8 = 100;
pub const GARBAGE: u8 = 255;
/// The id with which an observer subscribes.
const SUBSCRIBE: u64 = u64::MAX;
/// The id of frames that mean nothing.
pub const NOISE: u64 = u64::MAX - 1;

/// The server's reaction to a request.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    Answer(u64, u8),
    /// To every observer.
    Publish(u64, u8),
    Pause(Duration),
    Close,
    /// No client can connect any more; the connections that there are go on.
    StopListening,
    /// Noise as fast as the connection takes it, for so long or until it is gone.
    Flood(Duration),
}

/// A request as the server sees it.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub id: u64,
    /// How many the server has had before it.
    pub nth: u64,
}

type Handler = dyn Fn(Asked) -> Vec<Act> + Send + Sync;

/// The server: a thread a connection.
pub struct Toy {
    pub address: SocketAddr,
    is_over: Arc<AtomicBool>,
    /// Floods that went on for all of their time, because the connection was never closed before.
    pub floods_ended: Arc<AtomicU64>,
}

impl Toy {
    pub fn start(handler: impl Fn(Asked) -> Vec<Act> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let (handler, count): (Arc<Handler>, _) = (Arc::new(handler), Arc::new(AtomicU64::new(0)));
        let observers = Arc::new(Mutex::new(Vec::new()));
        let floods_ended = Arc::<AtomicU64>::default();
        let floods = Arc::clone(&floods_ended);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let (handler, count, observers) =
                    (Arc::clone(&handler), Arc::clone(&count), Arc::clone(&observers));
                let (floods, over) = (Arc::clone(&floods), Arc::clone(&over));
                std::thread::spawn(move || {
                    serve(stream, &*handler, &count, &observers, &floods, || {
                        stop_listening(&over, address);
                    });
                });
            }
        });
        Self { address, is_over, floods_ended }
    }

    /// Answers each request at once with stage 0.
    pub fn prompt() -> Self {
        Self::start(|asked| vec![Act::Answer(asked.id, 0)])
    }
}

impl Drop for Toy {
    fn drop(&mut self) {
        stop_listening(&self.is_over, self.address);
    }
}

fn stop_listening(is_over: &AtomicBool, address: SocketAddr) {
    is_over.store(true, Ordering::Relaxed);
    // One that wakes the thread that accepts.
    let _ = TcpStream::connect(address);
}

fn serve(
    mut stream: TcpStream,
    handler: &Handler,
    count: &AtomicU64,
    observers: &Mutex<Vec<TcpStream>>,
    floods_ended: &AtomicU64,
    stop_listening: impl Fn(),
) {
    let _ = stream.set_nodelay(true);
    let mut buffer = vec![0; 64 * 1024];
    let mut held = Vec::new();
    loop {
        let Ok(length @ 1..) = stream.read(&mut buffer) else { return };
        held.extend_from_slice(&buffer[..length]);
        let mut out = Vec::new();
        let whole = held.len() / 9 * 9;
        for request in held[..whole].chunks_exact(9) {
            let id = u64::from_le_bytes(request[..8].try_into().expect("eight bytes"));
            if id == SUBSCRIBE {
                observers.lock().unwrap().push(stream.try_clone().unwrap());
                out.extend_from_slice(&frame(SUBSCRIBE, 0));
                continue;
            }
            let nth = count.fetch_add(1, Ordering::Relaxed);
            for act in handler(Asked { id, nth }) {
                match act {
                    Act::Answer(id, code) => out.extend_from_slice(&frame(id, code)),
                    Act::Publish(id, code) => {
                        let _ = stream.write_all(&std::mem::take(&mut out));
                        for observer in observers.lock().unwrap().iter_mut() {
                            let _ = observer.write_all(&frame(id, code));
                        }
                    }
                    Act::Pause(length) => std::thread::sleep(length),
                    Act::StopListening => stop_listening(),
                    Act::Flood(length) => {
                        if flood(&mut stream, length) {
                            floods_ended.fetch_add(1, Ordering::Relaxed);
                        }
                        return;
                    }
                    Act::Close => {
                        let _ = stream.write_all(&out);
                        let _ = stream.shutdown(std::net::Shutdown::Both);
                        return;
                    }
                }
            }
        }
        held.drain(..whole);
        if stream.write_all(&out).is_err() {
            return;
        }
    }
}

/// Says whether the connection stood for all of that time.
fn flood(stream: &mut TcpStream, length: Duration) -> bool {
    let noise = frame(NOISE, 0).repeat(14_000);
    let clock = Clock::start();
    let end = clock.now().plus(length);
    while clock.now() < end {
        if stream.write_all(&noise).is_err() {
            return false;
        }
    }
    true
}

fn frame(id: u64, code: u8) -> [u8; 9] {
    let mut bytes = [code; 9];
    bytes[..8].copy_from_slice(&id.to_le_bytes());
    bytes
}

/// The protocol.
struct ToySession {
    in_flight_max: u32,
    abandon: Abandon,
    observes: bool,
    is_ready: bool,
    polls: Option<Duration>,
    asked: Vec<u64>,
    reads: bool,
    /// For how long it holds its thread up at every tenth answer, and how many it has had.
    holds: Duration,
    answers: u64,
    /// Whether it answers noise, as other protocols answer pings.
    replies: bool,
    /// Transactions that were submitted and not yet gathered, where it frames what leaves together.
    gathers: bool,
    held: Vec<u8>,
    /// How many transactions a flow has and how long after each answer the next one is due, where there are flows.
    flow: Option<(u8, Duration)>,
    /// The step of each transaction that is outstanding.
    steps: Vec<(u64, u8)>,
}

impl Session for ToySession {
    fn open(&mut self, out: &mut Vec<u8>) {
        if self.observes {
            out.extend_from_slice(&frame(SUBSCRIBE, 0));
        }
    }

    fn is_ready(&self) -> bool {
        self.is_ready
    }

    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        if self.polls.is_some() {
            self.asked.push(tx.id);
        } else {
            let out = if self.gathers { &mut self.held } else { out };
            out.extend_from_slice(&frame(tx.id, u8::try_from(tx.kind).expect("small")));
        }
        if self.flow.is_some() {
            self.steps.push((tx.id, if tx.payload.len() == 1 { tx.payload[0] } else { 0 }));
        }
        u32::try_from(tx.payload.len()).expect("small")
    }

    fn gathered(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.held);
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        for answer in bytes.chunks_exact(9) {
            self.answers += 1;
            if !self.holds.is_zero() && self.answers.is_multiple_of(10) {
                std::thread::sleep(self.holds);
            }
            let id = u64::from_le_bytes(answer[..8].try_into().expect("eight bytes"));
            match answer[8] {
                _ if id == SUBSCRIBE => self.is_ready = true,
                _ if id == NOISE && self.replies => out.extend_from_slice(answer),
                _ if id == NOISE => {}
                REFUSE if self.flow.is_some() => {
                    self.announce(id, marks);
                    marks.ended(id, Outcome::Rejected(Class::BadRequest), 400, 0, "refused");
                }
                REFUSE => marks.ended(id, Outcome::Rejected(Class::BadRequest), 400, 0, "refused"),
                GARBAGE => return Err(ProtocolError("no such code".to_owned())),
                stage => {
                    if self.reads {
                        marks.observed(id, answer);
                    }
                    self.announce(id, marks);
                    marks.reached(id, stage, 200, 9);
                }
            }
        }
        Ok(bytes.len() / 9 * 9)
    }

    fn abandon(&mut self, _tx: u64) -> Abandon {
        self.abandon
    }

    fn in_flight_max(&self) -> u32 {
        self.in_flight_max
    }

    fn poll(&mut self, out: &mut Vec<u8>) -> Option<Duration> {
        // What was submitted since the last poll is asked for now.
        for id in self.asked.drain(..) {
            out.extend_from_slice(&frame(id, 0));
        }
        self.polls
    }

    fn reset(&mut self) {
        self.is_ready = !self.observes;
        self.asked.clear();
        self.held.clear();
        self.steps.clear();
    }
}

impl ToySession {
    /// Says what follows a transaction of a flow.
    fn announce(&mut self, id: u64, marks: &mut Marks) {
        let Some((count, after)) = self.flow else { return };
        let Some(at) = self.steps.iter().position(|(of, _)| *of == id) else { return };
        let (_, step) = self.steps.swap_remove(at);
        if step + 1 < count {
            let next = sut::Next { kind: 1, after };
            assert!(marks.follows(id, next, |payload| payload.push(step + 1)));
        }
    }
}

struct ToyWorkload {
    kinds: u32,
    clients: u32,
}

impl Workload for ToyWorkload {
    fn next(&mut self, id: u64, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        payload.extend_from_slice(&id.to_le_bytes());
        let kind = u32::try_from(id % u64::from(self.kinds)).expect("small");
        // Client 0 brings half of all.
        let whose = u32::try_from(id / 2 % u64::from(self.clients)).expect("small");
        let own = if id.is_multiple_of(2) { 0 } else { whose };
        Made { kind, client: client.unwrap_or(own) }
    }
}

/// The system, with what a test may want different.
#[derive(Clone)]
pub struct ToySystem {
    pub address: SocketAddr,
    pub in_flight_max: u32,
    pub abandon: Abandon,
    pub observers: u32,
    pub stages: u32,
    pub tls: Option<Tls>,
    pub polls: Option<Duration>,
    /// The clients of an open loop's transactions.
    pub clients: u32,
    /// Where connections go in their later lives.
    pub next: Option<SocketAddr>,
    /// Whether every answer is an observation.
    pub reads: bool,
    /// Whether sessions answer noise.
    pub replies: bool,
    pub gathers: bool,
    /// For how long each session but the first holds its thread up at every tenth answer.
    pub holds: Duration,
    /// Transactions of a flow, and how long after an answer the next one is due.
    pub flow: Option<(u8, Duration)>,
}

impl ToySystem {
    /// One whose sessions write nothing until they are told that all has been gathered.
    pub fn gathering(toy: &Toy) -> Self {
        let abandon = Abandon::Keep;
        Self { gathers: true, in_flight_max: 1_000, abandon, ..Self::new(toy.address) }
    }

    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            in_flight_max: 1,
            abandon: Abandon::Close,
            observers: 0,
            stages: 1,
            tls: None,
            polls: None,
            clients: 1,
            next: None,
            reads: false,
            replies: false,
            gathers: false,
            holds: Duration::ZERO,
            flow: None,
        }
    }
}

impl System for ToySystem {
    fn stages(&self) -> Vec<String> {
        (0..self.stages).map(|stage| format!("stage-{stage}")).collect()
    }

    fn kinds(&self) -> Vec<Kind> {
        if let Some((count, _)) = self.flow {
            let step = |is_first, is_last| StepFacts { flow: "flow".into(), is_first, is_last };
            let first = Kind::of_flow("first", step(true, count == 1));
            return vec![first, Kind::of_flow("later", step(false, false))];
        }
        vec![Kind::recorded("even"), Kind::recorded("odd")]
    }

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        Ok(Deployment::new(bed.clock()))
    }

    fn workload(&self, _seed: Seed, _worker: u32, _workers: u32) -> Box<dyn Workload> {
        let kinds = if self.flow.is_some() { 1 } else { 2 };
        Box::new(ToyWorkload { kinds, clients: self.clients })
    }

    fn connect(&self, _to: &Deployment, role: Role, index: u32) -> Result<Link, SutError> {
        let observes = role == Role::Observe;
        let session = ToySession {
            in_flight_max: self.in_flight_max,
            abandon: self.abandon,
            observes,
            is_ready: !observes,
            polls: self.polls,
            asked: Vec::new(),
            reads: self.reads,
            replies: self.replies,
            holds: if index == 0 { Duration::ZERO } else { self.holds },
            answers: 0,
            gathers: self.gathers,
            held: Vec::new(),
            flow: self.flow,
            steps: Vec::new(),
        };
        let endpoint = Endpoint { address: self.address, tls: self.tls.clone() };
        Ok(Link::Wire(endpoint, Box::new(session)))
    }

    fn route(&self, _to: &Deployment, _role: Role, _index: u32, life: u32) -> Option<Endpoint> {
        assert!(life > 0, "the first life goes where `connect` says");
        self.next.map(|address| Endpoint { address, tls: self.tls.clone() })
    }

    fn observers(&self) -> u32 {
        self.observers
    }
}

/// A sink that keeps everything, or errs after some rows.
#[derive(Default)]
pub struct Kept {
    pub rows: Vec<Row>,
    pub events: Vec<Event>,
    pub seen: Vec<(u64, Stamp, Vec<u8>)>,
    pub errs_after: Option<usize>,
}

impl RowSink for Kept {
    fn rows(&mut self, rows: &[Row]) -> Result<(), String> {
        if self.errs_after.is_some_and(|most| self.rows.len() + rows.len() > most) {
            return Err("no space left on device".to_owned());
        }
        self.rows.extend_from_slice(rows);
        Ok(())
    }

    fn observations(&mut self, observations: &Observations) -> Result<(), String> {
        let one = |one: Observation<'_>| (one.tx, one.at, one.bytes.to_vec());
        self.seen.extend(observations.iter().map(one));
        Ok(())
    }

    fn event(&mut self, event: Event) {
        self.events.push(event);
    }
}

/// A plan that ends with its last transaction, however long a busy machine takes for them.
pub fn plan_of(transactions_max: u64, arrivals: Arrivals) -> SettingPlan {
    let mut plan = plan(arrivals);
    (plan.load.transactions_max, plan.load.duration) = (transactions_max, Duration::from_secs(30));
    plan
}

/// A plan of three tenths of a second without a warm-up.
pub fn plan(arrivals: Arrivals) -> SettingPlan {
    let load = LoadPlan {
        drain_max: Duration::from_secs(2),
        ..LoadPlan::plain(arrivals, 4, Duration::from_millis(300))
    };
    let measure = MeasurePlan { ledger: false, ..MeasurePlan::default() };
    SettingPlan { measure, ..SettingPlan::plain("toy", load) }
}

pub fn constant(per_second: u64) -> Arrivals {
    Arrivals::constant(Rate::per_second(per_second))
}

pub fn closed(clients: u32) -> Arrivals {
    Arrivals::closed(clients)
}

/// Runs a trial and checks what holds for each: one row a transaction, dense ids, ordered stamps, counters
/// that add up.
pub fn run(plan: &SettingPlan, system: &ToySystem, choice: Choice) -> (LoadFacts, Kept) {
    let mut kept = Kept::default();
    let loaded = try_run(plan, system, choice, &mut kept, Arc::default());
    let facts = loaded.expect("the load begins").facts;
    kept.rows.sort_by_key(|row| row.tx);
    check_rows(&facts, plan.final_stages(&system.stages()), &kept.rows);
    (facts, kept)
}

pub fn try_run(
    plan: &SettingPlan,
    system: &ToySystem,
    choice: Choice,
    sink: &mut dyn RowSink,
    control: Arc<Control>,
) -> Result<Loaded, LoadError> {
    try_run_of(plan, system, choice, sink, control)
}

/// The same for any system.
pub fn try_run_of(
    plan: &SettingPlan,
    system: &dyn System,
    choice: Choice,
    sink: &mut dyn RowSink,
    control: Arc<Control>,
) -> Result<Loaded, LoadError> {
    let stages = system.stages();
    let setup = Setup {
        part: None,
        plan,
        final_stages: plan.final_stages(&stages),
        stages,
        system,
        deployment: &Deployment::new(Clock::start()),
        seed: Seed(42),
        control,
        live: Arc::<Live>::default(),
    };
    run_with(setup, sink, choice)
}

fn check_rows(facts: &LoadFacts, ends: FinalStages, rows: &[Row]) {
    let sum = |of: fn(&model::facts::WorkerFacts) -> u64| facts.workers.iter().map(of).sum::<u64>();
    assert_eq!(sum(|worker| worker.due), rows.len() as u64, "one row for each due transaction");
    let count = |wanted: fn(&Row) -> bool| rows.iter().filter(|row| wanted(row)).count() as u64;
    assert_eq!(sum(|worker| worker.sent), count(|row| row.sent != model::NO_STAMP));
    assert_eq!(sum(|worker| worker.shed), count(|row| row.outcome == Outcome::Shed));
    assert!(rows.windows(2).all(|pair| pair[0].tx < pair[1].tx), "no id twice");
    for row in rows {
        assert!(row.due <= row.ready && row.end != model::NO_STAMP, "{row:?}");
        if row.sent != model::NO_STAMP {
            assert!(row.ready <= row.sent && row.sent <= row.end, "{row:?}");
        }
        let reached: Vec<_> = row.marks.iter().filter(|mark| **mark != model::NO_STAMP).collect();
        assert!(reached.iter().all(|mark| (row.sent..=row.end).contains(*mark)), "{row:?}");
        let is_final = row.marks[ends.of(row.stream)] != model::NO_STAMP;
        assert_eq!(is_final, row.outcome == Outcome::Committed, "{row:?}");
    }
}

/// How many rows ended so.
pub fn count(rows: &[Row], outcome: Outcome) -> usize {
    rows.iter().filter(|row| row.outcome == outcome).count()
}

/// Runs a test with each driver that this host has, side by side.
pub fn with_each_driver(test: impl Fn(Choice) + Sync) {
    std::thread::scope(|scope| {
        scope.spawn(|| test(Choice::Epoll));
        if crate::threads::choose(Some("io_uring")).is_ok() {
            scope.spawn(|| test(Choice::Ring));
        } else {
            eprintln!("this kernel has no io_uring: tested with epoll alone");
        }
    });
}
