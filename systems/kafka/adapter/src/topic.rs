//! The topic of a trial: made, asked who leads its partition, and read back. With several brokers it is read
//! from another one than the leader: what all in sync have acknowledged, another one of them has to have.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clock::Clock;
use model::TxId;
use model::facts::LedgerEntry;
use sut::{Deployment, Ledger, SutError};

use crate::brokers::{Place, READY_WITHIN};
use crate::control::Control;
use crate::messages::{self, Cluster, TOPIC_EXISTS, UNKNOWN_TOPIC};
use crate::records;
use crate::workload::told;

/// How long a topic must be missing until it is believed to be gone: a broker that starts knows none at first.
const MISSING_FOR: Duration = Duration::from_secs(10);

/// How often the brokers are asked meanwhile.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// Answers without a record after the leader's end of the partition, each after a wait.
const QUIET_ENOUGH: u32 = 4;

/// Answers without a record before that end: the end that a follower gives to consumers moves with what the leader tells it,
/// which on a busy machine takes its time.
const QUIET_MAX: u32 = 150;

/// The topic of a trial.
pub(crate) fn name(run_mark: u64) -> String {
    format!("assay-{run_mark:016x}")
}

/// The answer of any broker that answers.
fn cluster(places: &[Place], topic: &str, clock: Clock) -> io::Result<Cluster> {
    let mut last = io::Error::other("there is no broker");
    for place in places {
        match Control::open(place.address, clock).and_then(|mut it| it.cluster(topic)) {
            Ok(cluster) => return Ok(cluster),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The broker with a number, among those that a trial may speak to.
fn place_of(places: &[Place], cluster: &Cluster, number: i32) -> Result<usize, String> {
    let known = |place: &Place| match place.number {
        Some(own) => own == number,
        // One that runs already is known by where it says that it is.
        None => cluster.brokers.iter().any(|(other, host, port)| {
            *other == number && format!("{host}:{port}") == place.address.to_string()
        }),
    };
    places.iter().position(known).ok_or_else(|| {
        format!("expected broker {number}, which the partition needs, among system.deploy.attach, got none that advertises its address")
    })
}

/// Makes the topic, once the brokers can. Gives the place of the partition's leader.
pub(crate) fn make(places: &[Place], run_mark: u64, clock: Clock) -> Result<usize, SutError> {
    let topic = name(run_mark);
    let replicas = i16::try_from(places.len()).expect("few brokers");
    // Where the brokers are the trial's own, the first is the leader, so that a fault that names it meets the leader.
    let numbers: Option<Vec<i32>> = places.iter().map(|place| place.number).collect();
    let numbers = numbers.unwrap_or_default();
    let deadline = clock.now().plus(READY_WITHIN);
    let attempt = || -> io::Result<Result<usize, String>> {
        let mut control = Control::open(places[0].address, clock)?;
        let (code, words) = control.create_topic(&topic, replicas, &numbers)?;
        if code != 0 && code != TOPIC_EXISTS {
            return Ok(Err(format!("{} {words}", messages::words(code))));
        }
        let cluster = control.cluster(&topic)?;
        if cluster.leader < 0 || cluster.in_sync.len() < places.len() {
            return Ok(Err("its partition has no leader or not all replicas".to_owned()));
        }
        // A broker that has just started gives none at first, and connections may go to any of them.
        for place in places {
            let code = Control::open(place.address, clock)?.producer_id()?;
            if code != 0 {
                return Ok(Err(format!("a producer's number: {}", messages::words(code))));
            }
        }
        Ok(place_of(places, &cluster, cluster.leader))
    };
    loop {
        let why = match attempt() {
            Ok(Ok(leader)) => return Ok(leader),
            Ok(Err(why)) => why,
            Err(error) => error.to_string(),
        };
        if clock.now() >= deadline {
            return Err(SutError::Deploy(format!("the topic could not be made: {why}")));
        }
        clock.sleep_until(clock.now().plus(ASK_EVERY));
    }
}

/// Removes it.
pub(crate) fn remove(places: &[Place], run_mark: u64, clock: Clock) {
    for place in places {
        // An error has no taker here: what is left carries the trial's mark in its name.
        let topic = name(run_mark);
        let asked = Control::open(place.address, clock);
        if asked.and_then(|mut it| it.delete_topic(&topic)).is_ok() {
            return;
        }
    }
}

/// The partition, to be read from its beginning; it waits for brokers that recover, as long as they get on.
pub(crate) fn read(places: &[Place], run_mark: u64, of: &Deployment) -> Result<Consumer, SutError> {
    let topic = name(run_mark);
    let (mut moved, mut before, mut missing_since) = (of.clock.now(), None, None);
    loop {
        let now = of.clock.now();
        let cluster = cluster(places, &topic, of.clock);
        let is_missing = matches!(cluster, Ok(Cluster { code: UNKNOWN_TOPIC, .. }));
        missing_since = is_missing.then(|| missing_since.unwrap_or(now));
        if missing_since.is_some_and(|since| now >= since.plus(MISSING_FOR)) {
            return Ok(Consumer::of_nothing(run_mark));
        }
        // Another leader or another replica in sync is progress: a busy machine is given more time.
        let found = cluster.as_ref().ok().map(|it| (it.leader, it.in_sync.len()));
        if found != before {
            (moved, before) = (now, found);
        }
        let why = match cluster {
            Ok(_) if is_missing => "no broker knows the topic".to_owned(),
            // Until all are in sync, what the leader has of what it acknowledged is not given to consumers.
            Ok(cluster) if cluster.leader >= 0 && cluster.in_sync.len() >= places.len() => {
                match from(places, run_mark, &cluster, of.clock) {
                    Ok(consumer) => return Ok(consumer),
                    Err(why) => why,
                }
            }
            Ok(cluster) => format!(
                "the partition has {} of {} replicas in sync, and its leader is {}",
                cluster.in_sync.len(),
                places.len(),
                cluster.leader
            ),
            Err(error) => error.to_string(),
        };
        if now >= moved.plus(READY_WITHIN) || of.stop.load(Ordering::Relaxed) {
            return Err(SutError::Ledger(format!(
                "{why}; a fault that takes brokers down has to end before the load does"
            )));
        }
        of.clock.sleep_until(now.plus(ASK_EVERY));
    }
}

/// A consumer at another replica than the leader, or at the leader where there is no other, up to the end that the leader
/// knows.
fn from(
    places: &[Place],
    run_mark: u64,
    cluster: &Cluster,
    clock: Clock,
) -> Result<Consumer, String> {
    let follower = cluster.in_sync.iter().find(|number| **number != cluster.leader);
    let at = *follower.unwrap_or(&cluster.leader);
    let place = &places[place_of(places, cluster, at)?];
    let leading = &places[place_of(places, cluster, cluster.leader)?];
    let asked = Control::open(leading.address, clock);
    let asked = asked.and_then(|mut leader| leader.end(&name(run_mark)));
    let (code, end) = asked.map_err(|error| error.to_string())?;
    if code != 0 {
        return Err(format!("the partition's end, asked of its leader: {}", messages::words(code)));
    }
    let control = Control::open(place.address, clock).map_err(|error| error.to_string())?;
    Ok(Consumer {
        control: Some(control),
        run_mark,
        topic: name(run_mark),
        at,
        leader: cluster.leader,
        end,
        next: 0,
        quiet: 0,
        held: VecDeque::new(),
    })
}

/// The partition being read.
pub(crate) struct Consumer {
    /// Absent: there is no topic any more.
    control: Option<Control>,
    run_mark: u64,
    topic: String,
    /// The number of the broker that is asked, and of the leader.
    at: i32,
    leader: i32,
    /// The leader's end of the partition when reading began.
    end: i64,
    /// The next offset.
    next: i64,
    /// Answers without a record since the last one with some.
    quiet: u32,
    held: VecDeque<LedgerEntry>,
}

impl Consumer {
    fn of_nothing(run_mark: u64) -> Self {
        Self {
            control: None,
            run_mark,
            topic: String::new(),
            at: -1,
            leader: -1,
            end: 0,
            next: 0,
            quiet: 0,
            held: VecDeque::new(),
        }
    }

    /// Asks for more records.
    fn more(&mut self) -> io::Result<()> {
        let Self { control: Some(control), run_mark, topic, next, quiet, held, .. } = self else {
            return Ok(());
        };
        let (from, mut last) = (*next, 0);
        let code = control.fetch(topic, from, |end, batches| {
            let after = records::read(batches, |record| {
                // A batch is given whole, also where it was asked for from its middle.
                if record.offset < from {
                    return;
                }
                let (tx, is_right) = told(*run_mark, record.value).unwrap_or((TxId::MAX, false));
                let position = u64::try_from(record.offset).expect("read as positive");
                held.push_back(LedgerEntry::new(position, tx, is_right && record.is_whole));
            })?;
            *next = after.unwrap_or(from).max(from);
            last = end;
            Ok(())
        })?;
        if code != 0 {
            return Err(io::Error::other(messages::words(code)));
        }
        if *next > from {
            *quiet = 0;
            return Ok(());
        }
        if last > from {
            return Err(io::Error::other(format!("no record, and {last} is the end")));
        }
        *quiet += 1;
        Ok(())
    }
}

impl Ledger for Consumer {
    fn next(&mut self, _: &mut Vec<u8>) -> Result<Option<LedgerEntry>, SutError> {
        while self.held.is_empty() {
            let is_whole = self.next >= self.end;
            if self.control.is_none() || (is_whole && self.quiet >= QUIET_ENOUGH) {
                return Ok(None);
            }
            if self.quiet >= QUIET_MAX {
                let Self { at, next, leader, end, .. } = self;
                return Err(SutError::Ledger(format!(
                    "expected records up to offset {end}, which broker {leader} leads, got none after {next} at broker {at}"
                )));
            }
            self.more().map_err(|error| {
                let (next, at) = (self.next, self.at);
                SutError::Ledger(format!("reading offset {next} at broker {at}: {error}"))
            })?;
        }
        Ok(self.held.pop_front())
    }

    fn way(&self) -> String {
        match (self.topic.as_str(), self.at == self.leader) {
            ("", _) => "no broker knew the topic any more".to_owned(),
            (_, true) => "a consumer from offset 0 on, over a fresh connection".to_owned(),
            (_, false) => format!(
                "a consumer at broker {} from offset 0 on; broker {} leads",
                self.at, self.leader
            ),
        }
    }
}
