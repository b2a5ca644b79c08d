//! `assay agent`: a host that carries out parts of loads for coordinators elsewhere. It deploys nothing, asks nothing of the
//! system beside the load, and writes no report.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use agents::agent::{Agent, Part, Work};
use agents::messages::{Counts, Finished, Job};
use agents::nats::{Credentials, Server};
use clock::{Clock, CpuTime};
use load::{Control, Live, LiveSnapshot, Loaded, RowSink, Setup};
use model::facts::Event;
use model::options::Problems;
use model::result::Exit;
use model::{Observations, Row, secret};
use record::{RowLogWriter, RunFolder};
use sut::{Deployment, Request};
use testbed::PassingFolder;

use crate::cli::{AgentArguments, NatsArguments};
use crate::terminal::say;
use crate::{systems, umask};

/// Variables with the credentials of NATS.
const USER: &str = "NATS_USER";
const PASSWORD: &str = "NATS_PASSWORD";
/// The one with a token in their place.
pub const TOKEN: &str = "NATS_TOKEN";
/// The group of agents and coordinators that name none.
pub const GROUP: &str = "load";
/// Events that travel to the coordinator: they have to fit into one message.
const EVENTS_MAX: usize = 1_000;

/// Carries out parts until it is asked to end.
pub fn agent(arguments: &AgentArguments) -> Exit {
    let failed = |exit: Exit| {
        move |message| {
            say!("assay: {message}");
            exit
        }
    };
    let served = coordinators(arguments).map_err(failed(Exit::Usage));
    let served =
        served.and_then(|server| serve(arguments, server).map_err(failed(Exit::CouldNotRun)));
    served.err().unwrap_or(Exit::Ok)
}

/// The server over which an agent is reached by the name of its group.
fn coordinators(arguments: &AgentArguments) -> Result<Server, String> {
    agents::check_name(&arguments.group).map_err(|error| error.to_string())?;
    let server = server(&arguments.nats)?;
    server.ok_or_else(|| "expected --nats URL, got none; name the server of NATS".to_owned())
}

/// The server that is named, with the credentials of the environment.
pub fn server(arguments: &NatsArguments) -> Result<Option<Server>, String> {
    let Some(url) = &arguments.nats else { return Ok(None) };
    let of = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let credentials = Credentials { user: of(USER), password: of(PASSWORD), token: of(TOKEN) };
    for value in [&credentials.password, &credentials.token].into_iter().flatten() {
        secret::taint(value);
    }
    let server = Server::new(url, arguments.nats_ca.as_deref(), credentials);
    server.map(Some).map_err(|error| error.to_string())
}

fn serve(arguments: &AgentArguments, server: Server) -> Result<(), String> {
    umask::only_own_files();
    testbed::raise_file_limit().map_err(|error| error.to_string())?;
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_over))
            .map_err(|error| format!("installing signal handlers: {error}"))?;
    }
    let clock = Clock::start();
    let spool = Arc::new(Spool::new(arguments.spool.clone()));
    let of = Arc::clone(&spool);
    let work: Work = Arc::new(move |job, part| carry_out(&of, clock, &job, &part));
    let agent = Agent { server, group: arguments.group.clone(), name: own_name(), clock, work };
    let served = agent.serve(&is_over, &|words| say!("assay: {words}"));
    spool.clear();
    served.map_err(|error| error.to_string())
}

/// The host's name and this process's number, as a subject may hold them.
fn own_name() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let host: String = host.chars().map(plain).take(40).collect();
    format!("{host}-{}", std::process::id())
}

/// Where rows lie until they are handed over: of one part at a time, and gone with this process, however it ends.
struct Spool {
    around: PathBuf,
    last: Mutex<Option<PassingFolder>>,
}

impl Spool {
    fn new(around: Option<PathBuf>) -> Self {
        Self { around: around.unwrap_or_else(std::env::temp_dir), last: Mutex::default() }
    }

    /// A folder for one part; that of the part before is removed.
    fn begin(&self) -> Result<record::TrialFolder, String> {
        self.clear();
        let path = self.around.join(format!("assay-agent-{}", std::process::id()));
        let folder = PassingFolder::make(&path)
            .map_err(|error| format!("making the folder {}: {error}", path.display()))?;
        let run = RunFolder::open(folder.path()).map_err(|error| error.to_string())?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder);
        run.trial("part", 0).map_err(|error| error.to_string())
    }

    fn clear(&self) {
        drop(self.last.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Carries out one part of a plan.
fn carry_out(spool: &Spool, clock: Clock, job: &Job, part: &Part) -> Result<Finished, String> {
    let setting = &job.setting;
    let kind = &setting.system.kind;
    let here = std::env::current_dir().map_err(|e| format!("reading the working folder: {e}"))?;
    let adapter = systems::adapter(kind)
        .ok_or_else(|| format!("expected a system that this version knows, got `{kind}`"))?;
    let request = Request {
        deploy: &setting.system.deploy,
        workload: &setting.system.workload,
        folder: &here,
        run_mark: job.run_mark,
        load: Some(&setting.load),
    };
    let mut problems = Problems::default();
    let system = (adapter.build)(&request, &mut problems).ok_or_else(|| {
        format!(
            "the system `{kind}` cannot be made of its options here; files are looked for in the folder in which the agent \
             was started, and `${{NAME}}` in its own environment"
        )
    })?;
    let mut deployment = Deployment::new(clock);
    deployment.endpoints.clone_from(&job.endpoints);
    let stages = system.stages();
    let (control, live) = (Arc::new(Control::default()), Arc::new(Live::default()));
    let (stopping, counting) = (Arc::clone(&control), Arc::clone(&live));
    part.follow(
        Box::new(move |at_once| if at_once { stopping.quit() } else { stopping.stop() }),
        Box::new(move || counts(&counting.snapshot())),
    );
    let start = || part.await_start();
    let setup = Setup {
        plan: setting,
        final_stages: setting.final_stages(&stages),
        stages,
        system: system.as_ref(),
        deployment: &deployment,
        seed: job.seed,
        control,
        live,
        part: Some(load::Part { index: job.part, of: job.of, start: &start }),
    };
    let folder = spool.begin()?;
    let words = |error: record::RecordError| error.to_string();
    let log = folder.row_log().map_err(words)?;
    let mut sink = Handed { log, path: folder.row_log_path(), part, events: Vec::new() };
    part.written(&sink.path, sink.log.written_bytes());
    let before = CpuTime::of_this_process();
    let Loaded { facts, .. } = load::run(setup, &mut sink).map_err(|error| error.to_string())?;
    let Handed { log, events, .. } = sink;
    let row_bytes = log.written_bytes();
    log.close().map_err(words)?;
    Ok(Finished { facts, events, cpu: CpuTime::of_this_process().since(before), row_bytes })
}

/// The counters as they travel.
fn counts(of: &LiveSnapshot) -> Counts {
    Counts {
        has_started: true,
        offered: of.offered,
        sent: of.sent,
        committed: of.committed,
        failed: of.failed,
        outstanding: of.outstanding,
        backlog: of.backlog,
        own_lag_p99_ns: of.own_lag_p99_ns.unwrap_or(0),
        latency_p50_ns: of.latency_p50_ns.unwrap_or(0),
        latency_p99_ns: of.latency_p99_ns.unwrap_or(0),
    }
}

/// Rows go to the spool's log, from which the agent hands them over.
struct Handed<'a> {
    log: RowLogWriter,
    path: PathBuf,
    part: &'a Part,
    events: Vec<Event>,
}

impl RowSink for Handed<'_> {
    fn rows(&mut self, rows: &[Row]) -> Result<(), String> {
        self.log.append(rows).and_then(|()| self.log.flush()).map_err(|error| error.to_string())?;
        self.part.written(Path::new(&self.path), self.log.written_bytes());
        Ok(())
    }

    fn observations(&mut self, _: &Observations) -> Result<(), String> {
        Err("what this system's transactions return cannot be gathered from agents; run it without --agents".to_owned())
    }

    fn event(&mut self, event: Event) {
        if self.events.len() < EVENTS_MAX {
            self.events.push(event);
        }
    }
}
