//! Batches: a queue a connection, whose transactions leave together. A batch leaves when as many wait as one holds,
//! when the oldest has waited for the longest delay, when a batch of the connection has come back and something
//! waits, and in the drain at once; never while as many batches are outstanding on the connection as may be.
//!
//! `ready` of its transactions is the moment at which it could leave, so that waiting for company or for a batch to
//! come back is due → ready, as waiting for a connection is, and sent − ready stays the engine's own lag.

use std::collections::VecDeque;

use model::plan::BatchPlan;
use model::{Class, Outcome, Stamp};

use super::{Alarm, Engine, Timer, Waiting};
use crate::connection::Phase;
use crate::trial::whole_ns;

/// What has waited for longer than the timeout is looked for this often; it is shed so much later at most.
const SWEEP_NS: i64 = 100_000_000;
/// A transaction that is in no batch.
const NONE: u16 = u16::MAX;

/// The batches of one stream on one worker.
pub(super) struct Batching {
    size_max: usize,
    delay_ns: i64,
    /// A queue for each connection of the stream, which are the first ones of the worker.
    queues: Vec<Queue>,
    /// The connection whose turn it is.
    turn: usize,
    /// Transactions in all queues.
    waiting: usize,
    /// Connections that a batch may leave on, and may not have before.
    look: Vec<u32>,
    /// By slot of the pending table: which of its connection's batches an outstanding transaction is in.
    batch_of: Vec<u16>,
    swept_at: Stamp,
    /// When the load ended and everything was to leave.
    drain_from: Option<Stamp>,
}

/// The queue of one connection, and its batches that are outstanding.
struct Queue {
    /// In the order of due times.
    waiting: VecDeque<Waiting>,
    /// How many of each batch have not ended; 0: there is no such batch. As many places as batches may be outstanding.
    left: Vec<u32>,
    outstanding: usize,
    /// Since when a batch could leave, had there been one.
    freed_at: Stamp,
    /// When a batch came back while something waited, until that has left.
    came_back_at: Option<Stamp>,
    /// When its timer runs out.
    alarm_at: Stamp,
    is_looked_at: bool,
}

/// Why a batch leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Full,
    Completion,
    Delay,
    Drain,
}

/// A batch that can leave.
struct Leaving {
    size: usize,
    reason: Reason,
    /// Since when it could.
    since: Stamp,
}

impl Batching {
    pub(super) fn new(plan: &BatchPlan, connections: u32) -> Self {
        let places = plan.in_flight_max.max(1) as usize;
        let queue = || Queue {
            waiting: VecDeque::new(),
            left: vec![0; places],
            outstanding: 0,
            freed_at: 0,
            came_back_at: None,
            alarm_at: Stamp::MAX,
            is_looked_at: false,
        };
        Self {
            size_max: plan.size_max.max(1) as usize,
            delay_ns: whole_ns(plan.delay_max),
            queues: (0..connections).map(|_| queue()).collect(),
            turn: 0,
            waiting: 0,
            look: Vec::new(),
            batch_of: Vec::new(),
            swept_at: 0,
            drain_from: None,
        }
    }

    /// How many transactions wait.
    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether there is something to do at once.
    pub(super) fn is_pressing(&self) -> bool {
        !self.look.is_empty()
    }

    /// From a stamp of before the trial's start to one of its own line.
    pub(super) fn shift(&mut self, by: i64) {
        self.queues.iter_mut().for_each(|queue| queue.freed_at -= by);
    }

    /// The load is over: what waits leaves.
    pub(super) fn drain(&mut self, now: Stamp) {
        self.drain_from = Some(now);
        for connection in 0..self.queues.len() {
            self.look_at(u32::try_from(connection).expect("connections are u32"));
        }
    }

    /// A connection can be used from now on.
    pub(super) fn opened(&mut self, connection: u32, now: Stamp) {
        self.queues[connection as usize].freed_at = now;
        self.look_at(connection);
    }

    /// A connection is gone with what was outstanding on it.
    pub(super) fn lost(&mut self, connection: u32) {
        let queue = &mut self.queues[connection as usize];
        queue.left.fill(0);
        queue.outstanding = 0;
        queue.came_back_at = None;
        queue.alarm_at = Stamp::MAX;
    }

    /// The transaction in `slot` has ended, after which its connection has room for `room` more.
    pub(super) fn ended(&mut self, slot: u32, connection: u32, room: usize, at: Stamp) {
        let Some(place) = self.batch_of.get_mut(slot as usize) else { return };
        let place = std::mem::replace(place, NONE);
        if place == NONE {
            return;
        }
        let queue = &mut self.queues[connection as usize];
        let wanted = match queue.waiting.len() {
            0 => self.size_max,
            waiting => waiting.min(self.size_max),
        };
        // There was room for one less.
        let was_blocked = queue.outstanding >= queue.left.len() || room <= wanted;
        let left = &mut queue.left[usize::from(place)];
        *left = left.saturating_sub(1);
        let is_back = *left == 0;
        if is_back {
            queue.outstanding = queue.outstanding.saturating_sub(1);
            if !queue.waiting.is_empty() {
                queue.came_back_at = Some(at);
            }
        }
        if was_blocked {
            queue.freed_at = at;
        }
        if (is_back || was_blocked) && !queue.waiting.is_empty() {
            self.look_at(connection);
        }
    }

    fn look_at(&mut self, connection: u32) {
        let queue = &mut self.queues[connection as usize];
        if !queue.is_looked_at {
            queue.is_looked_at = true;
            self.look.push(connection);
        }
    }

    /// Adds one that waits for a batch of this connection.
    fn push(&mut self, connection: u32, waiting: Waiting) {
        self.waiting += 1;
        let queue = &mut self.queues[connection as usize];
        // Due times come in their order, but for those that were moved from a lost connection.
        let place = queue.waiting.iter().rposition(|earlier| earlier.due <= waiting.due);
        queue.waiting.insert(place.map_or(0, |place| place + 1), waiting);
        self.look_at(connection);
    }

    fn pop(&mut self, connection: u32) -> Option<Waiting> {
        let queue = &mut self.queues[connection as usize];
        let waiting = queue.waiting.pop_front()?;
        self.waiting -= 1;
        if queue.waiting.is_empty() {
            queue.came_back_at = None;
        }
        Some(waiting)
    }

    /// Whether a batch can leave on an open connection that has room for `room` transactions, of `room_max`.
    fn leaving(
        &self,
        connection: u32,
        room: usize,
        room_max: usize,
        now: Stamp,
    ) -> Option<Leaving> {
        let queue = &self.queues[connection as usize];
        let full = self.size_max.min(room_max);
        let size = queue.waiting.len().min(full);
        let oldest = queue.waiting.front()?.due;
        if queue.outstanding >= queue.left.len() || room < size {
            return None;
        }
        let full_at = (size == full).then(|| queue.waiting[full - 1].due);
        let late_at = Some(oldest.saturating_add(self.delay_ns)).filter(|at| *at <= now);
        let (reason, _) = [
            (Reason::Full, full_at),
            (Reason::Completion, queue.came_back_at),
            (Reason::Delay, late_at),
            (Reason::Drain, self.drain_from),
        ]
        .into_iter()
        .find(|(_, at)| at.is_some())?;
        let causes = [full_at, queue.came_back_at, late_at, self.drain_from];
        let since = causes.into_iter().flatten().min()?;
        Some(Leaving { size, reason, since: since.max(queue.freed_at) })
    }

    /// Begins a batch; gives its place.
    fn begin(&mut self, connection: u32, size: usize) -> u16 {
        let queue = &mut self.queues[connection as usize];
        let place = queue.left.iter().position(|left| *left == 0).expect("fewer are outstanding");
        queue.left[place] = u32::try_from(size).expect("bounded by the plan");
        queue.outstanding += 1;
        queue.came_back_at = None;
        u16::try_from(place).expect("bounded by the plan")
    }

    fn note(&mut self, slot: u32, place: u16) {
        let slot = slot as usize;
        if slot >= self.batch_of.len() {
            self.batch_of.resize(slot + 1, NONE);
        }
        self.batch_of[slot] = place;
    }

    /// When the oldest of a connection will have waited for long enough, if its timer does not run out before: a timer is
    /// to be set. One whose time has come waits for room, and is looked at when there is some.
    fn alarm(&mut self, connection: u32, now: Stamp) -> Option<Stamp> {
        let queue = &mut self.queues[connection as usize];
        let at = queue.waiting.front()?.due.saturating_add(self.delay_ns);
        if at <= now || at >= queue.alarm_at {
            return None;
        }
        queue.alarm_at = at;
        Some(at)
    }
}

impl Engine<'_> {
    /// Takes what is due into the queues, and lets batches leave.
    pub(super) fn batch(&mut self, index: usize) {
        self.sweep(index);
        self.resend_in_batches(index);
        while let Some(waiting) = self.follow_up_due(index) {
            self.queue(index, waiting);
        }
        if self.is_loading {
            while let Some((due, client)) = self.streams[index].demand.take_due(self.now) {
                self.facts.due += 1;
                let stream = &mut self.streams[index];
                stream.last_due = due;
                let prepared = stream.source.take(client);
                self.queue(index, Waiting { prepared, due });
            }
            self.saturate_batches(index);
        }
        let mut looked = 0;
        loop {
            let batching = self.batching(index);
            let Some(connection) = batching.look.get(looked).copied() else { break };
            looked += 1;
            batching.queues[connection as usize].is_looked_at = false;
            self.let_leave(index, connection);
        }
        self.batching(index).look.clear();
    }

    fn batching(&mut self, index: usize) -> &mut Batching {
        self.streams[index].batching.as_deref_mut().expect("called for streams with batches")
    }

    /// Into the queue of the connection whose turn it is, or shed where too many wait.
    fn queue(&mut self, index: usize, waiting: Waiting) {
        let stream = &self.streams[index];
        let count = stream.batching.as_ref().map_or(0, |batching| batching.waiting);
        if count >= stream.backlog_max && !stream.demand.is_clients() {
            self.facts.backlog_full += 1;
            return self.end_unsent(index, waiting, Outcome::Shed, "");
        }
        let client = waiting.prepared.made.client;
        let home = self.trial.home(client, stream.backlog.homes());
        let connection = home.unwrap_or_else(|| self.next_queue(index));
        self.batching(index).push(connection, waiting);
        self.facts.backlog_max = self.facts.backlog_max.max(count as u64 + 1);
    }

    /// The queues in turn, as long as one is open those of open connections.
    fn next_queue(&mut self, index: usize) -> u32 {
        let Self { streams, connections, .. } = self;
        let batching = streams[index].batching.as_mut().expect("called for streams with batches");
        let count = batching.queues.len();
        let places = (0..count).map(|n| (batching.turn + n) % count);
        let open = places.clone().find(|place| connections[*place].phase == Phase::Open);
        let place = open.unwrap_or(batching.turn % count);
        batching.turn = (place + 1) % count;
        u32::try_from(place).expect("connections are u32")
    }

    /// A saturating load: whatever can carry a batch gets a full one, due when it could.
    fn saturate_batches(&mut self, index: usize) {
        if !self.streams[index].demand.is_saturating() || self.now < 0 {
            return;
        }
        while let Some(connection) = self.streams[index].idle.pop_front() {
            let at = &mut self.connections[connection as usize];
            at.is_queued_idle = false;
            if at.phase != Phase::Open {
                continue;
            }
            let (mut room, room_max) = (at.room(), at.room_max());
            let batching = self.batching(index);
            let full = batching.size_max.min(room_max);
            let queue = &batching.queues[connection as usize];
            let (places, freed_at) = (queue.left.len() - queue.outstanding, queue.freed_at);
            for _ in 0..places {
                if room < full {
                    break;
                }
                room -= full;
                for _ in 0..full {
                    let stream = &mut self.streams[index];
                    let due = stream.demand.take_for_free_connection(freed_at, self.now);
                    let Some(due) = due else { return };
                    self.facts.due += 1;
                    stream.last_due = stream.last_due.max(due);
                    let prepared = stream.source.take(None);
                    self.batching(index).push(connection, Waiting { prepared, due });
                }
            }
        }
    }

    /// Every batch that can leave on a connection leaves; what stays gets a timer.
    fn let_leave(&mut self, index: usize, connection: u32) {
        let now = self.now;
        loop {
            let at = &self.connections[connection as usize];
            if at.phase != Phase::Open {
                return;
            }
            let (room, room_max) = (at.room(), at.room_max());
            let batching = self.batching(index);
            let Some(leaving) = batching.leaving(connection, room, room_max, now) else { break };
            self.leave(index, connection, &leaving);
        }
        let batching = self.batching(index);
        if let Some(at) = batching.alarm(connection, now) {
            let life = self.connections[connection as usize].life;
            self.timers.push(Timer { at, connection, life, what: Alarm::Batch });
        }
    }

    fn leave(&mut self, index: usize, connection: u32, leaving: &Leaving) {
        let place = self.batching(index).begin(connection, leaving.size);
        for _ in 0..leaving.size {
            let waiting = self.batching(index).pop(connection).expect("as many wait");
            let ready = waiting.due.max(leaving.since);
            let slot = self.give(index, connection, waiting, ready);
            self.batching(index).note(slot, place);
        }
        self.left(connection, leaving.size, leaving.reason);
    }

    /// What is sent again leaves in batches of its own, as soon as a connection can carry one, and what waits there
    /// leaves with it.
    fn resend_in_batches(&mut self, index: usize) {
        while let Some((connection, count)) = self.next_again(index) {
            let at = &self.connections[connection as usize];
            let (room, room_max) = (at.room(), at.room_max());
            let batching = self.batching(index);
            let full = batching.size_max.min(room_max);
            let size_max = full.min(room);
            let again = count.min(size_max);
            let fresh = batching.queues[connection as usize].waiting.len().min(size_max - again);
            let size = again + fresh;
            let came_back_at = batching.queues[connection as usize].came_back_at;
            let place = batching.begin(connection, size);
            for _ in 0..again {
                let Some(slot) = self.submit_again(index, connection) else { break };
                self.batching(index).note(slot, place);
            }
            for _ in 0..fresh {
                let waiting = self.batching(index).pop(connection).expect("as many wait");
                let ready = waiting.due.max(self.now);
                let slot = self.give(index, connection, waiting, ready);
                self.batching(index).note(slot, place);
            }
            let queue = &mut self.batching(index).queues[connection as usize];
            queue.came_back_at = came_back_at.filter(|_| !queue.waiting.is_empty());
            // The oldest has waited for longer than any batch waits for company.
            self.left(connection, size, if size == full { Reason::Full } else { Reason::Delay });
        }
    }

    /// A connection that can carry a batch of what is sent again, and how much of that there is for it: where clients stay
    /// on their connections, their own; else one in turn, and another than that which carried the oldest last if there is.
    fn next_again(&mut self, index: usize) -> Option<(u32, usize)> {
        let Self { streams, connections, .. } = self;
        let stream = &mut streams[index];
        let (homes, resends) = (stream.backlog.homes(), stream.resends.as_deref_mut()?);
        let batching = stream.batching.as_mut()?;
        let (waits, oldest) = (resends.count() as usize, resends.waiting().first());
        if homes.is_none() && waits == 0 {
            return None;
        }
        let places = batching.queues.len();
        let can_carry = |place: &usize| {
            let (at, queue) = (&connections[*place], &batching.queues[*place]);
            at.has_room() && queue.outstanding < queue.left.len()
        };
        let in_turn = (0..places).map(|n| (batching.turn + n) % places).filter(can_carry);
        let (place, count) = if homes.is_some() {
            let own = |place: usize| (place, connections[place].again.count as usize);
            in_turn.map(own).find(|(_, count)| *count > 0)?
        } else {
            let last = resends.carrier(oldest) as usize;
            (in_turn.clone().find(|place| *place != last).or(in_turn.min())?, waits)
        };
        batching.turn = (place + 1) % places;
        Some((u32::try_from(place).expect("connections are u32"), count))
    }

    /// A batch has left.
    fn left(&mut self, connection: u32, size: usize, reason: Reason) {
        let at = &mut self.connections[connection as usize];
        at.session.gathered(&mut at.out);
        let facts = &mut self.facts.batches;
        facts.count += 1;
        facts.transactions += size as u64;
        facts.size_max = facts.size_max.max(size as u64);
        let count = match reason {
            Reason::Full => &mut facts.full,
            Reason::Completion => &mut facts.completion,
            Reason::Delay => &mut facts.delay,
            Reason::Drain => &mut facts.drain,
        };
        *count += 1;
    }

    /// The timer of a connection's oldest has run out.
    pub(super) fn batch_alarm(&mut self, connection: u32) {
        let stream = usize::from(self.connections[connection as usize].stream);
        let batching = self.batching(stream);
        batching.queues[connection as usize].alarm_at = Stamp::MAX;
        batching.look_at(connection);
    }

    /// Sheds what has waited for longer than the timeout.
    fn sweep(&mut self, index: usize) {
        let (now, until) = (self.now, self.now - self.streams[index].timeout_ns);
        let batching = self.batching(index);
        if now - batching.swept_at < SWEEP_NS {
            return;
        }
        batching.swept_at = now;
        for connection in 0..batching.queues.len() {
            let connection = u32::try_from(connection).expect("connections are u32");
            loop {
                let batching = self.batching(index);
                let first = batching.queues[connection as usize].waiting.front();
                if first.is_none_or(|first| first.due > until) {
                    break;
                }
                let waiting = batching.pop(connection).expect("looked at above");
                self.end_unsent(index, waiting, Outcome::Shed, "");
            }
        }
    }

    /// Transactions that wait on connections that are not open, to those that are.
    pub(super) fn move_waiting(&mut self, index: usize) {
        let stream = &self.streams[index];
        // Where clients stay on their connections, so does what waits for these.
        if stream.open == 0 || stream.backlog.homes().is_some() {
            return;
        }
        let count = self.batching(index).queues.len();
        for connection in 0..count {
            if self.connections[connection].phase == Phase::Open {
                continue;
            }
            let connection = u32::try_from(connection).expect("connections are u32");
            while let Some(waiting) = self.batching(index).pop(connection) {
                let other = self.next_queue(index);
                self.batching(index).push(other, waiting);
            }
        }
    }

    /// Ends everything that waits for a batch. Gives how many that were.
    pub(super) fn end_waiting(&mut self, index: usize, outcome: Outcome, text: &str) -> u64 {
        let Some(batching) = &self.streams[index].batching else { return 0 };
        let mut count = 0;
        for connection in 0..batching.queues.len() {
            let connection = u32::try_from(connection).expect("connections are u32");
            while let Some(waiting) = self.batching(index).pop(connection) {
                self.end_unsent(index, waiting, outcome, text);
                count += 1;
            }
        }
        count
    }

    /// Ends what waits for a batch, because no connection can be had.
    pub(super) fn refuse_batches(&mut self, index: usize, class: Class, text: &str) {
        self.end_waiting(index, Outcome::Rejected(class), text);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sut::Made;

    use super::*;
    use crate::source::Prepared;

    /// Claim: one that waited for room beyond its time leaves no timer behind that hides those of later ones: they would
    /// wait for ever where nothing is outstanding.
    #[test]
    fn a_time_that_has_come_hides_no_later_one() {
        let plan =
            BatchPlan { size_max: 16, delay_max: Duration::from_millis(1), in_flight_max: 1 };
        let mut batching = Batching::new(&plan, 1);
        let waiting = |due| Waiting {
            prepared: Prepared { id: 0, number: 0, made: Made::of(0, None), payload: Vec::new() },
            due,
        };
        batching.push(0, waiting(0));
        assert_eq!(batching.alarm(0, 0), Some(1_000_000));
        assert_eq!(batching.alarm(0, 0), None, "there is a timer");
        batching.queues[0].alarm_at = Stamp::MAX;
        assert_eq!(batching.alarm(0, 2_000_000), None, "it waits for a batch to come back");
        assert!(batching.pop(0).is_some());
        batching.push(0, waiting(5_000_000));
        assert_eq!(batching.alarm(0, 5_000_000), Some(6_000_000));
    }
}
