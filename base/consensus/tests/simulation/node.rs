//! A replica with the disk and the state machine that a shell would give it.

use std::collections::BTreeMap;

use clock::Instant;
use consensus::{Ballot, Config, Entry, Instance, Record, Replica, ReplicaId};

use super::random::Random;

/// Records, of which a tail is not durable.
#[derive(Default)]
pub struct Disk {
    pub first: u64,
    pub records: Vec<Vec<u8>>,
    /// For each record the instance and the ballot in which it was accepted, if that is what it says.
    accepted: Vec<Option<(Instance, Ballot)>>,
    /// Records with a smaller number are durable.
    pub durable: u64,
    pub is_syncing: bool,
}

impl Disk {
    pub fn end(&self) -> u64 {
        self.first + self.records.len() as u64
    }

    pub fn append(&mut self, record: &Record) {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        self.records.push(bytes);
        self.accepted.push(match record {
            Record::Accepted { instance, ballot, .. } => Some((*instance, *ballot)),
            _ => None,
        });
    }

    /// Whether a record says that this was accepted.
    pub fn holds(&self, instance: Instance, ballot: Ballot) -> bool {
        self.accepted.contains(&Some((instance, ballot)))
    }

    /// As [`Disk::holds`], of the durable ones.
    pub fn holds_durably(&self, instance: Instance, ballot: Ballot) -> bool {
        let durable = usize::try_from(self.durable - self.first).unwrap();
        self.accepted[..durable].contains(&Some((instance, ballot)))
    }

    /// The power is cut: of what was not durable some first part stays.
    pub fn lose(&mut self, random: &mut Random) -> u64 {
        let unsure = self.end() - self.durable;
        let lost = random.below(unsure + 1);
        self.records.truncate(self.records.len() - usize::try_from(lost).unwrap());
        self.accepted.truncate(self.records.len());
        self.durable = self.end();
        self.is_syncing = false;
        lost
    }

    /// What a life that begins with what is durable now would have promised.
    pub fn promised(&self) -> Ballot {
        let durable = usize::try_from(self.durable - self.first).unwrap();
        let records = self.records[..durable].iter().map(|bytes| Record::decode(bytes).unwrap());
        let ballots = records.map(|record| match record {
            Record::Promised { ballot } | Record::Accepted { ballot, .. } => ballot,
            Record::Head { promised, .. } => promised,
        });
        ballots.max().unwrap_or(Ballot::ZERO)
    }

    /// Drops records before this one, of those that are durable. Whether all of them were.
    pub fn trim(&mut self, before: u64) -> bool {
        let is_durable = before <= self.durable;
        let before = before.min(self.durable);
        let count = usize::try_from(before.saturating_sub(self.first)).unwrap();
        self.records.drain(..count);
        self.accepted.drain(..count);
        self.first += count as u64;
        is_durable
    }
}

/// What the deliveries come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub applied: Instance,
    pub hash: u64,
}

impl State {
    pub fn apply(&mut self, instance: Instance, entry: &Entry) {
        self.applied = instance;
        for byte in format!("{instance}{entry:?}").bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }

    /// Long enough to need several parts.
    pub fn to_bytes(self) -> Vec<u8> {
        [self.applied, self.hash].map(u64::to_le_bytes).concat().repeat(4)
    }

    pub fn from_bytes(bytes: &[u8]) -> Self {
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert!(bytes.len() == 64 && bytes.chunks(16).all(|part| part == &bytes[..16]), "mixed up");
        Self { applied: number(0), hash: number(8) }
    }
}

/// One machine.
pub struct Node {
    pub config: Config,
    /// Nothing while it is down.
    pub replica: Option<Replica>,
    pub life: u64,
    pub disk: Disk,
    pub snapshots: BTreeMap<Instance, Vec<u8>>,
    pub state: State,
    /// What came of a snapshot, and whether that is all.
    pub incoming: Option<(Instance, Vec<u8>, bool)>,
    pub paused_until: Instant,
    pub wake_at: Instant,
}

impl Node {
    pub fn new(config: Config) -> Self {
        Self {
            replica: Some(Replica::new(config.clone())),
            config,
            life: 0,
            disk: Disk::default(),
            snapshots: BTreeMap::new(),
            state: State::default(),
            incoming: None,
            paused_until: Instant::ZERO,
            wake_at: Instant::FAR_FUTURE,
        }
    }

    pub fn id(&self) -> ReplicaId {
        self.config.id
    }

    /// Ends its life. What was lost of its log.
    pub fn crash(&mut self, random: &mut Random) -> u64 {
        self.replica = None;
        self.life += 1;
        self.incoming = None;
        self.wake_at = Instant::FAR_FUTURE;
        self.disk.lose(random)
    }

    /// Begins the next.
    pub fn restart(&mut self) -> Result<(), String> {
        let mut config = self.config.clone();
        config.seed = config.seed.wrapping_add(self.life << 8);
        let records = self.disk.records.iter().map(Vec::as_slice);
        let replica = Replica::recover(config, self.disk.first, records)
            .map_err(|error| format!("{:?} does not recover: {error}", self.id()))?;
        let through = replica.snapshot().through;
        self.state = match through {
            0 => State::default(),
            _ => State::from_bytes(self.snapshots.get(&through).ok_or("the snapshot is gone")?),
        };
        if self.state.applied != through {
            return Err(format!("a snapshot of {through} is of {}", self.state.applied));
        }
        self.replica = Some(replica);
        Ok(())
    }

    /// Each entry that a replica has accepted after its snapshot stands in its records, whatever was trimmed.
    pub fn kept_what_it_accepted(&self) -> Result<(), String> {
        let Some(replica) = &self.replica else { return Ok(()) };
        let through = replica.snapshot().through;
        let mut later = replica.accepted().filter(|(instance, _)| *instance > through);
        match later.find(|(instance, ballot)| !self.disk.holds(*instance, *ballot)) {
            None => Ok(()),
            Some(gone) => Err(format!("{:?} trims the record of {gone:?}", self.id())),
        }
    }
}

/// A leader that is the first to deliver an entry has it from a majority whose disks hold it in that leader's ballot.
pub fn is_held_by_most(nodes: &[Node], leader: usize, instance: Instance) -> Result<(), String> {
    let leader = nodes[leader].replica.as_ref().filter(|replica| replica.is_leader());
    let Some(leader) = leader else { return Ok(()) };
    let ballot = leader.ballot();
    let holds = |node: &&Node| node.disk.holds_durably(instance, ballot);
    let count = nodes.iter().filter(holds).count();
    if 2 * count > nodes.len() {
        return Ok(());
    }
    let id = leader.id();
    Err(format!("{id:?} delivers {instance} in {ballot:?}, which {count} disks hold"))
}
