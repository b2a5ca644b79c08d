//! `[system.deploy]` and `[workload]`: what an experiment can ask for.

use std::net::SocketAddr;
use std::path::PathBuf;

use model::options::{Problems, Section};
use sut::content::payload_bytes;
use sut::{Request, System};

/// The largest value: a transaction of this instrument is no file.
const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// Outstanding on a connection unless said otherwise: the server answers what arrived together with one sync.
const IN_FLIGHT_MAX: u64 = 64;

/// Replicas at most.
const REPLICAS_MAX: u64 = 4;

/// When the server syncs its append-only file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AppendFsync {
    Always,
    EverySecond,
    No,
}

impl AppendFsync {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::EverySecond => "everysec",
            Self::No => "no",
        }
    }
}

/// A Redis server as an experiment wants it.
pub(crate) struct Redis {
    pub(crate) sync: AppendFsync,
    /// Servers beside the primary.
    pub(crate) replicas: u8,
    /// Whether the first replica takes the primary's place before the ledger is read, and is what it is read from.
    pub(crate) promotes: bool,
    pub(crate) program: Program,
    pub(crate) attach: Option<SocketAddr>,
    pub(crate) in_flight_max: u32,
    pub(crate) payload_bytes: usize,
    pub(crate) run_mark: u64,
}

/// Reads both tables.
pub(crate) fn build(request: &Request<'_>, problems: &mut Problems) -> Option<Box<dyn System>> {
    let before = problems.list.len();
    let mut deploy = Section::open(request.deploy, "system.deploy", problems);
    let sync = deploy.one_of("appendfsync", &["always", "everysec", "no"], problems);
    let program = deploy.string("program", problems).map(|path| request.folder.join(path));
    let in_flight_max = deploy.integer("in_flight_max", 1, 65_536, problems);
    let replicas = deploy.integer("replicas", 0, REPLICAS_MAX, problems);
    let promotes = deploy.boolean("promote", problems);
    if promotes == Some(true) && replicas.unwrap_or(0) == 0 {
        let message = "expected a replica to promote, got a server without one".to_owned();
        deploy.reject("promote", message, Some("write replicas = 1".to_owned()), problems);
    }
    let attach = deploy.address("attach", "127.0.0.1:6379", problems);
    let ours = ["appendfsync", "program", "replicas", "promote"];
    let message = "a server that runs already has its own settings";
    deploy.reject_beside("attach", &ours, message, problems);
    deploy.finish(problems);
    let payload_bytes = payload_bytes(request.workload, 0..=PAYLOAD_BYTES_MAX, problems);
    if problems.list.len() > before {
        return None;
    }
    Some(Box::new(Redis {
        sync: match sync {
            Some("no") => AppendFsync::No,
            Some("everysec") => AppendFsync::EverySecond,
            _ => AppendFsync::Always,
        },
        replicas: u8::try_from(replicas.unwrap_or(0)).expect("bounded"),
        promotes: promotes.unwrap_or(false),
        program,
        attach,
        in_flight_max: u32::try_from(in_flight_max.unwrap_or(IN_FLIGHT_MAX)).expect("bounded"),
        payload_bytes,
        run_mark: request.run_mark,
    }))
}

/// The program, if the experiment names one.
pub(crate) type Program = Option<PathBuf>;
