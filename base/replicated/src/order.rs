//! The order of entries: agreed with other replicas, or this one's own, kept nowhere.

use std::collections::VecDeque;

use clock::Instant;
use process::{Input, Outputs};

use crate::{Event, Group, Instance, NoChange, Value};

/// The source of a state machine's entries.
#[derive(Debug)]
pub struct Order(Kind);

#[derive(Debug)]
enum Kind {
    /// It is decided here.
    Alone {
        events: VecDeque<Event>,
        /// Entries that were decided.
        count: Instance,
    },
    Agreed {
        group: Box<Group>,
        /// The last instance that was carried out.
        applied: Instance,
    },
}

impl Order {
    /// Of a single replica: what it proposes is decided at once.
    #[must_use]
    pub fn alone() -> Self {
        Self(Kind::Alone { events: VecDeque::new(), count: 0 })
    }

    /// Of a group; entries up to `applied` were carried out.
    #[must_use]
    pub fn agreed(group: Group, applied: Instance) -> Self {
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
    pub const fn applied(&self) -> Instance {
        match &self.0 {
            Kind::Alone { count, .. } => *count,
            Kind::Agreed { applied, .. } => *applied,
        }
    }

    /// The number of its group; 0 where none was drawn.
    #[must_use]
    pub fn cluster(&self) -> u64 {
        self.group().map_or(0, Group::cluster)
    }

    /// An operator wants a replica to have a vote, or not to; one that is alone knows no other.
    ///
    /// # Errors
    /// Those of [`Group::want_vote`].
    pub fn want_vote(&mut self, number: u8, has_vote: bool) -> Result<(), NoChange> {
        match &mut self.0 {
            Kind::Alone { .. } => Err(NoChange::Unknown),
            Kind::Agreed { group, .. } => group.want_vote(number, has_vote),
        }
    }

    /// Whether this replica has a vote.
    #[must_use]
    pub fn has_vote(&self) -> bool {
        self.group().is_none_or(Group::has_vote)
    }

    /// Whether this replica may propose.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.group().is_none_or(|group| group.replica().is_leader())
    }

    /// The leader as far as is known; `own` where there is nobody else.
    #[must_use]
    pub fn leader(&self, own: u8) -> Option<u8> {
        match self.group() {
            None => Some(own),
            Some(group) => group.leader(),
        }
    }

    /// Whether an entry of so many bytes can be proposed now.
    #[must_use]
    pub fn can_propose(&self, bytes: usize) -> bool {
        self.group().is_none_or(|group| group.can_propose(bytes))
    }

    /// Proposes an entry.
    pub fn propose(&mut self, now: Instant, id: u64, entry: impl Into<Value>, out: &mut Outputs) {
        let value = entry.into();
        match &mut self.0 {
            Kind::Alone { events, count } => {
                *count += 1;
                events.push_back(Event::Apply { instance: *count, value, proposal: Some(id) });
            }
            Kind::Agreed { group, .. } => group.propose(now, id, value, out),
        }
    }

    /// Asks for a read of a group; one that is alone need not ask.
    pub fn read(&mut self, now: Instant, id: u64, out: &mut Outputs) {
        if let Kind::Agreed { group, .. } = &mut self.0 {
            group.read_index(now, id, out);
        }
    }

    /// Hands over a part of a snapshot of all up to entry `through`. Whether more of it is wanted.
    pub fn snapshot(
        &mut self,
        through: Instance,
        part: &[u8],
        is_last: bool,
        out: &mut Outputs,
    ) -> bool {
        match &mut self.0 {
            Kind::Alone { .. } => false,
            Kind::Agreed { group, .. } => group.snapshot(through, part, is_last, out),
        }
    }

    /// Gives back an input that is the node's own.
    pub fn take<'a>(
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

    /// The next thing that the state machine has to do.
    pub fn next_event(&mut self) -> Option<Event> {
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

    /// The time at which it wants to be woken.
    #[must_use]
    pub fn wake_at(&self) -> Option<Instant> {
        self.group().and_then(Group::wake_at)
    }
}
