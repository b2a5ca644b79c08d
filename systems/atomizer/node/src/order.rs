//! The order of entries: agreed with other replicas, or this one's own, kept nowhere.

use std::collections::VecDeque;

use clock::Instant;
use process::{Input, Outputs};
use replicated::{Event, Group, Value};

/// Where the order comes from.
#[derive(Debug)]
pub struct Order(Kind);

#[derive(Debug)]
enum Kind {
    /// It is decided here.
    Alone {
        events: VecDeque<Event>,
        /// Entries that were decided.
        count: u64,
    },
    Agreed {
        group: Box<Group>,
        /// The last instance that was carried out.
        applied: u64,
    },
}

impl Order {
    pub(crate) fn alone() -> Self {
        Self(Kind::Alone { events: VecDeque::new(), count: 0 })
    }

    pub(crate) fn agreed(group: Group, applied: u64) -> Self {
        Self(Kind::Agreed { group: Box::new(group), applied })
    }

    /// The group, if there is one.
    #[must_use]
    pub fn group(&self) -> Option<&Group> {
        match &self.0 {
            Kind::Alone { .. } => None,
            Kind::Agreed { group, .. } => Some(group),
        }
    }

    /// The last entry that was carried out.
    #[must_use]
    pub const fn applied(&self) -> u64 {
        match &self.0 {
            Kind::Alone { count, .. } => *count,
            Kind::Agreed { applied, .. } => *applied,
        }
    }

    /// Whether this replica may propose.
    pub(crate) fn leads(&self) -> bool {
        self.group().is_none_or(|group| group.replica().is_leader())
    }

    /// Who leads as far as is known; `own` where there is nobody else.
    pub(crate) fn leader(&self, own: u8) -> Option<u8> {
        match self.group() {
            None => Some(own),
            Some(group) => group.leader(),
        }
    }

    pub(crate) fn can_propose(&self, bytes: usize) -> bool {
        self.group().is_none_or(|group| group.can_propose(bytes))
    }

    pub(crate) fn propose(&mut self, now: Instant, id: u64, entry: &[u8], out: &mut Outputs) {
        let value = Value::from(entry);
        match &mut self.0 {
            Kind::Alone { events, count } => {
                *count += 1;
                events.push_back(Event::Apply { instance: *count, value, proposal: Some(id) });
            }
            Kind::Agreed { group, .. } => group.propose(now, id, value, out),
        }
    }

    /// Hands over a snapshot of what has been carried out: it is short, so it has one part.
    pub(crate) fn snapshot(&mut self, bytes: &[u8], out: &mut Outputs) {
        if let Kind::Agreed { group, applied } = &mut self.0 {
            group.snapshot(*applied, bytes, true, out);
        }
    }

    /// Gives back what is the replica's.
    pub(crate) fn take<'a>(
        &mut self,
        now: Instant,
        input: Input<'a>,
        out: &mut Outputs,
    ) -> Option<Input<'a>> {
        match &mut self.0 {
            Kind::Alone { .. } => Some(input),
            Kind::Agreed { group, .. } => group.take(now, input, out),
        }
    }

    pub(crate) fn next(&mut self) -> Option<Event> {
        match &mut self.0 {
            Kind::Alone { events, .. } => events.pop_front(),
            Kind::Agreed { group, applied } => {
                let event = group.next_event();
                match &event {
                    Some(Event::Apply { instance, .. }) => *applied = *instance,
                    Some(Event::Install { through }) => *applied = *through,
                    _ => {}
                }
                event
            }
        }
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.group().and_then(Group::wake_at)
    }
}
