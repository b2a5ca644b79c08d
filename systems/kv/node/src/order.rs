//! The order of entries: agreed with other replicas, or this one's own.

use std::collections::VecDeque;

use clock::Instant;
use process::{Input, Outputs};
use replicated::{Group, NoChange, Refusal, Request, Value};

/// What the replica has to do.
#[derive(Debug)]
pub(crate) enum Event {
    /// Carry this entry out; the id is the one under which it was proposed here.
    Apply {
        /// The entry.
        value: Value,
        /// The id.
        proposal: Option<u64>,
    },
    /// Carry out a read.
    Read {
        /// Its id.
        id: u64,
    },
    /// Begin a snapshot.
    MakeSnapshot,
    /// The next part of it is wanted.
    MoreSnapshot,
    /// A part of another replica's.
    InstallPart {
        /// Where in it; at 0 a new one begins.
        offset: u64,
        /// The part.
        bytes: Value,
    },
    /// Take what came in parts.
    Install,
    /// Something was refused.
    Refused {
        /// What.
        request: Request,
        /// Why.
        why: Refusal,
    },
    /// Who leads has changed.
    Leader(Option<u8>),
}

/// Where the order comes from.
#[derive(Debug)]
pub struct Order(Kind);

#[derive(Debug)]
enum Kind {
    /// It is decided here, and not kept.
    Alone(VecDeque<Event>),
    Agreed {
        group: Box<Group>,
        /// The last instance that was carried out.
        applied: u64,
    },
}

impl Order {
    pub(crate) fn alone() -> Self {
        Self(Kind::Alone(VecDeque::new()))
    }

    pub(crate) fn agreed(group: Group, applied: u64) -> Self {
        Self(Kind::Agreed { group: Box::new(group), applied })
    }

    /// The group, if there is one.
    #[must_use]
    pub fn group(&self) -> Option<&Group> {
        match &self.0 {
            Kind::Alone(_) => None,
            Kind::Agreed { group, .. } => Some(group),
        }
    }

    /// The last entry of the group's log that was carried out.
    #[must_use]
    pub const fn applied(&self) -> u64 {
        match &self.0 {
            Kind::Alone(_) => 0,
            Kind::Agreed { applied, .. } => *applied,
        }
    }

    /// The number of its database; 0 where none was drawn.
    pub(crate) fn database(&self) -> u64 {
        self.group().map_or(0, Group::cluster)
    }

    /// Whether this is the number of another database.
    pub(crate) fn is_another(&self, database: u64) -> bool {
        ![0, self.database()].contains(&database) && self.database() != 0
    }

    /// An operator wants a replica to have a vote, or not to; one that is alone knows no other.
    pub(crate) fn want_vote(&mut self, number: u8, has_vote: bool) -> Result<(), NoChange> {
        match &mut self.0 {
            Kind::Alone(_) => Err(NoChange::Unknown),
            Kind::Agreed { group, .. } => group.want_vote(number, has_vote),
        }
    }

    /// Whether it has a vote.
    pub(crate) fn has_vote(&self) -> bool {
        self.group().is_none_or(Group::has_vote)
    }

    pub(crate) const fn is_alone(&self) -> bool {
        matches!(self.0, Kind::Alone(_))
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

    pub(crate) fn propose(&mut self, now: Instant, id: u64, value: Value, out: &mut Outputs) {
        match &mut self.0 {
            Kind::Alone(events) => events.push_back(Event::Apply { value, proposal: Some(id) }),
            Kind::Agreed { group, .. } => group.propose(now, id, value, out),
        }
    }

    /// Asks for a read of a group.
    pub(crate) fn read(&mut self, now: Instant, id: u64, out: &mut Outputs) {
        if let Kind::Agreed { group, .. } = &mut self.0 {
            group.read_index(now, id, out);
        }
    }

    /// Hands over a part of a snapshot of all up to entry `through`. Whether more of it is wanted.
    pub(crate) fn snapshot(
        &mut self,
        through: u64,
        part: &[u8],
        is_last: bool,
        out: &mut Outputs,
    ) -> bool {
        match &mut self.0 {
            Kind::Alone(_) => false,
            Kind::Agreed { group, .. } => group.snapshot(through, part, is_last, out),
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
            Kind::Alone(_) => Some(input),
            Kind::Agreed { group, .. } => group.take(now, input, out),
        }
    }

    pub(crate) fn next(&mut self) -> Option<Event> {
        match &mut self.0 {
            Kind::Alone(events) => events.pop_front(),
            Kind::Agreed { group, applied } => group.next_event().map(|event| match event {
                replicated::Event::Apply { instance, value, proposal } => {
                    *applied = instance;
                    Event::Apply { value, proposal }
                }
                replicated::Event::Read { id } => Event::Read { id },
                replicated::Event::MakeSnapshot => Event::MakeSnapshot,
                replicated::Event::MoreSnapshot => Event::MoreSnapshot,
                replicated::Event::InstallPart { offset, bytes } => {
                    Event::InstallPart { offset, bytes }
                }
                replicated::Event::Install { through } => {
                    *applied = through;
                    Event::Install
                }
                replicated::Event::Refused { request, why } => Event::Refused { request, why },
                replicated::Event::Leader(leader) => Event::Leader(leader),
            }),
        }
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.group().and_then(Group::wake_at)
    }
}
