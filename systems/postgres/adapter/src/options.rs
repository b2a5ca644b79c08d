//! `[system.deploy]` and `[workload]`: what an experiment can ask for.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use isolation::checks::promised;
use isolation::workload::{BANK, Bank, LIST_APPEND, Lists};
use model::Seed;
use model::options::{Options, Problems, Section};
use sut::{Request, System};

use crate::cluster::Cluster;
use crate::control::Login;
use crate::statements::{Sort, Tables};

/// The largest content of an entry: a transaction of this instrument is no file.
const CONTENT_BYTES_MAX: u64 = 1 << 20;

/// Outstanding on a connection unless said otherwise. A backend deals with one after another.
const IN_FLIGHT_MAX: u64 = 16;

/// Who a trial is to its own server, and which database it has there.
const LOGIN: &str = "assay";
const DATABASE: &str = "postgres";

/// The words of `default_transaction_isolation`.
const LEVELS: [&str; 3] = ["read committed", "repeatable read", "serializable"];

/// A PostgreSQL server as an experiment wants it.
pub(crate) struct Postgres {
    pub(crate) cluster: Cluster,
    pub(crate) attach: Option<SocketAddr>,
    pub(crate) login: Login,
    /// Of every transaction.
    pub(crate) isolation: &'static str,
    pub(crate) in_flight_max: u32,
    /// The work of transactions; `workload` is what it was read from, and is read again once the seed is known.
    pub(crate) sort: Sort,
    pub(crate) workload: Options,
    pub(crate) content_bytes: usize,
    pub(crate) tables: Tables,
}

/// Reads both tables.
pub(crate) fn build(request: &Request<'_>, problems: &mut Problems) -> Option<Box<dyn System>> {
    let before = problems.list.len();
    let mut deploy = Section::open(request.deploy, "system.deploy", problems);
    let attach = deploy.address("attach", "127.0.0.1:5432", problems);
    let bin = deploy.string("bin", problems).map(|path| request.folder.join(path));
    let account = deploy.string("user", problems).map(str::to_owned);
    let checksums = deploy.boolean("data_checksums", problems);
    let settings = settings(&mut deploy, problems);
    let isolation = deploy.one_of("isolation", &LEVELS, problems);
    let in_flight_max = deploy.integer("in_flight_max", 1, 4_096, problems);
    let login = deploy.string("login", problems);
    let database = deploy.string("database", problems);
    let ours = ["bin", "user", "data_checksums", "settings"];
    let message = "a server that runs already has its own settings";
    deploy.reject_beside("attach", &ours, message, problems);
    for key in ["login", "database"] {
        if attach.is_none() && deploy.raw(key).is_some() {
            let message = format!("`system.deploy.{key}` is for a server that is attached to");
            deploy.reject(key, message, Some("remove it".to_owned()), problems);
        }
    }
    deploy.finish(problems);
    let mut workload = Section::open(request.workload, "workload", problems);
    let sort = read_sort(&mut workload, Seed(0), problems);
    let content_bytes = match sort {
        Sort::Append => {
            workload.size_within("payload", 0..=CONTENT_BYTES_MAX, problems).unwrap_or(64)
        }
        Sort::Lists(_) | Sort::Bank(_) => 0,
    };
    workload.finish(problems);
    if problems.list.len() > before {
        return None;
    }
    let connections = request.load.map_or(1, |load| load.connections_max.max(load.connections));
    let text = |word: Option<&str>, default: &str| word.unwrap_or(default).to_owned();
    Some(Box::new(Postgres {
        cluster: Cluster { bin, account, checksums, settings, connections },
        attach,
        login: Login { user: text(login, LOGIN), database: text(database, DATABASE) },
        isolation: isolation.unwrap_or(LEVELS[0]),
        in_flight_max: u32::try_from(in_flight_max.unwrap_or(IN_FLIGHT_MAX)).ok()?,
        sort,
        workload: request.workload.clone(),
        content_bytes: usize::try_from(content_bytes).ok()?,
        tables: Tables { run_mark: request.run_mark },
    }))
}

/// The server's settings by its own names.
fn settings(deploy: &mut Section<'_>, problems: &mut Problems) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let Some(section) = deploy.section("settings", problems) else { return settings };
    for (name, span, value) in section.entries() {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c);
        if name.is_empty() || !name.chars().all(is_name) {
            let message = format!("expected the name of a setting such as fsync, got `{name}`");
            problems.add(span, message, None);
        }
        settings.insert(name.to_owned(), value.label());
    }
    settings
}

/// The work of transactions, and the keys that are that kind's alone.
fn read_sort(workload: &mut Section<'_>, seed: Seed, problems: &mut Problems) -> Sort {
    match workload.one_of("kind", &["append", LIST_APPEND, BANK], problems) {
        Some(LIST_APPEND) => {
            promised(workload, problems);
            Sort::Lists(Lists::read(workload, seed, problems))
        }
        Some(BANK) => Sort::Bank(Bank::read(workload, seed, problems)),
        _ => Sort::Append,
    }
}

/// The work of transactions, of options that have been read before, with their seed.
pub(crate) fn sort(workload: &Options, seed: Seed) -> Option<Sort> {
    let mut problems = Problems::default();
    let mut section = Section::open(workload, "workload", &mut problems);
    let sort = read_sort(&mut section, seed, &mut problems);
    problems.is_empty().then_some(sort)
}
