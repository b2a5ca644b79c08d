//! Batches: several transactions that come in one frame, are served one after another by one server, and are answered
//! in one frame when the last of them has been.

use std::time::Duration;

use clock::Instant;
use process::{Connection, Outputs};

use super::{EchoNode, What};
use crate::commits::Commit;
use crate::events::Stage;
use crate::faults::Lie;
use crate::ledger::Record;
use crate::protocol::{Answer, Batch, Code, write_answer, write_answers};
use crate::registers::Key;

/// A batch on its way to its answer.
#[derive(Default)]
pub(super) struct Served {
    commits: Vec<Commit>,
    /// What is said of those that were not taken, and then of all.
    answers: Vec<Answer>,
}

impl EchoNode {
    /// Takes a batch, or refuses it whole where too many are outstanding on its connection.
    pub(super) fn batch(
        &mut self,
        now: Instant,
        connection: Connection,
        batch: &Batch<'_>,
        out: &mut Outputs,
    ) {
        let mut served = Served::default();
        let (max, line) = (self.options.frames_max, &mut self.lines[connection.index()]);
        let is_taken = max == 0 || line.batches < max;
        line.batches += 1;
        for submit in batch.submissions() {
            self.commits.events.stamp(Stage::Received, submit.tx, now, now);
            let is_valid =
                submit.is_intact && self.options.faults.refused_kind != Some(submit.kind);
            let limited = match (is_valid, is_taken) {
                (false, _) => Err((Code::Invalid, Duration::ZERO)),
                (true, false) => Err((Code::Overloaded, Duration::ZERO)),
                (true, true) => self.limit(now),
            };
            let tx = submit.tx;
            match limited {
                Ok(()) => {
                    let (run, submit_crc) = (submit.run, submit.crc);
                    let record = Record { run, tx, submit_crc, is_refused: false };
                    let key = Key::of(run, submit.payload);
                    let struck = Default::default();
                    let commit =
                        Commit { record, key, struck, received: now, started: now, served: now };
                    served.commits.push(commit);
                }
                Err((code, wait)) => served.refuse(code, wait, tx),
            }
        }
        let (mut departure, mut start) = (self.thaw(now), now);
        if !served.commits.is_empty() {
            match self.admit(now, self.options.per_frame, served.commits.len()) {
                Ok(when) => (departure, start) = (when.departure, when.start),
                Err((code, wait)) => {
                    for commit in std::mem::take(&mut served.commits) {
                        served.refuse(code, wait, commit.record.tx);
                    }
                }
            }
        }
        for commit in &mut served.commits {
            commit.struck = self.liar.strike();
            (commit.started, commit.served) = (start, departure);
        }
        if departure > now {
            self.leave(departure, connection, What::Batch(Box::new(served)));
        } else {
            self.batch_served(now, connection, served, out);
        }
    }

    /// Stores a batch and answers it, or lies about its transactions.
    pub(super) fn batch_served(
        &mut self,
        now: Instant,
        connection: Connection,
        served: Served,
        out: &mut Outputs,
    ) {
        let Served { commits, mut answers } = served;
        let line = &mut self.lines[connection.index()];
        if line.generation == connection.generation() {
            line.batches = line.batches.saturating_sub(1);
        }
        let (mut is_spoilt, mut again) = (false, Vec::new());
        let thaw = self.store_thaw(now);
        for commit in &commits {
            self.served += 1;
            self.commits.store(now, thaw, commit);
            let tx = commit.record.tx;
            let mut by =
                |lie| commit.struck.by(lie).then(|| self.commits.confess(lie, tx)).is_some();
            if by(Lie::Late) {
                let at = now.plus(self.options.faults.late_by);
                self.leave(at, connection, What::Late(*commit));
            } else if by(Lie::Drop) {
            } else if by(Lie::Close) {
                is_spoilt = true;
                out.close(connection);
            } else if by(Lie::Garbage) {
                is_spoilt = true;
                self.commits.garbage(out.send(connection));
            } else {
                let answer = Answer { code: Code::Committed, wait_ms: 0, tx };
                answers.push(answer);
                if by(Lie::Twice) {
                    again.push(answer);
                }
                self.commits.events.stamp(Stage::Answered, tx, commit.served, now);
            }
        }
        if !is_spoilt {
            write_answers(out.send(connection), &answers);
            again.into_iter().for_each(|answer| write_answer(out.send(connection), answer));
        }
    }
}

impl Served {
    fn refuse(&mut self, code: Code, wait: Duration, tx: u64) {
        let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
        self.answers.push(Answer { code, wait_ms, tx });
    }
}
