//! Replicas whose messages and records go where a test lets them go.

use std::collections::VecDeque;
use std::time::Duration;

use clock::Instant;

use crate::{
    Config, Effect, Effects, Entry, Input, Instance, Members, Message, Refusal, Replica, ReplicaId,
    Request,
};

pub fn members(ids: &[u8]) -> Members {
    Members::new(&ids.iter().map(|id| ReplicaId(*id)).collect::<Vec<_>>()).unwrap()
}

/// One replica and what it has asked for.
pub struct Member {
    pub replica: Replica,
    pub config: Config,
    /// Records, and how many are durable.
    pub records: Vec<Vec<u8>>,
    pub delivered: Vec<(Instance, Entry, Option<u64>)>,
    pub ready: Vec<(u64, Instance)>,
    pub refused: Vec<(Request, Refusal)>,
    /// What else it asked for.
    pub other: Vec<Effect>,
    /// Whether its disk takes what it appends at once.
    pub syncs: bool,
}

/// A group in which everything arrives at once and in order, but for what a test holds back.
pub struct Group {
    pub now: Instant,
    pub all: Vec<Member>,
    /// Messages on their way.
    pub wire: VecDeque<(ReplicaId, ReplicaId, Message)>,
    /// Replicas that get nothing and from whom nothing comes.
    pub cut: Vec<ReplicaId>,
    /// All messages that were sent.
    pub sent: Vec<(ReplicaId, ReplicaId, Message)>,
}

pub fn id(number: usize) -> ReplicaId {
    ReplicaId(u8::try_from(number).unwrap())
}

impl Group {
    /// Replicas 0 to `count`, all members, configured alike but for what `change` changes.
    pub fn of(count: usize, change: impl Fn(&mut Config)) -> Self {
        let all: Vec<u8> = (0..u8::try_from(count).unwrap()).collect();
        Self::with_members(count, &all, change)
    }

    /// Replicas 0 to `count`, of which some are members.
    pub fn with_members(count: usize, voters: &[u8], change: impl Fn(&mut Config)) -> Self {
        let mut group = Self {
            now: Instant::ZERO,
            all: Vec::new(),
            wire: VecDeque::new(),
            cut: Vec::new(),
            sent: Vec::new(),
        };
        for number in 0..count {
            let mut config = Config::new(id(number), members(voters));
            change(&mut config);
            let replica = Replica::new(config.clone());
            group.all.push(Member {
                replica,
                config,
                records: Vec::new(),
                delivered: Vec::new(),
                ready: Vec::new(),
                refused: Vec::new(),
                other: Vec::new(),
                syncs: true,
            });
        }
        for number in 0..count {
            group.tell(number, Input::Wake);
        }
        group
    }

    /// The same, led by replica 0.
    pub fn led(count: usize, change: impl Fn(&mut Config)) -> Self {
        let mut group = Self::of(count, change);
        group.elect(0);
        group
    }

    /// Time passes, with every wake-up when it is due.
    pub fn pass(&mut self, time: Duration) {
        let step = Duration::from_millis(10);
        let end = self.now.plus(time);
        while self.now < end {
            self.now = self.now.plus(step);
            for number in 0..self.all.len() {
                self.tell(number, Input::Wake);
            }
            self.settle();
        }
    }

    /// Makes a replica the leader: the others sleep meanwhile.
    pub fn elect(&mut self, number: usize) {
        self.now = self.now.plus(Duration::from_secs(2));
        self.tell(number, Input::Wake);
        self.settle();
        assert!(self.all[number].replica.is_leader(), "{number} does not lead");
    }

    /// One step, with what it asks of its disk and state machine; messages wait.
    pub fn tell(&mut self, number: usize, input: Input) {
        let mut out = Effects::default();
        let member = &mut self.all[number];
        member.replica.step(self.now, input, &mut out);
        let mut appended = false;
        for effect in out.drain() {
            match effect {
                Effect::Send { to, message } => {
                    self.sent.push((id(number), to, message.clone()));
                    self.wire.push_back((id(number), to, message));
                }
                Effect::Append { number, record } => {
                    assert_eq!(number, member.records.len() as u64);
                    let mut bytes = Vec::new();
                    record.encode(&mut bytes);
                    member.records.push(bytes);
                    appended = true;
                }
                Effect::Deliver { instance, entry, proposal } => {
                    member.delivered.push((instance, entry, proposal));
                }
                Effect::ReadReady { id, instance } => member.ready.push((id, instance)),
                Effect::Refused { request, why } => member.refused.push((request, why)),
                other => member.other.push(other),
            }
        }
        if appended && self.all[number].syncs {
            self.sync(number);
        }
    }

    /// Everything that a replica has appended is durable.
    pub fn sync(&mut self, number: usize) {
        let through = self.all[number].records.len() as u64;
        self.tell(number, Input::Persisted { through });
    }

    /// Lets all messages arrive, and all that follow.
    pub fn settle(&mut self) {
        let mut count = 0;
        while let Some((from, to, message)) = self.wire.pop_front() {
            count += 1;
            assert!(count < 100_000, "messages without end: {message:?}");
            if !self.cut.contains(&from) && !self.cut.contains(&to) {
                self.tell(to.0.into(), Input::Received { from, message });
            }
        }
    }

    pub fn propose(&mut self, number: usize, id: u64) {
        let value = id.to_le_bytes().as_slice().into();
        self.tell(number, Input::Propose { id, value });
    }

    /// The replica begins a new life from the first of its records.
    pub fn restart(&mut self, number: usize, records: usize) {
        let member = &mut self.all[number];
        member.records.truncate(records);
        let kept = member.records.iter().map(Vec::as_slice);
        member.replica = Replica::recover(member.config.clone(), 0, kept).unwrap();
        member.delivered.clear();
        self.wire.retain(|(from, to, _)| *from != id(number) && *to != id(number));
        self.tell(number, Input::Wake);
    }

    /// What a replica has delivered: the numbers of the values.
    pub fn values(&self, number: usize) -> Vec<u64> {
        let values = self.all[number].delivered.iter().filter_map(|(_, entry, _)| match entry {
            Entry::Value(value) => Some(u64::from_le_bytes(value[..8].try_into().unwrap())),
            _ => None,
        });
        values.collect()
    }

    /// Messages sent so far that are such.
    pub fn count(&self, is_such: impl Fn(&Message) -> bool) -> usize {
        self.sent.iter().filter(|(_, _, message)| is_such(message)).count()
    }
}
