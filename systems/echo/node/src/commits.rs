//! What happens when a transaction is committed: it is stored, and it is told, in one of three ways. Lies about
//! either are carried out here. It never decides which transaction is lied about.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use clock::Instant;
use process::{Connection, Outputs};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use crate::confession::Confession;
use crate::events::{Events, Stage};
use crate::faults::{Lie, Struck};
use crate::ledger::{Ledger, Record};
use crate::options::{CommitWay, Options};
use crate::protocol::{Answer, Code, write_answer};
use crate::registers::Key;

/// Set in the id of an entry that nobody submitted: no load has so many transactions.
pub(crate) const INVENTED: u64 = 1 << 62;

/// A reordered entry stays out at least this long, so that whatever was sent after its acknowledgement can
/// have been acknowledged too, at any rate.
const REORDERED_FOR_AT_LEAST: Duration = Duration::from_millis(100);

/// The most subscriptions: each commit looks at all of them.
const OBSERVERS_MAX: usize = 1024;

/// Commits that wait to be asked about; the oldest is forgotten first.
const UNASKED_MAX: usize = 1 << 20;

/// A transaction that was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commit {
    pub(crate) record: Record,
    /// Where it writes to.
    pub(crate) key: Key,
    pub(crate) struck: Struck,
    pub(crate) received: Instant,
    pub(crate) started: Instant,
    pub(crate) served: Instant,
}

/// The ledger, and those who want to know.
pub(crate) struct Commits {
    way: CommitWay,
    stages: u8,
    reorder_by: u64,
    pub(crate) ledger: Ledger,
    pub(crate) confession: Confession,
    pub(crate) events: Events,
    observers: Vec<(Connection, u64)>,
    unasked: HashSet<(u64, u64)>,
    unasked_order: VecDeque<(u64, u64)>,
    held: Vec<Held>,
    /// What a stall of storing holds back, in order, until when.
    stalled: VecDeque<(Record, Instant)>,
    stalled_until: Instant,
    stored: u64,
    noise: SplitMix64,
}

/// An entry that is stored later than its turn.
struct Held {
    record: Record,
    started: Instant,
    behind: u64,
    not_before: Instant,
}

impl Commits {
    pub(crate) fn new(
        options: &Options,
        ledger: Ledger,
        confession: Confession,
        events: Events,
    ) -> Self {
        Self {
            way: options.commit,
            stages: options.stages,
            reorder_by: options.faults.reorder_by,
            ledger,
            confession,
            events,
            observers: Vec::new(),
            unasked: HashSet::new(),
            unasked_order: VecDeque::new(),
            held: Vec::new(),
            stalled: VecDeque::new(),
            stalled_until: Instant::ZERO,
            stored: 0,
            noise: SplitMix64::seed_from_u64(options.seed ^ 0x6e6f_6973),
        }
    }

    /// Notes an observer; false if there are too many.
    pub(crate) fn subscribe(&mut self, connection: Connection, run: u64) -> bool {
        if self.observers.contains(&(connection, run)) {
            return true;
        }
        let has_room = self.observers.len() < OBSERVERS_MAX;
        if has_room {
            self.observers.push((connection, run));
        }
        has_room
    }

    pub(crate) fn forget(&mut self, connection: Connection) {
        self.observers.retain(|(observer, _)| *observer != connection);
    }

    /// Stores a commit, or lies about it. Until `thaw` nothing is stored.
    pub(crate) fn store(&mut self, now: Instant, thaw: Instant, commit: &Commit) {
        let Commit { mut record, struck, received, started, .. } = *commit;
        self.stored += 1;
        self.events.stamp(Stage::Started, record.tx, received, started);
        for lie in [Lie::Alter, Lie::Void].into_iter().filter(|lie| struck.by(*lie)) {
            self.confess(lie, record.tx);
            match lie {
                Lie::Alter => record.submit_crc ^= 1,
                _ => record.is_refused = true,
            }
        }
        // What a stall held back comes first.
        self.release_stalled(now);
        if thaw > now && !struck.by(Lie::Lose) && !struck.by(Lie::Reorder) {
            self.stalled.push_back((record, started));
            self.stalled_until = thaw;
            return;
        }
        if struck.is_none() && self.held.is_empty() {
            self.push(now, started, &record);
            return;
        }
        if struck.by(Lie::Lose) {
            self.confess(Lie::Lose, record.tx);
        } else if struck.by(Lie::Reorder) {
            self.confess(Lie::Reorder, record.tx);
            self.held.push(Held {
                record,
                started,
                behind: self.stored + self.reorder_by,
                not_before: now.plus(REORDERED_FOR_AT_LEAST),
            });
        } else {
            self.push(now, started, &record);
            if struck.by(Lie::Repeat) {
                self.confess(Lie::Repeat, record.tx);
                self.ledger.push(&record);
            }
        }
        if struck.by(Lie::Invent) {
            let invented = Record { tx: record.tx | INVENTED, ..record };
            self.confess(Lie::Invent, invented.tx);
            self.ledger.push(&invented);
        }
        let stored = self.stored;
        self.release(now, |held| held.behind <= stored && held.not_before <= now);
    }

    /// Stores what a stall held back, once it is over.
    pub(crate) fn release_stalled(&mut self, now: Instant) {
        if self.stalled_until <= now {
            while let Some((record, started)) = self.stalled.pop_front() {
                self.push(now, started, &record);
            }
        }
    }

    fn push(&mut self, now: Instant, started: Instant, record: &Record) {
        self.ledger.push(record);
        self.events.stamp(Stage::Stored, record.tx, started, now);
    }

    /// When what a stall holds back can be stored.
    pub(crate) fn stalled_until(&self) -> Option<Instant> {
        (!self.stalled.is_empty()).then_some(self.stalled_until)
    }

    /// Answers a commit that is not late, or lies about that.
    pub(crate) fn answer(
        &mut self,
        now: Instant,
        connection: Connection,
        commit: &Commit,
        out: &mut Outputs,
    ) {
        let (struck, tx) = (commit.struck, commit.record.tx);
        if struck.by(Lie::Drop) {
            self.confess(Lie::Drop, tx);
        } else if struck.by(Lie::Close) {
            self.confess(Lie::Close, tx);
            out.close(connection);
        } else if struck.by(Lie::Garbage) {
            self.confess(Lie::Garbage, tx);
            self.garbage(out.send(connection));
        } else {
            if struck.by(Lie::Unordered) && self.stages == 3 {
                self.confess(Lie::Unordered, tx);
                write_answer(out.send(connection), Answer { code: Code::Accepted, wait_ms: 0, tx });
            }
            self.tell(now, connection, commit, out);
            if struck.by(Lie::Twice) {
                self.confess(Lie::Twice, tx);
                self.tell(now, connection, commit, out);
            }
        }
        if struck.by(Lie::Unordered) && self.stages == 2 {
            self.confess(Lie::Unordered, tx);
            write_answer(out.send(connection), Answer { code: Code::Accepted, wait_ms: 0, tx });
        }
    }

    /// Tells whoever is to know.
    pub(crate) fn tell(
        &mut self,
        now: Instant,
        connection: Connection,
        commit: &Commit,
        out: &mut Outputs,
    ) {
        let Record { run, tx, .. } = commit.record;
        let answer = Answer { code: Code::Committed, wait_ms: 0, tx };
        self.events.stamp(Stage::Answered, tx, commit.served, now);
        match self.way {
            CommitWay::Answer => write_answer(out.send(connection), answer),
            CommitWay::Observer => {
                for (observer, _) in self.observers.iter().filter(|(_, wanted)| *wanted == run) {
                    write_answer(out.send(*observer), answer);
                }
            }
            CommitWay::Poll => {
                self.unasked.insert((run, tx));
                self.unasked_order.push_back((run, tx));
                if self.unasked_order.len() > UNASKED_MAX
                    && let Some(oldest) = self.unasked_order.pop_front()
                {
                    self.unasked.remove(&oldest);
                }
            }
        }
    }

    /// Answers those that are committed.
    pub(crate) fn status(
        &mut self,
        connection: Connection,
        run: u64,
        ids: impl Iterator<Item = u64>,
        out: &mut Outputs,
    ) {
        for tx in ids {
            if self.unasked.remove(&(run, tx)) {
                let answer = Answer { code: Code::Committed, wait_ms: 0, tx };
                write_answer(out.send(connection), answer);
            }
        }
    }

    /// Stores everything that is held or buffered.
    pub(crate) fn sync(&mut self, now: Instant) {
        self.stalled_until = Instant::ZERO;
        self.release_stalled(now);
        self.release(now, |_| true);
        self.flush();
    }

    /// Writes what is buffered.
    pub(crate) fn flush(&mut self) {
        self.ledger.flush();
        self.confession.flush();
        self.events.flush();
    }

    /// Has everything on the disk before anything more is said.
    pub(crate) fn sync_to_disk(&mut self) {
        self.ledger.sync_to_disk();
    }

    pub(crate) fn confess(&mut self, lie: Lie, tx: u64) {
        self.confession.add(lie.word(), tx);
    }

    /// Bytes of no protocol: neither a frame of a length that anybody takes, nor a line of text.
    pub(crate) fn garbage(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0xff, 0xfe, 0xfd, 0xff]);
        out.extend_from_slice(&self.noise.next_u64().to_le_bytes());
        out.extend_from_slice(b"\n\n");
    }

    fn release(&mut self, now: Instant, is_due: impl Fn(&Held) -> bool) {
        if self.held.is_empty() {
            return;
        }
        for held in self.held.extract_if(.., |held| is_due(held)) {
            self.ledger.push(&held.record);
            self.events.stamp(Stage::Stored, held.record.tx, held.started, now);
        }
    }
}
