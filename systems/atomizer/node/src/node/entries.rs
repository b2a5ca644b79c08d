//! Entries of the log: made of what waits, applied when they are decided; and the blocks that come of it.

use std::sync::Arc;

use clock::Instant;
use process::Outputs;
use replicated::{Event, Value};

use super::{Atomizer, Rung};
use crate::chain::Block;
use crate::machine::{Done, Fates, Machine};
use crate::protocol::entry::{self, Entry, read_entry};
use crate::protocol::errors::{Error, Why};
use crate::protocol::{BLOCK_BYTES_MAX, Hash};
use crate::stamps::{Stage, Stamps};
use crate::subscribers::Subscribers;

/// With so much gathered a block is made before it is due.
const EARLY_BLOCK_BYTES: u64 = BLOCK_BYTES_MAX as u64 / 2;

impl Atomizer {
    /// Does what the order says, and proposes what waits as far as the log takes it.
    pub(super) fn follow(&mut self, now: Instant, out: &mut Outputs) {
        loop {
            while let Some(event) = self.order.next_event() {
                self.event(now, event, out);
            }
            if !self.propose(now, out) {
                break;
            }
        }
        self.subscribers.send_errors(&mut self.discarded, out);
    }

    /// Proposes one entry; `false`: nothing is due, or no more can be proposed now.
    fn propose(&mut self, now: Instant, out: &mut Outputs) -> bool {
        if !self.order.leads() {
            return false;
        }
        if self.options.rung < Rung::Log {
            // The ladder ends before the log.
            while self.intake.next_bytes().is_some() {
                self.intake.next_entry(|_, _| {});
            }
            self.waits_since = None;
            return false;
        }
        let begins = self.machine.ledger() == 0 && !self.ledger_proposed;
        if begins && self.order.can_propose(entry::HEAD_BYTES) {
            self.ledger_proposed = true;
            self.propose_entry(now, &entry::ledger(self.options.ledger), out);
            return true;
        }
        // It is the log's to say, so that all forget the same.
        let below = self.archivers.all_below();
        if below > self.pruned_below && self.order.can_propose(entry::HEAD_BYTES) {
            self.pruned_below = below;
            self.propose_entry(now, &entry::prune(below), out);
            return true;
        }
        self.propose_block(now, out) || self.propose_batch(now, out)
    }

    fn propose_entry(&mut self, now: Instant, bytes: &[u8], out: &mut Outputs) {
        self.next_id += 1;
        self.order.propose(now, self.next_id, bytes, out);
    }

    /// Whether a block may be proposed, as far as those before it go.
    pub(super) fn makes_blocks(&self) -> bool {
        let has_begun = self.machine.ledger() != 0;
        self.options.rung >= Rung::Apply && has_begun && self.block_proposed.is_none()
    }

    fn propose_block(&mut self, now: Instant, out: &mut Outputs) -> bool {
        let is_due = now >= self.block_at || self.machine.gathered_bytes() >= EARLY_BLOCK_BYTES;
        if !self.makes_blocks() || !is_due || !self.order.can_propose(1) {
            return false;
        }
        self.block_at = now.plus(self.options.block_interval);
        self.propose_entry(now, &entry::make_block(), out);
        self.block_proposed = Some(self.next_id);
        true
    }

    /// When the queue has waited long enough; none where nothing waits.
    pub(super) fn batch_due_at(&self) -> Option<Instant> {
        let since = self.waits_since?;
        Some(match self.options.batch_idle {
            Some(_) => self.look_at,
            None if self.intake.is_entry_full() => since,
            None => since.plus(self.options.linger),
        })
    }

    fn propose_batch(&mut self, now: Instant, out: &mut Outputs) -> bool {
        if let Some(idle) = self.options.batch_idle
            && self.waits_since == Some(now)
            && self.look_at <= now
        {
            // It was found empty, and is looked at again when it would have been.
            let idle_ns = i64::try_from(idle.as_nanos()).unwrap_or(i64::MAX).max(1);
            let behind_ns = now.ns_since(self.look_at) % idle_ns;
            self.look_at = Instant::from_ns(now.as_ns() + idle_ns - behind_ns);
        }
        if self.batch_due_at().is_none_or(|due| due > now) {
            return false;
        }
        if self.options.refuses_early {
            self.drop_expired();
        }
        if self.intake.next_bytes().is_none_or(|bytes| !self.order.can_propose(bytes)) {
            return false;
        }
        let since_ns = self.now_ns();
        let Self { intake, order, counts, next_id, stamps, syncs, log, .. } = self;
        intake.next_entry(|bytes, count| {
            *next_id += 1;
            counts.batches += 1;
            counts.proposed += count;
            order.propose(now, *next_id, bytes, out);
            if let Some(stamps) = stamps {
                stamps.stage(Stage::Log, since_ns, count);
                let mut followed = Vec::new();
                if let Ok(Entry::Transactions(batch)) = read_entry(bytes) {
                    let ids = batch.iter().map(|it| it.transaction.id);
                    followed.extend(ids.filter(|id| stamps.follows(id)).copied());
                    trace(stamps.as_mut(), Stage::Log, since_ns, followed.iter());
                }
                if order.group().is_some() {
                    let place = (*next_id, out.next_number(*log));
                    syncs.proposed(place, stamps.now_ns(), count, followed);
                }
            }
        });
        self.waits_since = (self.intake.waiting() > 0).then_some(now);
        if let (Some(idle), None) = (self.options.batch_idle, self.waits_since) {
            self.look_at = now.plus(idle);
        }
        true
    }

    /// What has become too old while it waited takes no place in the log.
    fn drop_expired(&mut self) {
        let since_ns = self.now_ns();
        let Self { intake, machine, discarded, subscribers, counts, stamps, .. } = self;
        let (is_heard, before) = (subscribers.want_errors(), counts.early);
        intake.drop_expired(
            |height| machine.is_in_range(height),
            |it| {
                counts.early += 1;
                if is_heard {
                    discarded.push(&Error { id: it.id, why: Why::Range });
                }
            },
        );
        if let Some(stamps) = stamps
            && counts.early > before
        {
            stamps.stage(Stage::Stale, since_ns, counts.early - before);
        }
    }

    fn event(&mut self, now: Instant, event: Event, out: &mut Outputs) {
        match event {
            Event::Apply { value, proposal, .. } => {
                if proposal.is_some() && proposal == self.block_proposed {
                    self.block_proposed = None;
                }
                if let (Some(proposal), Some(stamps)) = (proposal, &mut self.stamps) {
                    self.syncs.decided(proposal, stamps.as_mut());
                }
                self.apply(&value, out);
            }
            Event::MakeSnapshot => {
                self.counts.snapshots_made += 1;
                let snapshot = self.machine.write_snapshot();
                self.order.snapshot(self.order.applied(), &snapshot, true, out);
            }
            Event::InstallPart { offset, bytes } => {
                if offset == 0 {
                    self.installing.clear();
                }
                self.installing.extend_from_slice(&bytes);
            }
            Event::Install { .. } => {
                self.counts.snapshots_installed += 1;
                let bytes = std::mem::take(&mut self.installing);
                self.machine = Machine::read_snapshot(self.options.rules, &bytes)
                    .expect("it is as another replica made it");
            }
            Event::Leader(leader) => self.led_by(now, leader, out),
            Event::Refused { .. } => {
                (self.ledger_proposed, self.block_proposed) = (false, None);
            }
            Event::Read { .. } | Event::MoreSnapshot => {}
        }
    }

    fn apply(&mut self, value: &Value, out: &mut Outputs) {
        self.counts.entries += 1;
        let batch = match read_entry(value) {
            Ok(Entry::Transactions(batch)) => Some(batch),
            _ => None,
        };
        self.counts.applied += batch.as_ref().map_or(0, |batch| batch.count());
        if self.options.rung < Rung::Apply {
            return;
        }
        let since_ns = self.now_ns();
        let before = self.machine.fates();
        let is_heard = self.order.leads() && self.subscribers.want_errors();
        let done = self.machine.apply(value, is_heard.then_some(&mut self.discarded));
        if Subscribers::is_frame(&self.discarded) {
            self.subscribers.send_errors(&mut self.discarded, out);
        }
        if let Some(batch) = batch {
            self.stamp_applied(since_ns, before, batch);
        }
        if let Done::Block(block) = done {
            self.made(since_ns, &block, out);
        }
    }

    fn stamp_applied(&mut self, since_ns: u64, before: Fates, batch: entry::Batch<'_>) {
        let after = self.machine.fates();
        let Some(stamps) = &mut self.stamps else { return };
        for (stage, count) in [
            (Stage::Apply, batch.count()),
            (Stage::Admit, after.admitted - before.admitted),
            (Stage::Expire, after.expired - before.expired),
            (Stage::Spent, after.spent - before.spent),
        ] {
            if count > 0 {
                stamps.stage(stage, since_ns, count);
            }
        }
        trace(stamps.as_mut(), Stage::Apply, since_ns, batch.iter().map(|it| it.transaction.id));
    }

    /// A block was made.
    fn made(&mut self, since_ns: u64, block: &Arc<Block>, out: &mut Outputs) {
        if let Some(stamps) = &mut self.stamps {
            stamps.stage(Stage::Block, since_ns, block.count);
            trace(stamps.as_mut(), Stage::Block, since_ns, block.transactions().map(|it| it.id));
        }
        if !self.order.leads() {
            return;
        }
        self.counts.blocks += 1;
        if self.options.rung >= Rung::Block {
            self.subscribers.broadcast(block, out);
        }
        let Self { intake, machine, discarded, subscribers, counts, options, .. } = self;
        let is_heard = subscribers.want_errors();
        intake.drop_incomplete(machine.height(), options.rules.depth, |it| {
            counts.incomplete += 1;
            if is_heard {
                discarded.push(&Error { id: it.id, why: Why::Incomplete });
            }
        });
    }

    /// Another replica leads, or nobody does: what waits here is given up, what was proposed may be decided or not, and
    /// nobody here will know. The connections of clients end, which says just that.
    fn led_by(&mut self, now: Instant, leader: Option<u8>, out: &mut Outputs) {
        // What was proposed of pruning and is lost is made good by what archivers say of the next block.
        (self.ledger_proposed, self.block_proposed) = (false, None);
        if leader == Some(self.replica) {
            self.counts.led += 1;
            self.block_at = now;
            return;
        }
        let since_ns = self.now_ns();
        let Self { intake, discarded, subscribers, counts, stamps, .. } = self;
        let is_heard = subscribers.want_errors();
        let complete = intake.waiting() as u64;
        if let Some(stamps) = stamps.as_mut().filter(|_| complete > 0) {
            stamps.stage(Stage::Stale, since_ns, complete);
        }
        intake.give_up(|it| {
            counts.busy += 1;
            if is_heard {
                discarded.push(&Error { id: it.id, why: Why::NotTaken });
            }
        });
        self.waits_since = None;
        self.syncs.clear();
        if !self.options.is_silent {
            for connection in std::mem::take(&mut self.clients) {
                self.subscribers.remove(connection);
                out.close(connection);
            }
        }
    }
}

/// Tells of those that are followed one by one.
fn trace<'a>(
    stamps: &mut (dyn Stamps + Send),
    stage: Stage,
    since_ns: u64,
    ids: impl Iterator<Item = &'a Hash>,
) {
    for id in ids {
        if stamps.follows(id) {
            stamps.trace(stage, id, since_ns);
        }
    }
}
