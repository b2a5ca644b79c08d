//! What comes on connections.

use clock::Instant;
use process::{Connection, Outputs};

use super::{Atomizer, BLOCKS_LISTENER, CLIENTS_LISTENER, Counts, Rung};
use crate::intake::Taken;
use crate::machine::Broken;
use crate::protocol::errors::{Error, Why};
use crate::protocol::request::{Notification, Request, read_request};
use crate::protocol::{Hash, Malformed, REQUEST_BYTES_MAX, next_frame};
use crate::stamps::Stage;

impl Atomizer {
    pub(super) fn read_frames(
        &mut self,
        now: Instant,
        connection: Connection,
        bytes: &[u8],
        out: &mut Outputs,
    ) {
        let since_ns = self.now_ns();
        let before = self.counts;
        let read: Result<(), Option<Malformed>> = out.read_pieces(bytes, |rest, out| {
            let next = next_frame(rest, REQUEST_BYTES_MAX).map_err(Some)?;
            let Some(frame) = next else { return Ok(None) };
            match read_request(frame.payload).map_err(Some)? {
                Request::Notify(_) if !self.order.leads() => {
                    self.counts.misled += 1;
                    if !self.options.is_silent {
                        // It goes where the standing says: what it has sent here is not done.
                        self.say_standing(connection, out);
                        return Err(None);
                    }
                }
                Request::Notify(it) => self.notify(now, since_ns, &it),
                request => self.request(connection, request, out).map_err(Some)?,
            }
            Ok(Some(frame.used))
        });
        if let Err(why) = read {
            why.into_iter().for_each(|why| self.counts.refusals.count(why));
            self.hang_up(connection, out);
        }
        self.received(since_ns, before);
    }

    fn hang_up(&mut self, connection: Connection, out: &mut Outputs) {
        self.forget(connection);
        out.close(connection);
    }

    /// Notifications were read, and each has one of three ends.
    fn received(&mut self, since_ns: u64, before: Counts) {
        let now = self.counts;
        let Some(stamps) = &mut self.stamps else { return };
        let received = now.received - before.received;
        let complete = now.complete - before.complete;
        let refused = now.early + now.busy - before.early - before.busy;
        let ends = [
            (Stage::Accumulate, complete),
            (Stage::Refuse, refused),
            (Stage::Partial, received - complete - refused),
        ];
        let gathers = self.options.rung >= Rung::Accumulate;
        let ends = ends.into_iter().filter(|_| gathers);
        for (stage, count) in std::iter::once((Stage::Receive, received)).chain(ends) {
            if count > 0 {
                stamps.stage(stage, since_ns, count);
            }
        }
    }

    fn notify(&mut self, now: Instant, since_ns: u64, it: &Notification<'_>) {
        self.counts.received += 1;
        let id = it.transaction.id;
        self.trace(Stage::Receive, id, since_ns);
        if self.options.rung < Rung::Accumulate {
            return;
        }
        let has_inputs = !it.transaction.inputs.is_empty();
        if self.options.refuses_early && has_inputs && !self.machine.is_in_range(it.height) {
            self.counts.early += 1;
            self.discard(id, Why::Range);
            return;
        }
        if self.machine.kept().bytes() > self.options.unarchived_bytes_max {
            self.counts.busy += 1;
            self.discard(id, Why::NotTaken);
            return;
        }
        match self.intake.take(it, self.machine.height()) {
            Taken::Complete => {
                self.counts.complete += 1;
                self.waits_since.get_or_insert(now);
                self.trace(Stage::Accumulate, id, since_ns);
            }
            Taken::Partial => {}
            Taken::Full => {
                self.counts.busy += 1;
                self.discard(id, Why::NotTaken);
            }
        }
    }

    /// Tells of one that is followed by name.
    fn trace(&mut self, stage: Stage, id: &Hash, since_ns: u64) {
        if let Some(stamps) = self.stamps.as_mut().filter(|stamps| stamps.follows(id)) {
            stamps.trace(stage, id, since_ns);
        }
    }

    /// Tells who listens to errors, if anybody does.
    pub(super) fn discard(&mut self, id: &Hash, why: Why<'_>) {
        if self.subscribers.want_errors() {
            self.discarded.push(&Error { id, why });
        }
    }

    fn request(
        &mut self,
        connection: Connection,
        request: Request<'_>,
        out: &mut Outputs,
    ) -> Result<(), Malformed> {
        let listener = self.lines[connection.index()].listener;
        match request {
            Request::Alive => {}
            Request::Archiver(number, key)
                if listener == BLOCKS_LISTENER && *key == self.options.archiver_key =>
            {
                self.archivers.begin(connection, number).ok_or(Malformed::Count)?;
            }
            Request::Prune(below) => {
                if self.options.rules.broken == Broken::AnybodyPrunes {
                    for number in 0..self.options.archivers {
                        self.archivers.begin(connection, number);
                    }
                }
                let height = self.machine.height();
                self.archivers.stored(connection, below, height).ok_or(Malformed::Tag)?;
            }
            Request::GetBlock(height) if listener == BLOCKS_LISTENER => {
                let below = self.machine.kept_from();
                match self.machine.kept().get(height) {
                    Some(block) => self.subscribers.give(connection, block, out),
                    None if height < below => self.subscribers.say_pruned(connection, below, out),
                    None => {}
                }
            }
            Request::Standing if listener == CLIENTS_LISTENER => {
                self.say_standing(connection, out);
            }
            // Where only blocks are said a standing would be taken for one.
            _ => return Err(Malformed::Tag),
        }
        Ok(())
    }
}
