//! Entries of the log: made of what waits, carried out when they are decided.

use clock::Instant;
use process::Outputs;
use replicated::{Refusal, Request};

use super::submissions::Asked;
use super::{ANSWERS_BYTES_MAX, ANSWERS_OF_STEP_BYTES_MAX, Event, KvNode, SMALL_ANSWER_BYTES};
use crate::database::group::Group;
use crate::database::snapshot::{CHUNK_BYTES_MAX, SnapshotReader};
use crate::database::transaction::{Malformed, Reader};
use crate::database::{Applied, Database, LOOKED_AHEAD, Limits};
use crate::protocol::{Reads, Why, write_refused, write_results};

impl KvNode {
    /// Does what the order says. At the end of a turn it proposes what waits as far as the log takes it: so what has arrived
    /// together is one entry, on however many connections it came.
    pub(super) fn follow(&mut self, now: Instant, is_turn_end: bool, out: &mut Outputs) {
        loop {
            while let Some(event) = self.order.next_event() {
                self.event(event, out);
            }
            if !is_turn_end || !self.propose(now, out) {
                break;
            }
        }
        if !is_turn_end && self.submissions.next_bytes().is_some() {
            out.at_turn_end();
        }
    }

    /// Makes an entry of all that waits; `false`: nothing does, or no more can be proposed now.
    fn propose(&mut self, now: Instant, out: &mut Outputs) -> bool {
        let Some(bytes) = self.submissions.next_bytes() else { return false };
        if !self.order.leads() {
            let leader = self.leader();
            for asked in self.submissions.give_up_waiting() {
                write_refused(out.send(asked.connection), asked.number, Why::NotLeader, leader);
            }
            return false;
        }
        if !self.order.can_propose(bytes) {
            return false;
        }
        let order = &mut self.order;
        self.submissions.propose(|id, entry| order.propose(now, id, entry, out));
        true
    }

    fn event(&mut self, event: Event, out: &mut Outputs) {
        match event {
            Event::Apply { value, proposal, .. } => {
                let asked = proposal.and_then(|id| self.submissions.take(id)).unwrap_or_default();
                self.deliver(&value, &asked, out);
                self.submissions.recycle(asked);
            }
            Event::Read { id } => {
                if let Some(asked) = self.take_asked_read(id) {
                    let reads = Reads::again(asked.count, &asked.bytes);
                    self.carry_out_read(asked.connection, asked.number, reads, out);
                }
            }
            Event::MakeSnapshot => {
                self.counts.snapshots_made += 1;
                self.ledger.flush();
                self.database.freeze();
                self.snapshot_through = self.order.applied();
                self.write_snapshot(out);
            }
            Event::MoreSnapshot => self.write_snapshot(out),
            Event::InstallPart { offset, bytes } => self.take_part(offset, &bytes),
            Event::Install { .. } => {
                self.counts.snapshots_installed += 1;
                let whole = self.installing.take().and_then(|reader| reader.finish().ok());
                self.database = whole.expect("it is as another replica made it");
            }
            Event::Refused { request, why } => self.refused(request, why, out),
            Event::Leader(leader) => self.led_by(leader, out),
        }
    }

    fn refused(&mut self, request: Request, why: Refusal, out: &mut Outputs) {
        let leader = self.leader();
        let why = match why {
            Refusal::NotLeader { .. } => Why::NotLeader,
            _ => Why::Busy,
        };
        match request {
            Request::Propose(id) => {
                for asked in self.submissions.take(id).unwrap_or_default() {
                    write_refused(out.send(asked.connection), asked.number, why, leader);
                }
            }
            Request::Read(id) => {
                if let Some(asked) = self.take_asked_read(id) {
                    write_refused(out.send(asked.connection), asked.number, why, leader);
                }
            }
            Request::ChangeMembers(_) => {}
        }
    }

    /// Another replica leads, or nobody does: what was proposed here may be decided or not, and nobody here will know. The
    /// connections end, which says just that.
    fn led_by(&mut self, leader: Option<u8>, out: &mut Outputs) {
        if leader == Some(self.replica) {
            self.counts.led += 1;
            return;
        }
        for asked in self.submissions.give_up_proposed() {
            out.close(asked.connection);
        }
    }

    /// Carries out an entry of the log; `asked` are who waits for its groups, if they asked here.
    fn deliver(&mut self, entry: &[u8], asked: &[Asked], out: &mut Outputs) {
        self.counts.entries += 1;
        let mut reader = Reader(entry);
        let mut asked = asked.iter();
        while let Ok(bytes) = reader.long() {
            let group = Group::read(bytes).expect("it was read before it was proposed");
            let mut requests = group.requests();
            let (mut ahead, mut looked_ahead) = (group.requests(), 0);
            let mut apply = |node: &mut Self, out: &mut Vec<u8>| {
                if looked_ahead == 0 {
                    looked_ahead = LOOKED_AHEAD;
                    node.database.look_ahead(ahead.by_ref().take(LOOKED_AHEAD));
                }
                looked_ahead -= 1;
                let request = requests.next().expect("as many as were counted");
                let (client, sequence) = (request.client, request.sequence);
                let database = &mut node.database;
                let applied =
                    database.apply(group.since, client, sequence, request.transaction, out);
                if let Applied::Executed(status) = applied {
                    node.ledger.push(database.position(), &request, status as u8);
                }
            };
            let mut scratch = std::mem::take(&mut self.scratch);
            let mut is_cut_off = false;
            if let Some(asked) = asked.next() {
                let unused = ANSWERS_BYTES_MAX.saturating_sub(out.unsent(asked.connection));
                let room = unused
                    .min(ANSWERS_OF_STEP_BYTES_MAX.saturating_sub(self.answered_bytes))
                    .max(SMALL_ANSWER_BYTES.min(unused));
                let answers = out.send(asked.connection);
                let start = answers.len();
                write_results(answers, asked.number, group.count(), |out| {
                    is_cut_off |= out.len() - start > room;
                    if is_cut_off {
                        scratch.clear();
                        apply(self, &mut scratch);
                    } else {
                        apply(self, out);
                    }
                });
                if is_cut_off {
                    // It does not take its answers, or asked for more than can wait: it will have to ask again for what
                    // became of these.
                    answers.truncate(start);
                    self.counts.cut_off += 1;
                    out.close(asked.connection);
                } else {
                    self.answered_bytes += answers.len() - start;
                }
            } else {
                for _ in 0..group.count() {
                    scratch.clear();
                    apply(self, &mut scratch);
                }
            }
            self.scratch = scratch;
        }
    }
}

impl KvNode {
    /// The next part of a snapshot: a chunk, so that what clients ask for between two waits for no more than that.
    fn write_snapshot(&mut self, out: &mut Outputs) {
        if !self.database.is_frozen() {
            return;
        }
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.clear();
        let has_more = self.database.next_chunk(&mut chunk);
        if !self.order.snapshot(self.snapshot_through, &chunk, !has_more, out) {
            self.database.thaw();
        }
        // One chunk with a long value is no reason to keep so much.
        if chunk.capacity() <= 2 * CHUNK_BYTES_MAX {
            self.chunk = chunk;
        }
    }

    /// A part of another replica's snapshot: it is read as it comes, beside what is held, which is let go once it is whole.
    fn take_part(&mut self, offset: u64, bytes: &[u8]) {
        if offset == 0 {
            self.database.thaw();
            self.installing = Some(Box::new(SnapshotReader::new(self.database.limits())));
        }
        if let Some(reader) = &mut self.installing {
            reader.take(bytes).expect("it is as another replica made it");
        }
    }
}

/// The database that a snapshot was made of.
pub(super) fn read_snapshot(limits: Limits, bytes: &[u8]) -> Result<Database, Malformed> {
    let mut reader = SnapshotReader::new(limits);
    reader.take(bytes)?;
    reader.finish()
}
