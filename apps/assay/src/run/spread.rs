//! A trial's load over agents: who they are, what comes back, and how it becomes the trial's own rows and facts. After it
//! nothing knows that the load came from several hosts but the facts that name them.

use std::collections::HashMap;
use std::io::Read as _;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use agents::AGENTS_MAX;
use agents::coordinator::{Ended, Follower, Spread, Untaken};
use agents::messages::{Counts, Job};
use agents::nats::{Credentials, Server};
use clock::{Clock, Instant};
use load::schedule::{DueTimes, Window, is_saturating};
use load::{LiveSnapshot, Loaded, Part, Phase, RowSink as _, Setup};
use model::facts::{AgentFacts, LoadFacts};
use model::plan::{Arrivals, Plan, SettingPlan};
use model::{FinalStages, Row};
use record::{PartLog, RecordError};
use testbed::{NodeSpec, PassingFolder, Testbed, install};

use super::inputs::Trial;
use super::sink::FolderSink;
use super::watch::Watched;
use crate::agent::{self, GROUP, TOKEN};
use crate::cli::SpreadArguments;
use crate::terminal::say;

/// The server of agents on this machine.
const PROGRAM: &str = "nats-server";
/// How long it may take to listen.
const UP_WITHIN: Duration = Duration::from_secs(20);
/// How long agents and server may take to end.
const STOP_GRACE: Duration = Duration::from_millis(500);
/// Rows that are handed on at once.
const ROWS: usize = 4_096;

/// The agents of a run.
pub struct Agents {
    server: Server,
    group: String,
    count: u32,
    /// Those that were started here; they end with the run.
    _local: Option<Local>,
}

/// The agents that a command line asks for.
pub struct Wanted {
    group: String,
    count: u32,
    /// Without one, agents and a server are started here.
    server: Option<Server>,
}

impl Wanted {
    /// Reads `--agents` and `--nats`, which have to fit each other.
    pub fn read(arguments: &SpreadArguments) -> Result<Option<Self>, String> {
        let server = agent::server(&arguments.nats)?;
        let Some(words) = &arguments.agents else {
            return match server {
                None => Ok(None),
                Some(_) => Err("expected --agents NAME=COUNT with --nats, got none".to_owned()),
            };
        };
        let (group, count) = words
            .split_once('=')
            .map_or((None, words.as_str()), |(group, count)| (Some(group), count));
        let count = count.parse().ok().filter(|count| (1..=AGENTS_MAX).contains(count));
        let count = count.ok_or_else(|| {
            format!("--agents: expected COUNT or NAME=COUNT with 1 to {AGENTS_MAX} agents, got `{words}`")
        })?;
        if let (Some(group), None) = (group, &server) {
            return Err(format!(
                "--agents {group}={count}: expected --nats URL, over which the group is reached; write --agents {count} for \
                 agents on this machine"
            ));
        }
        let group = group.unwrap_or(GROUP).to_owned();
        agents::check_name(&group).map_err(|error| error.to_string())?;
        Ok(Some(Self { group, count, server }))
    }
}

impl Agents {
    /// Those that are wanted; where no server is named, they are started in `folder`.
    pub fn start(
        wanted: Wanted,
        folder: &std::path::Path,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, String> {
        let Wanted { group, count, server } = wanted;
        if let Some(server) = server {
            return Ok(Self { server, group, count, _local: None });
        }
        let (local, server) = Local::start(count, folder, stop)?;
        say!("assay: {count} agents on this machine, over a {PROGRAM} of their own");
        Ok(Self { server, group, count, _local: Some(local) })
    }

    /// Carries out a trial's load, and merges the parts into what one host would have recorded.
    pub fn load(
        &self,
        trial: &Trial<'_>,
        plan: &Plan,
        setup: &Setup<'_>,
        watched: &Watched,
        sink: &mut FolderSink<'_>,
    ) -> Result<Loaded, String> {
        let setting = redacted(plan, trial.setting);
        let clock = setup.deployment.clock;
        let run = format!("{:016x}-{}", trial.run_mark, trial.index);
        let load = &trial.setting.load;
        let words = |error: RecordError| error.to_string();
        let logs: Result<Vec<_>, _> =
            (0..self.count).map(|part| sink.folder.part_log(part)).collect();
        let parts = Parts::new(logs.map_err(words)?);
        let ends = setup.final_stages;
        let mut gathered = Gathered { parts, setup, watched, ends, start: None };
        let spread = Spread {
            server: self.server.clone(),
            group: &self.group,
            run: &run,
            count: self.count,
            clock,
            load: load.warmup + load.duration,
            drain_max: load.drain_max,
        };
        let job = |part| Job {
            part,
            of: self.count,
            setting: setting.clone(),
            seed: trial.seed,
            run_mark: trial.run_mark,
            endpoints: setup.deployment.endpoints.clone(),
        };
        let carried = spread.carry_out(&job, &mut gathered);
        let Parts { rows, taken, .. } = gathered.parts;
        let (start, ended) = match carried {
            Ok(carried) => carried,
            Err(error) => {
                sink.folder.remove_parts(self.count).map_err(words)?;
                return Err(error.to_string());
            }
        };
        let facts = self.merge(setup, start, &ended, (&rows, taken), sink)?;
        for event in ended.into_iter().filter_map(|it| it.finished).flat_map(|it| it.events) {
            sink.event(event);
        }
        Ok(Loaded { facts, start })
    }

    /// Rows into the trial's log, with one table of errors; facts beside each other.
    fn merge(
        &self,
        setup: &Setup<'_>,
        start: Instant,
        ended: &[Ended],
        (rows, mut taken): (&[u64], Vec<u64>),
        sink: &mut FolderSink<'_>,
    ) -> Result<LoadFacts, String> {
        let mut errors = Errors::default();
        let tables: Vec<Table> = ended.iter().map(|part| errors.table(part)).collect();
        let words = |error: RecordError| error.to_string();
        let (mut batch, mut refused) = (Vec::with_capacity(ROWS), Ok(()));
        let folder = sink.folder;
        let merged = folder.merge_parts(self.count, &mut |part, mut row: Row| {
            let part = usize::try_from(part).expect("few agents");
            // The piece for which an agent was lost lies in its log, too.
            if taken[part] == 0 {
                return Ok(());
            }
            taken[part] -= 1;
            row.error = tables[part].of(row.error);
            batch.push(row);
            if batch.len() == ROWS && refused.is_ok() {
                refused = sink.rows(&batch);
                batch.clear();
            }
            Ok(())
        });
        merged.map_err(words)?;
        refused.and_then(|()| sink.rows(&batch))?;
        folder.remove_parts(self.count).map_err(words)?;

        let mut facts = LoadFacts {
            started: setup.deployment.clock.wall_now_at(start),
            errors: errors.texts,
            ..LoadFacts::default()
        };
        let workers =
            Part::workers(setup.plan.load.threads, setup.plan.load.connections, self.count);
        for ((part, ended), rows) in (0..).zip(ended).zip(rows) {
            let is_stopped = setup.control.is_stopped();
            let share = Share { part, of: self.count, workers };
            facts.agents.push(AgentFacts {
                name: ended.name.clone(),
                first_worker: part * workers,
                workers,
                rows: *rows,
                not_offered: match ended.lost.is_empty() {
                    true => Some(0),
                    false if is_stopped => None,
                    false => share.due(setup).map(|due| due.saturating_sub(*rows)),
                },
                lost: ended.lost.clone(),
                start_error_ns: ended.start_error_ns,
                clocks: ended.clocks.clone(),
            });
            if !ended.lost.is_empty() {
                say!("assay: agent {} was lost: {}", ended.name, ended.lost);
            }
            if let Some(finished) = &ended.finished {
                add(&mut facts, &ended.name, &finished.facts);
            }
        }
        if ended.iter().all(|part| part.finished.is_none()) {
            facts.interrupted = "every agent was lost".to_owned();
        }
        Ok(facts)
    }
}

/// The plan of a setting with references in place of secrets.
fn redacted(plan: &Plan, setting: &SettingPlan) -> SettingPlan {
    let alone = Plan { settings: vec![setting.clone()], ..plan.clone() };
    plan::redact_plan(&alone).settings.pop().expect("it has one")
}

/// Adds the facts of a part.
fn add(all: &mut LoadFacts, name: &str, part: &LoadFacts) {
    all.cut_at = match (all.cut_at, part.cut_at) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    all.drain_end = all.drain_end.max(part.drain_end);
    all.drain_left = all.drain_left.saturating_add(part.drain_left);
    if all.interrupted.is_empty() && !part.interrupted.is_empty() {
        all.interrupted = format!("agent {name}: {}", part.interrupted);
    }
    all.workers.extend(part.workers.iter().cloned());
    for (all, part) in [
        (&mut all.transport, &part.transport),
        (&mut all.driver, &part.driver),
        (&mut all.congestion_control, &part.congestion_control),
    ] {
        if all.is_empty() {
            all.clone_from(part);
        } else if !part.is_empty() && !all.split(" / ").any(|word| word == part) {
            *all = format!("{all} / {part}");
        }
    }
    if part.wall_step_ns.unsigned_abs() > all.wall_step_ns.unsigned_abs() {
        all.wall_step_ns = part.wall_step_ns;
    }
}

/// The due times of one part.
struct Share {
    part: u32,
    of: u32,
    workers: u32,
}

impl Share {
    /// How many there are; `None`: what falls due depends on answers.
    fn due(&self, setup: &Setup<'_>) -> Option<u64> {
        let load = &setup.plan.load;
        let Arrivals::Open { schedule } = &load.arrivals else { return None };
        if is_saturating(schedule) {
            return None;
        }
        let events_max = if load.transactions_max == 0 { u64::MAX } else { load.transactions_max };
        let window = Window { warmup: load.warmup, duration: load.duration, events_max };
        let all = self.of * self.workers;
        let own = self.part * self.workers..(self.part + 1) * self.workers;
        let due = |worker| DueTimes::new(schedule, window, setup.seed, worker, all).count() as u64;
        Some(own.map(due).sum())
    }
}

/// The texts of errors of all parts, each once.
struct Errors {
    texts: Vec<String>,
    places: HashMap<String, u16>,
}

impl Default for Errors {
    fn default() -> Self {
        Self { texts: vec![String::new()], places: HashMap::from([(String::new(), 0)]) }
    }
}

/// The places of a part's errors in the table of all.
struct Table {
    places: Vec<u16>,
    /// The place of those whose text never came.
    unknown: u16,
}

impl Table {
    fn of(&self, error: u16) -> u16 {
        let known = self.places.get(usize::from(error)).copied();
        known.unwrap_or(if error == 0 { 0 } else { self.unknown })
    }
}

impl Errors {
    fn place(&mut self, text: &str) -> u16 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        // A row has sixteen bits for it; what comes after shares the last text.
        let Ok(place) = u16::try_from(self.texts.len()) else { return u16::MAX };
        self.texts.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }

    fn table(&mut self, part: &Ended) -> Table {
        match &part.finished {
            Some(finished) => {
                let places = finished.facts.errors.iter().map(|text| self.place(text)).collect();
                Table { places, unknown: 0 }
            }
            None => {
                let text = format!("its text was lost with agent {}", part.name);
                Table { places: vec![0], unknown: self.place(&text) }
            }
        }
    }
}

/// The rows of the parts so far.
struct Parts {
    logs: Vec<PartLog>,
    /// Rows of the main load, by part.
    rows: Vec<u64>,
    /// Rows of all streams, by part.
    taken: Vec<u64>,
}

impl Parts {
    fn new(logs: Vec<PartLog>) -> Self {
        let none = vec![0; logs.len()];
        Self { logs, rows: none.clone(), taken: none }
    }

    /// Keeps the next piece of a part, and gives its rows.
    fn take(&mut self, part: u32, bytes: &[u8]) -> Result<Vec<Row>, Untaken> {
        let part = usize::try_from(part).expect("few agents");
        let rows = self.logs[part].append(bytes).map_err(untaken)?;
        if let Some(Row { tx, due, end, .. }) = rows.iter().find(|row| !row.is_plausible()) {
            return Err(Untaken::Wrong(format!(
                "expected stamps within 36 years of the start, got transaction {tx} due at {due} and over at {end} ns"
            )));
        }
        self.rows[part] += rows.iter().filter(|row| row.stream == 0).count() as u64;
        self.taken[part] += rows.len() as u64;
        Ok(rows)
    }
}

/// A disk that takes nothing, or bytes that are no rows.
fn untaken(error: RecordError) -> Untaken {
    match error {
        RecordError::Write { .. } | RecordError::Full { .. } => Untaken::NotKept(error.to_string()),
        _ => Untaken::Wrong(error.to_string()),
    }
}

/// The parts on their way.
struct Gathered<'a> {
    parts: Parts,
    setup: &'a Setup<'a>,
    watched: &'a Watched,
    ends: FinalStages,
    start: Option<Instant>,
}

impl Follower for Gathered<'_> {
    fn rows(&mut self, part: u32, bytes: &[u8]) -> Result<(), Untaken> {
        let rows = self.parts.take(part, bytes)?;
        self.watched.rows(&rows, self.ends);
        Ok(())
    }

    fn started(&mut self, at: Instant) {
        self.start = Some(at);
        self.setup.live.set_started(at);
    }

    fn counts(&mut self, all: &Counts) {
        let now = self.setup.deployment.clock.now();
        let elapsed = self.start.map_or(Duration::ZERO, |start| now.saturating_since(start));
        let load = &self.setup.plan.load;
        let phase = match elapsed {
            _ if elapsed < load.warmup => Phase::Warmup,
            _ if elapsed < load.warmup + load.duration => Phase::Measure,
            _ => Phase::Drain,
        };
        let some = |ns: i64| (ns > 0).then_some(ns);
        self.setup.live.show(&LiveSnapshot {
            phase,
            elapsed,
            offered: all.offered,
            sent: all.sent,
            committed: all.committed,
            failed: all.failed,
            outstanding: all.outstanding,
            backlog: all.backlog,
            own_lag_p99_ns: some(all.own_lag_p99_ns),
            latency_p50_ns: some(all.latency_p50_ns),
            latency_p99_ns: some(all.latency_p99_ns),
        });
    }

    fn say(&mut self, words: &str) {
        say!("assay: {words}");
    }

    fn stopped(&self) -> Option<bool> {
        let control = &self.setup.control;
        control.is_stopped().then(|| control.is_quit())
    }
}

/// Agents on this machine with a server of their own, which end when this process does, however it ends; so does their
/// folder, in which the server's token stands.
struct Local {
    bed: Testbed,
    /// The last to go: no agent writes any more.
    folder: PassingFolder,
}

impl Local {
    fn start(
        count: u32,
        here: &std::path::Path,
        stop: Arc<AtomicBool>,
    ) -> Result<(Self, Server), String> {
        let program = install::find(PROGRAM).ok_or_else(|| {
            format!("--agents {count}: expected {PROGRAM}, found none; run: assay doctor --install {PROGRAM}")
        })?;
        let words = |error: testbed::TestbedError| error.to_string();
        let failed = |attempt: &str, error: std::io::Error| format!("{attempt}: {error}");
        let folder = std::env::temp_dir().join(format!("assay-agents-{}", std::process::id()));
        let folder = PassingFolder::make(&folder)
            .map_err(|error| failed("making a folder for agents", error))?;
        let bed = Testbed::new(folder.path(), Clock::start());
        let mut local = Self { bed, folder };
        local.bed.stop_on(stop);
        let mut random = [0; 16];
        std::fs::File::open("/dev/urandom")
            .and_then(|mut source| source.read_exact(&mut random))
            .map_err(|error| failed("making a token", error))?;
        let token: String = random.iter().map(|byte: &u8| format!("{byte:02x}")).collect();
        model::secret::taint(&token);
        let port = testbed::free_port().map_err(words)?;
        let path = local.folder.path().join("nats.conf");
        let text =
            format!("listen: \"127.0.0.1:{port}\"\nauthorization {{ token: \"{token}\" }}\n");
        std::fs::write(&path, text).map_err(|error| failed("configuring NATS", error))?;
        let path = path.display().to_string();
        local
            .bed
            .spawn(NodeSpec::new("nats", program).args(["--config", path.as_str()]))
            .map_err(words)?;
        let listens = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        local.bed.wait_ready("nats", listens, UP_WITHIN).map_err(words)?;
        let url = format!("nats://127.0.0.1:{port}");
        let own = std::env::current_exe().map_err(|error| failed("finding this program", error))?;
        let spool = local.folder.path().display().to_string();
        // They are this program, of this user, and read the load's secrets as it does.
        let all: Vec<String> =
            std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
        for number in 0..count {
            let arguments = ["agent", "--nats", &url, "--group", GROUP, "--spool", &spool];
            let spec = NodeSpec::new(format!("agent-{number}"), &own).args(arguments);
            let spec = spec.pass(all.clone()).env(TOKEN, &token).cwd(here);
            local.bed.spawn(spec).map_err(words)?;
        }
        let credentials = Credentials { token: Some(token), ..Credentials::default() };
        let server = Server::new(&url, None, credentials).map_err(|error| error.to_string())?;
        Ok((local, server))
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let _ = self.bed.stop_all(STOP_GRACE);
    }
}

#[cfg(test)]
mod tests {
    use model::NO_STAMP;
    use model::STAGES_MAX;
    use record::RunFolder;

    use super::*;

    /// Claim: a piece whose stamps no trial can have, or that holds no rows at all, is its agent's mistake and not the disk's,
    /// is said with its transaction, and counts for nothing; the other part goes on.
    #[test]
    fn rows_that_no_trial_can_have() {
        let place = tempfile::tempdir().unwrap();
        let trial = RunFolder::open(place.path()).unwrap().trial("part", 0).unwrap();
        let piece = |row: &Row| {
            let other = tempfile::tempdir().unwrap();
            let trial = RunFolder::open(other.path()).unwrap().trial("part", 0).unwrap();
            let mut log = trial.row_log().unwrap();
            log.append(&[*row]).unwrap();
            log.close().unwrap();
            std::fs::read(trial.row_log_path()).unwrap()
        };
        let sound = Row { tx: 7, due: 1, ready: 1, sent: 2, end: 5, ..Row::EMPTY };
        let far = 9_000_000_000_000_000_000;
        let mut answered = Row { due: -far, ready: -far, sent: -far, end: far, ..sound };
        answered.marks = [far; STAGES_MAX];
        let never = Row { due: NO_STAMP, ..sound };
        let late_read = Row { receive_lag: far, ..sound };
        let unready = Row { ready: NO_STAMP, ..sound };
        let pieces = [answered, never, late_read, unready].map(|row| piece(&row));
        for (number, wrong) in (0..).zip(pieces.iter().map(Vec::as_slice).chain([&b"no rows"[..]]))
        {
            let logs = [2 * number, 2 * number + 1].map(|part| trial.part_log(part).unwrap());
            let mut parts = Parts::new(logs.into());
            match parts.take(0, wrong) {
                Err(Untaken::Wrong(why)) if wrong == b"no rows" => {
                    assert!(why.contains("cannot be used"), "{why}");
                }
                Err(Untaken::Wrong(why)) => assert!(why.contains("transaction 7"), "{why}"),
                other => panic!("{other:?}"),
            }
            assert_eq!(parts.take(1, &piece(&sound)).unwrap(), [sound]);
            assert_eq!((parts.rows, parts.taken), (vec![0, 1], vec![0, 1]));
        }
    }

    /// Claim: the largest counts and steps that an agent can name add up without an overflow.
    #[test]
    fn facts_at_their_bounds() {
        let part =
            LoadFacts { drain_left: u64::MAX, wall_step_ns: i64::MIN, ..LoadFacts::default() };
        let mut all = LoadFacts::default();
        add(&mut all, "a", &part);
        add(&mut all, "b", &part);
        assert_eq!((all.drain_left, all.wall_step_ns), (u64::MAX, i64::MIN));
    }
}
