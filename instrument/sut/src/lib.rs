//! The contract with a system under test: what an adapter implements and the load engine uses. Implementers
//! and users share this crate and never see each other.
//!
//! An adapter supplies a [`System`]. The engine owns sockets, TLS, timers, timeouts, schedules and stamps; an
//! adapter has no way to tell the time of a transaction, so none can invent its own timing. [`conformance`]
//! tests that a [`Session`] keeps its side.

pub mod asker;
mod channel;
pub mod conformance;
pub mod content;
pub mod durability;
mod marks;
mod texts;

use std::any::Any;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use channel::{Channel, Failure};
use clock::{Clock, WallTime};
pub use marks::{Answer, FOLLOW_UP_BYTES_MAX, Mark, Marks, Next, TEXT_CHARS_MAX, cut, shown};
pub use model::check::{Check, CheckFinding, CheckInput, CheckState, Entries, Reads};
pub use model::facts::KindFacts as Kind;
use model::facts::{ClockRelation, CodeRemark, LedgerEntry, NodeFacts, PreflightFinding};
pub use model::facts::{DurabilityFacts, NodeState, StepFacts};
pub use model::node_events::{NodeEvent, NodeSpan, NodeStage};
use model::options::{Options, Problems};
use model::plan::LoadPlan;
use model::{Outcome, Seed, TxId};
pub use testbed::ask::{self, Tls};
pub use testbed::{NodeCare, Scrape, ScrapeSeries, Testbed};
pub use texts::{Texts, reply_id};

/// Why a system could not do what it was asked, for people: what was attempted, on what, what to do next.
#[derive(Debug, thiserror::Error)]
pub enum SutError {
    /// The system could not be started or reached.
    #[error("{0}")]
    Deploy(String),
    /// The ledger could not be read.
    #[error("reading the ledger: {0}")]
    Ledger(String),
    /// The ledger was read, and its own audit refuses what it holds: a fault of the system's, in the audit's sentence.
    #[error("the ledger's own audit refuses it: {0}")]
    Refused(String),
    /// A program that the system needs is not installed.
    #[error("{program} is not installed; {hint}")]
    Missing {
        /// The program.
        program: String,
        /// The remedy, such as `run: assay doctor --install cometbft`.
        hint: String,
    },
    /// The testbed failed.
    #[error(transparent)]
    Testbed(#[from] testbed::TestbedError),
}

/// The program that the experiment names, or else the one of this name that is installed.
///
/// # Errors
/// [`SutError::Missing`], with both remedies.
pub fn program(named: Option<&Path>, name: &str) -> Result<PathBuf, SutError> {
    let installed = || testbed::install::find(name);
    named.map(Path::to_owned).or_else(installed).ok_or_else(|| SutError::Missing {
        program: name.to_owned(),
        hint: format!("run: assay doctor --install {name}, or name one with system.deploy.program"),
    })
}

/// One line of the list of systems: how an adapter is called and built.
pub struct Adapter {
    /// The word in `system.kind`.
    pub kind: &'static str,
    /// One line for `assay --help` and error messages.
    pub summary: &'static str,
    /// Reads `[system.deploy]` and `[workload]`, reporting every mistake in them; `None` if there were any.
    pub build: fn(&Request<'_>, &mut Problems) -> Option<Box<dyn System>>,
    /// Declared targets: hosts, `host:port` or URLs, none of which is looked up or reached here; empty where all
    /// of it is started on this host. `--i-own-this-target` judges by these alone, so nothing that a connection goes to
    /// may be missing. Asked only of options that `build` has taken.
    pub targets: fn(&Request<'_>) -> Vec<String>,
    /// Runs a node of the system in this process (`assay serve KIND …`), if we wrote one and it is light to build; the
    /// words are its own options. One that is heavy is a program of its own ([`Testbed::spawn_program`]).
    pub serve: Option<fn(&[String]) -> std::process::ExitCode>,
    /// Tests of what the ledger holds and of what reads returned, beyond fates (no double spend, serializable, …).
    /// They stand here and not on [`System`], because a run folder is analysed where no system can be built.
    pub checks: &'static [Check],
}

/// The targets of an adapter whose key `attach` names what runs already; what it starts itself runs on this host.
#[must_use]
pub fn attached(request: &Request<'_>) -> Vec<String> {
    request.deploy.get("attach").map(Options::labels).unwrap_or_default()
}

/// The inputs of an adapter.
pub struct Request<'a> {
    /// `[system.deploy]`.
    pub deploy: &'a Options,
    /// `[workload]`.
    pub workload: &'a Options,
    /// Folder that relative paths in the file are relative to.
    pub folder: &'a std::path::Path,
    /// The trial's mark: self-describing transactions carry it, so that a ledger shared by several runs can be told apart.
    pub run_mark: u64,
    /// The load that it will get, for payloads that describe it; absent where there is none (a test of the adapter).
    pub load: Option<&'a LoadPlan>,
}

/// A system under test. One value serves one trial.
pub trait System: Send + Sync {
    /// The ladder: names of the stages that a transaction can reach, lowest first, one to [`model::STAGES_MAX`].
    fn stages(&self) -> Vec<String>;

    /// How far transactions of a role ([`Role::Submit`], [`Role::Probe`]) can get on their way: the index of the last
    /// stage that a client of theirs can see. A load over wires may hear no more than that it was accepted, where a
    /// probe through a client library verifies. An experiment whose final stage lies beyond it is refused.
    fn reaches(&self, role: Role) -> usize {
        let _ = role;
        self.stages().len().saturating_sub(1)
    }

    /// The stages that its nodes stamp in files of their own, in the order of the pipeline, at most
    /// [`model::node_events::NODE_STAGES_MAX`]; none if they stamp nothing. Names differ from those of the ladder,
    /// which is what a client sees.
    fn node_stages(&self) -> Vec<NodeStage> {
        Vec::new()
    }

    /// The kinds of transactions (targets, operations), and whether the ledger records them; `Transaction::kind` is
    /// an index into it.
    fn kinds(&self) -> Vec<Kind>;

    /// Codes that count as committed although a reader may not expect it, with what he should know of them. A trial that
    /// has such commits says so.
    fn code_remarks(&self) -> Vec<CodeRemark> {
        Vec::new()
    }

    /// Fidelity switches that are on, in words.
    fn fidelity(&self) -> Vec<String> {
        Vec::new()
    }

    /// Starts the system, or attaches to it. It is ready to serve when this returns.
    ///
    /// # Errors
    /// When it cannot be started or reached.
    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError>;

    /// The source of transactions for one engine thread. Same seed, same worker, same transactions.
    fn workload(&self, seed: Seed, worker: u32, workers: u32) -> Box<dyn Workload>;

    /// The `index`-th connection of `role`: where to, and the protocol on it. All connections of one role are of one
    /// kind of [`Link`]; another role may have another kind (a probe through a client library, or a program, beside a load over
    /// wires). Observers are always wires.
    ///
    /// # Errors
    /// When there is no such connection.
    fn connect(&self, to: &Deployment, role: Role, index: u32) -> Result<Link, SutError>;

    /// Where the `index`-th connection of `role` goes in its life number `life`: asked before each but the first, which is
    /// life 0 and goes where [`System::connect`] said; `None`: where it went before. This runs between the engine's
    /// sends: it may not wait, and does no I/O.
    fn route(&self, to: &Deployment, role: Role, index: u32, life: u32) -> Option<Endpoint> {
        let _ = (to, role, index, life);
        None
    }

    /// How many observer connections the system needs (0: answers come on the submitting connection).
    fn observers(&self) -> u32 {
        0
    }

    /// One pass over every kind before the load, naming those that cannot succeed. The default tries nothing.
    ///
    /// # Errors
    /// When the pass itself could not be made.
    fn preflight(&self, to: &Deployment) -> Result<Vec<PreflightFinding>, SutError> {
        let _ = to;
        Ok(Vec::new())
    }

    /// What the system itself holds, read after the drain by another way than the load took; `None` if it
    /// keeps nothing that can be read. It may be asked for twice: where something is missing that was acknowledged, it is
    /// read once more.
    ///
    /// # Errors
    /// When there is a ledger and it cannot be read, or its own audit refuses it ([`SutError::Refused`]).
    fn ledger(&self, of: &Deployment) -> Result<Option<Box<dyn Ledger>>, SutError> {
        let _ = of;
        Ok(None)
    }

    /// What each replica says that it holds, asked after the ledger was read: those that have come to one position are to hold
    /// the same, which the check `same-state` looks at. It may wait a little for replicas that lag.
    fn states(&self, of: &Deployment) -> Vec<NodeState> {
        let _ = of;
        Vec::new()
    }

    /// Whether it can be deployed once for several trials, each with a mark of its own: what it deploys, answers and ends
    /// depends on no trial.
    fn outlives_trials(&self) -> bool {
        false
    }

    /// Nothing more is asked: the ledger and the nodes' events were read. The nodes are ended after this.
    fn finished(&self, of: &Deployment) {
        let _ = of;
    }

    /// Hands over what the nodes stamped, all of it, read after the drain. A file that is cut off or damaged is said
    /// with [`NodeEvents::problem`], and the others are read all the same. Asked only of systems with node stages.
    ///
    /// # Errors
    /// When nothing more can be read. What was handed over before is kept.
    fn node_events(&self, of: &Deployment, to: &mut dyn NodeEvents) -> Result<(), SutError> {
        let _ = (of, to);
        Ok(())
    }
}

/// Where an adapter hands over what its nodes stamped, in any order. There is no limit to how much: events are
/// counted by second, and spans are sampled by their transaction, so that handing over all of them is right.
pub trait NodeEvents {
    /// A node did something to one transaction or a batch.
    fn event(&mut self, event: NodeEvent<'_>);

    /// A transaction's time in a stage. All spans of a transaction are kept, or none.
    fn span(&mut self, span: NodeSpan<'_>);

    /// Something could not be read: which file of which node, what is wrong with it, and where it was left.
    fn problem(&mut self, words: String);
}

/// A system that is up.
#[derive(Clone, Debug)]
pub struct Deployment {
    /// The trial's clock, the testbed's: an adapter starts none of its own.
    pub clock: Clock,
    /// Addresses by name; an adapter gives them the names that it needs.
    pub endpoints: Vec<(String, SocketAddr)>,
    /// Processes that belong to it, for resource use.
    pub nodes: Vec<NodeFacts>,
    /// Facts for the reader of the report (versions, sizes). No secrets, and nothing that is read back: what an
    /// adapter has to remember is its `state`.
    pub facts: std::collections::BTreeMap<String, String>,
    /// The settings that decide what the system keeps, of the adapter's list ([`durability::Documented`]).
    pub durability: DurabilityFacts,
    /// The clocks of the system's own times.
    pub clocks: ClockRelation,
    /// The adapter's own state of this deployment.
    pub state: Option<Arc<dyn Any + Send + Sync>>,
    /// Where the system keeps what it stores, if on this host.
    pub folder: Option<PathBuf>,
    /// Metrics that its nodes serve themselves, to be recorded beside what the host says of them.
    pub scrape: Vec<Scrape>,
    /// Who looks after its nodes in faults that take more than a signal.
    pub care: Option<Arc<dyn NodeCare>>,
    /// Set when the run is to stop. Whoever asks the system something beside the load looks at it while it waits.
    pub stop: Arc<AtomicBool>,
    /// Set by the load engine when no answer is waited for any more: a [`Client`]'s call that is still under way returns
    /// as soon as it has seen it, within a tenth of a second, because the trial waits for it.
    pub over: Arc<AtomicBool>,
}

impl Deployment {
    /// One without endpoints, nodes or anything to say.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            endpoints: Vec::new(),
            nodes: Vec::new(),
            facts: Default::default(),
            durability: DurabilityFacts::default(),
            clocks: ClockRelation::default(),
            state: None,
            folder: None,
            scrape: Vec::new(),
            care: None,
            stop: Arc::default(),
            over: Arc::default(),
        }
    }

    /// Servers at these addresses, called `name` with their number. With a folder they are nodes of the testbed, without one
    /// they were there before, and their hosts are not known.
    #[must_use]
    pub fn of_servers(
        bed: &Testbed,
        name: &str,
        addresses: impl Iterator<Item = SocketAddr>,
        folder: Option<PathBuf>,
    ) -> Self {
        let numbered = addresses.enumerate();
        let endpoints = numbered.map(|(at, address)| (format!("{name}{at}"), address)).collect();
        let (nodes, clocks) = match &folder {
            Some(_) => (bed.nodes(), ClockRelation::OneHost),
            None => (Vec::new(), ClockRelation::default()),
        };
        Self { endpoints, nodes, clocks, folder, ..Self::new(bed.clock()) }
    }

    /// The adapter's state, if it is a `T`.
    #[must_use]
    pub fn state<T: Any>(&self) -> Option<&T> {
        self.state.as_deref()?.downcast_ref()
    }

    /// The address called `name`.
    #[must_use]
    pub fn endpoint(&self, name: &str) -> Option<SocketAddr> {
        self.endpoints.iter().find(|(n, _)| n == name).map(|(_, address)| *address)
    }
}

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Transactions are submitted on it.
    Submit,
    /// It only watches: marks for any transaction of the trial may arrive on it.
    Observe,
    /// The probe's transactions are submitted on it.
    Probe,
}

/// A connection, before it is opened.
pub enum Link {
    /// Bytes over TCP, with the engine's own event loop.
    Wire(Endpoint, Box<dyn Session>),
    /// Bytes to a program of this host that is a client itself, over a socket that it has inherited, with the engine's own
    /// event loop.
    Channel(Channel, Box<dyn Session>),
    /// A client library, one call a transaction, for low rates.
    Call(Box<dyn Client>),
}

/// Where a wire connection goes.
#[derive(Clone)]
pub struct Endpoint {
    /// The address.
    pub address: SocketAddr,
    /// TLS, if the connection is to be encrypted: its configuration and the name to verify.
    pub tls: Option<Tls>,
}

/// One unit of work, ready to be encoded.
#[derive(Clone, Copy, Debug)]
pub struct Transaction<'a> {
    /// Its number in the trial.
    pub id: TxId,
    /// Its client; 0 where there are no clients.
    pub client: u32,
    /// Index into [`System::kinds`].
    pub kind: u32,
    /// The bytes that the workload prepared; empty where the session knows the bytes from the kind alone.
    pub payload: &'a [u8],
    /// When it was due, by the wall clock of this host: for payloads that carry a time.
    pub due: WallTime,
    /// When the engine gave it to the session, by the same clock: the time that tools put into a payload which
    /// stamp it as they make it, and with which a delay of their own stays hidden.
    pub given: WallTime,
    /// Which time it is sent: 1 the first. Whatever it is, the bytes are to name the same transaction.
    pub attempt: u8,
}

impl<'a> Transaction<'a> {
    /// The first attempt of one that belongs to no client, was due and given at the Unix epoch, for protocols that carry no
    /// time.
    #[must_use]
    pub const fn new(id: TxId, kind: u32, payload: &'a [u8]) -> Self {
        let epoch = WallTime::from_unix_ns(0);
        Self { id, client: 0, kind, payload, due: epoch, given: epoch, attempt: 1 }
    }
}

/// The seeded source of transactions of one engine thread. It is called ahead of the due times, so it may
/// sign and encode; it must not do I/O.
pub trait Workload: Send {
    /// Prepares the transaction `id`: writes its payload (the buffer comes empty), and says what it made.
    ///
    /// `client` is whose turn it is in a closed loop, whose clients the engine counts from 0 over all workers; what is
    /// made must then be that client's. `None`: arrivals are open, and the workload says whose it is.
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made;
}

/// The workload's facts beside the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// Index into [`System::kinds`].
    pub kind: u32,
    /// Its client: an account, a session; 0 where the workload knows no clients.
    pub client: u32,
}

impl Made {
    /// What workloads make whose transactions are the same for everybody: whoever was asked for, else nobody's.
    #[must_use]
    pub const fn of(kind: u32, client: Option<u32>) -> Self {
        let client = match client {
            Some(client) => client,
            None => 0,
        };
        Self { kind, client }
    }
}

/// One connection's protocol as a value: requests out, marks in. No socket, no clock, no retry, no thread.
///
/// A user's next transaction is announced with [`Marks::follows`], and sent by the engine when it is due: it may come on any
/// connection of the role, so that what is known of the user travels in the payload.
///
/// The engine calls [`Session::submit`] for at most [`Session::in_flight_max`] unresolved transactions at a
/// time and hands over every byte that arrives. After a `ProtocolError`, after [`Abandon::Close`] and after
/// [`Marks::close`] the engine closes the connection, ends what was outstanding on it as unknown (or rejected
/// `transport` where nothing had been sent), and calls [`Session::reset`] before it uses the session on a new one.
pub trait Session: Send {
    /// Bytes to send when the connection is open, before any transaction (a handshake, a subscription).
    fn open(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// Whether the session's own handshake is done, so that transactions may be submitted.
    fn is_ready(&self) -> bool {
        true
    }

    /// Encodes a transaction. When [`Session::gathered`] returns after it, all of its bytes are in `out`; nothing may
    /// be held back beyond that. Gives the number of payload bytes (bodies only), for the row.
    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32;

    /// Called once after the submits that leave together, before their bytes do: a session whose protocol puts
    /// several transactions into one frame closes the frame here. With [`model::plan::BatchPlan`] these are a batch,
    /// without one whatever one turn of the engine's loop submitted on this connection. Writes nothing if nothing was
    /// submitted since the last call.
    fn gathered(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// Reads what has arrived: `bytes` begins with what the last call left unread. Gives how many bytes were
    /// used; the rest is offered again, with more after it. May write an answer of its own (a pong) to `out`.
    ///
    /// # Errors
    /// When the bytes are not of the protocol.
    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>, marks: &mut Marks) -> Received;

    /// The peer has closed its side. An answer that ends with the connection may be completed here.
    fn closed(&mut self, marks: &mut Marks) {
        let _ = marks;
    }

    /// The engine gives `tx` up (timeout). Says whether the connection can still be used.
    fn abandon(&mut self, tx: TxId) -> Abandon;

    /// The most transactions that may be outstanding on the connection; 1 unless the protocol can carry more.
    fn in_flight_max(&self) -> u32 {
        1
    }

    /// For protocols that must ask: writes a question if there is something to ask about, and says after how
    /// long to ask again; `None`: never.
    fn poll(&mut self, out: &mut Vec<u8>) -> Option<Duration> {
        let _ = out;
        None
    }

    /// Forgets everything about the connection: a new one begins.
    fn reset(&mut self);
}

/// The state of a connection after a transaction on it was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abandon {
    /// Its answer can still be told apart from others if it comes.
    Keep,
    /// Answers could no longer be told apart.
    Close,
}

/// Bytes that are not of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProtocolError(pub String);

/// The number of bytes that a session used of those that had arrived.
pub type Received = Result<usize, ProtocolError>;

/// A client library, for systems that are reachable only through one. Called on a thread of its own; blocks
/// until the transaction has ended. For low rates: the engine stamps before and after the call and at each mark.
pub trait Client: Send {
    /// Carries out one transaction. `reached(stage)` stamps a stage at the moment of the call; `seen(bytes)` keeps what
    /// a read returned, as [`Marks::observed`] does for a session, with the same bound. It returns soon after
    /// [`Deployment::over`] is set.
    fn execute(
        &mut self,
        tx: &Transaction<'_>,
        reached: &mut dyn FnMut(u8),
        seen: &mut dyn FnMut(&[u8]),
    ) -> Returned<'_>;
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returned<'c> {
    /// The outcome of the transaction. Committed, or a call that reached the final stage on its way, is a success.
    pub outcome: Outcome,
    /// The system's own code; 0 where there is none.
    pub code: u16,
    /// Body bytes of the answer.
    pub bytes_in: u32,
    /// The library's error as a report would group it, without ids or addresses that differ each time; empty where
    /// there is none. The client keeps the text, so that a call that succeeds allocates none.
    pub text: &'c str,
}

impl Returned<'_> {
    /// The call succeeded.
    #[must_use]
    pub const fn committed(code: u16, bytes_in: u32) -> Self {
        Self { outcome: Outcome::Committed, code, bytes_in, text: "" }
    }
}

impl<'c> Returned<'c> {
    /// The call did not succeed, or did not say.
    #[must_use]
    pub const fn ended(outcome: Outcome, code: u16, text: &'c str) -> Self {
        Self { outcome, code, bytes_in: 0, text }
    }
}

/// A system's ledger, read in its own order.
pub trait Ledger {
    /// The next entry, with what it holds in `content`, which comes empty; `None` at the end. A ledger whose adapter
    /// has no check that reads contents may leave it empty.
    ///
    /// # Errors
    /// When it cannot be read on, or its own audit refuses what follows ([`SutError::Refused`]).
    fn next(&mut self, content: &mut Vec<u8>) -> Result<Option<LedgerEntry>, SutError>;

    /// The stage from which on an acknowledgement fixes the order: what is sent after it stands after it. `None` where
    /// entries have no order, such as the keys of a store. Nothing is concluded from the order where transactions were
    /// acknowledged earlier.
    fn ordered_from(&self) -> Option<usize> {
        Some(0)
    }

    /// By which way it is read, in words.
    fn way(&self) -> String;
}

/// The outcome of a transaction whose connection could not even take it.
pub const REFUSED: Outcome = Outcome::Rejected(model::Class::Transport);
