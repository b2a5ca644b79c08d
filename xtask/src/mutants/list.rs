//! The mutants. The first eighteen are those of an outside check of the protocol (M1 to M18).

use super::{Mutant, World};

const KV: World = World::System("kv", "kv-node", "sim_kv");
const ATOMIZER: World = World::System("atomizer", "atomizer-node", "sim_atomizer");

/// A mutant of the protocol.
const fn of_consensus(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
) -> Mutant {
    Mutant { name, file, from, to, world: World::Consensus, equivalent: None }
}

const fn of_kv(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
) -> Mutant {
    Mutant { world: KV, ..of_consensus(name, file, from, to) }
}

const fn of_atomizer(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
) -> Mutant {
    Mutant { world: ATOMIZER, ..of_consensus(name, file, from, to) }
}

const fn of_store(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
) -> Mutant {
    Mutant { world: World::Store, ..of_consensus(name, file, from, to) }
}

const ACCEPTOR: &str = "base/consensus/src/acceptor.rs";
const ELECTION: &str = "base/consensus/src/election.rs";
const LEADER: &str = "base/consensus/src/leader.rs";
const LOG: &str = "base/consensus/src/log.rs";
const PEER: &str = "base/consensus/src/peer.rs";
const READS: &str = "base/consensus/src/reads.rs";
const RECOVER: &str = "base/consensus/src/recover.rs";
const REPLICA: &str = "base/consensus/src/replica.rs";
const ROLE: &str = "base/consensus/src/role.rs";
const SNAPSHOT: &str = "base/consensus/src/snapshot.rs";
const CELL: &str = "base/process/src/store/cell.rs";
const FORMAT: &str = "base/process/src/store/format.rs";
const OPEN: &str = "base/process/src/store/open.rs";
const SEGMENTS: &str = "base/process/src/store/segments.rs";
const STORE_LOG: &str = "base/process/src/store/log.rs";
const GROUP: &str = "base/replicated/src/group.rs";
const SNAPSHOTS: &str = "base/replicated/src/snapshots.rs";
const ENTRIES: &str = "systems/kv/node/src/node/entries.rs";
const SESSIONS: &str = "systems/kv/node/src/database/sessions.rs";
const SUBMISSIONS: &str = "systems/kv/node/src/node/submissions.rs";
const MACHINE: &str = "systems/atomizer/node/src/machine.rs";
const SPENT: &str = "systems/atomizer/node/src/spent.rs";

pub(super) const MUTANTS: &[Mutant] = &[
    of_consensus(
        "M1 a promise is sent before it is durable",
        ACCEPTOR,
        "if before <= self.persisted ||",
        "if true || before <= self.persisted ||",
    ),
    of_consensus(
        "M2 the own promise counts at once",
        ELECTION,
        "has_own: self.config.broken == Broken::OwnPromiseAtOnce,",
        "has_own: self.config.broken != Broken::DeliversOutOfOrder,",
    ),
    of_consensus(
        "M3 a recovery forgets promises",
        RECOVER,
        "Record::Promised { ballot } => (ballot, 0),",
        "Record::Promised { .. } => (crate::ids::Ballot::ZERO, 0),",
    ),
    of_consensus(
        "M4 the head of a trimmed log has no promise",
        SNAPSHOT,
        "Record::Head { promised: self.promised,",
        "Record::Head { promised: Ballot::ZERO,",
    ),
    of_consensus(
        "M5 a candidate keeps what it found first, not what has the highest ballot",
        ROLE,
        "there.as_ref().is_none_or(|there| there.ballot < accepted.ballot)",
        "there.is_none()",
    ),
    of_consensus(
        "M6 reads do not wait for what was taken over",
        READS,
        "chosen.max(lead.took_over_through)",
        "{ let _ = lead.took_over_through; chosen }",
    ),
    of_consensus(
        "M7 a candidate ignores changes of members that it finds",
        ELECTION,
        "Entry::Members(members) => Some(members),",
        "Entry::Members(members) if members.count() > 99 => Some(members),",
    ),
    of_consensus(
        "M8 a follower acknowledges what is not durable",
        ACCEPTOR,
        "(self.promised, self.durable, self.agreed + 1)",
        "(self.promised, self.agreed, self.agreed + 1)",
    ),
    of_consensus(
        "M9 a read joins the round that is under way",
        READS,
        "round: lead.round + 1 }",
        "round: lead.round.max(1) }",
    ),
    Mutant {
        equivalent: Some(
            "what is proposed behind a change of members is accepted by a majority of those before it and, since a change is of one replica, is found by each majority behind it",
        ),
        ..of_consensus(
            "M10 a leader proposes behind a change of members that is not chosen",
            LEADER,
            "fits && open < window_max && lead.barrier <= self.chosen && self.keeps_up()",
            "fits && open < window_max && lead.barrier < u64::MAX && self.keeps_up()",
        )
    },
    of_consensus(
        "M11 a new leader takes all that others have for acknowledged",
        ROLE,
        "let acked = known.unwrap_or(0).min(last);",
        "let acked = known.map_or(0, |_| last);",
    ),
    of_consensus(
        "M12 what followed another entry is proposed again",
        ROLE,
        "if proposal.follows != origin {",
        "if proposal.follows != origin && self.first == u64::MAX {",
    ),
    Mutant {
        equivalent: Some("nobody asks for two changes at once: the caller makes one of each"),
        ..of_consensus(
            "M13 two members may change at once",
            "base/consensus/src/ids.rs",
            "joins + leaves == 1",
            "joins + leaves >= 1",
        )
    },
    of_consensus(
        "M14 a follower accepts what a lower ballot asks",
        ACCEPTOR,
        "        if ballot < self.promised {\n            out.send(from, Message::Rejected { ballot, promised: self.promised });\n            return false;\n        }",
        "",
    ),
    of_consensus(
        "M15 what was accepted in an older ballot counts in a new one",
        REPLICA,
        "        self.agreed = self.chosen;\n        self.durable = self.durable.min(self.chosen);",
        "        self.durable = self.durable.min(self.chosen);",
    ),
    of_consensus(
        "M16 the head of a snapshot keeps the members of the one before",
        SNAPSHOT,
        "let members = self.members_behind(through).clone();",
        "let members = self.snapshot.members.clone();",
    ),
    of_consensus(
        "M17 what was left behind stays in the log of a new leader",
        ELECTION,
        "        self.log.cut_behind(last);\n",
        "",
    ),
    of_consensus(
        "M18 a leader counts its own disk at once",
        LEADER,
        "lead.reached(members, id, self.durable, needed,",
        "lead.reached(members, id, self.agreed, needed,",
    ),
    // Own ones, of the protocol.
    of_consensus(
        "half of the members are a majority",
        "base/consensus/src/ids.rs",
        "self.count() / 2 + 1",
        "self.count().div_ceil(2)",
    ),
    of_consensus(
        "a candidate leads without its own promise",
        ELECTION,
        "if candidacy.has_own && groups.iter()",
        "if groups.iter()",
    ),
    of_consensus(
        "a candidate begins behind what it has accepted",
        ELECTION,
        "let first = self.chosen + 1;\n        let own",
        "let first = self.log.last() + 1;\n        let own",
    ),
    of_consensus(
        "a part of a promise counts as the whole",
        ELECTION,
        "promised.is_whole = is_last;",
        "promised.is_whole = true;",
    ),
    Mutant {
        equivalent: Some(
            "a promise of another ballot than the promised one is never sent: that is asked once more where it is sent",
        ),
        ..of_consensus(
            "a promise is answered to a lower ballot",
            ACCEPTOR,
            "if ballot < self.promised {\n            out.send(from, Message::Rejected { ballot, promised: self.promised });\n            return;\n        }",
            "if ballot.counter == u64::MAX {\n            return;\n        }",
        )
    },
    of_consensus(
        "a follower believes that all it is told to be chosen is what it has",
        REPLICA,
        "            Message::Heartbeat { ballot, chosen, round } => {\n                if self.follow(now, from, ballot, out) {\n                    self.learn(chosen.min(self.agreed), out);",
        "            Message::Heartbeat { ballot, chosen, round } => {\n                if self.follow(now, from, ballot, out) {\n                    self.learn(chosen.min(self.log.last()), out);",
    ),
    of_consensus(
        "a follower says in its answers to heartbeats that all is durable",
        REPLICA,
        "let (through, expected) = (self.durable, self.agreed + 1);",
        "let (through, expected) = (self.agreed, self.agreed + 1);",
    ),
    of_consensus(
        "a follower takes what comes too early",
        ACCEPTOR,
        "let is_gap = first > self.agreed + 1;",
        "let is_gap = first > self.log.last() + 1;",
    ),
    of_consensus(
        "a recovery believes that all it finds is agreed",
        RECOVER,
        "while is_agreed(self.agreed + 1) {",
        "while is_agreed(self.agreed + 1) || self.log.get(self.agreed + 1).is_some() {",
    ),
    of_consensus(
        "a recovery takes all of its log for chosen",
        RECOVER,
        "while self.learn_to_change(chosen.min(self.log.last())) {}",
        "while self.learn_to_change(self.log.last().max(chosen.min(1))) {}",
    ),
    of_consensus(
        "records are trimmed before the head that takes their place is durable",
        SNAPSHOT,
        "self.waiting.push_back((number + 1, trim));",
        "self.waiting.push_back((0, trim));\n        let _ = number;",
    ),
    of_consensus(
        "the trim takes the records of entries behind the snapshot",
        SNAPSHOT,
        "let first = self.log.first_record_behind(through).unwrap_or(number);",
        "let first = number;",
    ),
    of_consensus(
        "a snapshot counts as delivered one entry too far",
        SNAPSHOT,
        "        self.delivered = through;\n        self.weight_delivered = 0;",
        "        self.delivered = through + 1;\n        self.weight_delivered = 0;",
    ),
    of_consensus(
        "a leader that is cut off serves reads by the answers of one",
        READS,
        "let (id, needed) = (self.config.id, members.majority());",
        "let (id, needed) = (self.config.id, 1);",
    ),
    of_consensus(
        "a read is served before what it must see was delivered",
        READS,
        "read.round <= answered && read.instance <= delivered;",
        "read.round <= answered && read.instance <= delivered + 1;",
    ),
    of_consensus(
        "the smallest record behind a snapshot is the first entry's",
        LOG,
        "behind.map(|slot| slot.record).min()",
        "behind.map(|slot| slot.record).next()",
    ),
    of_consensus(
        "a follower's acknowledgement of an older ballot counts",
        LEADER,
        "self.leading().filter(|(_, by)| by.ballot == ballot) else { return };\n        let Some(peer) = lead.peer(from) else { return };\n        peer.has(now, position, by.log.last());\n        if is_gap",
        "self.leading().filter(|(_, by)| by.ballot >= ballot) else { return };\n        let Some(peer) = lead.peer(from) else { return };\n        peer.has(now, position, by.log.last());\n        if is_gap",
    ),
    Mutant {
        equivalent: Some(
            "what was skipped is missed at the follower, which says so and is sent it: it costs a round and nothing else",
        ),
        ..of_consensus(
            "a follower is skipped what it lacks",
            PEER,
            "self.next += entries.len() as u64;",
            "self.next += entries.len() as u64 + 1;",
        )
    },
    // The store's.
    of_store(
        "the sync of a log is left out",
        STORE_LOG,
        "Sync::Data => self.file.sync_data(),",
        "Sync::Data => Ok(()),",
    ),
    of_store(
        "a cell takes its name before it is synced",
        CELL,
        "        self.file.sync_all().map_err(unsynced(&self.beside))?;\n        let is_long = self.bytes > PART_BYTES as u64;\n        let replaced =\n            is_long.then(|| Some((files.open(&self.path).ok()?, files.length(&self.path).ok()?)));\n        files\n            .rename(&self.beside, &self.path)\n            .map_err(StoreError::system(\"renaming\", &self.beside))?;",
        "        let is_long = self.bytes > PART_BYTES as u64;\n        let replaced =\n            is_long.then(|| Some((files.open(&self.path).ok()?, files.length(&self.path).ok()?)));\n        files\n            .rename(&self.beside, &self.path)\n            .map_err(StoreError::system(\"renaming\", &self.beside))?;\n        self.file.sync_all().map_err(unsynced(&self.beside))?;",
    ),
    of_store(
        "a cell is told before its name is durable",
        CELL,
        "        sync_folder(files, self.path.parent().unwrap_or(Path::new(\".\")))?;",
        "        let _ = sync_folder;",
    ),
    of_store(
        "a torn record is taken as whole",
        FORMAT,
        "let is_whole = stamp != 0 && checksum == crc32fast::hash(&bytes[at + 4..end]);",
        "let is_whole = stamp != 0 && checksum != 0;",
    ),
    of_store(
        "a recovery stops early",
        FORMAT,
        "let Some(next) = scan.next.checked_add(1) else { break };",
        "let Some(next) = scan.next.checked_add(1).filter(|it| it % 50 != 0) else { break };",
    ),
    Mutant {
        equivalent: Some(
            "a disk that keeps all that it has synced never shows a broken record that was durable; unit tests flip its bits",
        ),
        ..of_store(
            "a recovery does not look at the rest of a segment after a broken record",
            FORMAT,
            "    if was_durable(bytes, scan.end, scan.next, Some(header.stamp)) {",
            "    if was_durable(bytes, bytes.len(), scan.next, Some(header.stamp)) {",
        )
    },
    of_store(
        "what a start finds is not made durable",
        OPEN,
        "    file.sync_all().map_err(|source| StoreError::Sync { path: path.to_owned(), source })\n",
        "    Ok(())\n",
    ),
    of_store(
        "what a start finds is made durable only where it cuts something",
        OPEN,
        "    if length > end {\n",
        "    if length == end {\n        return Ok(());\n    }\n    if length > end {\n",
    ),
    of_store(
        "a new segment is used before its name is durable",
        SEGMENTS,
        "    let file = made?;\n    sync_folder(files, path.parent().unwrap_or(Path::new(\".\")))?;",
        "    let file = made?;",
    ),
    of_store(
        "a segment is used again before its new name is durable",
        SEGMENTS,
        "        sync_folder(&*self.files, &self.folder)?;\n",
        "",
    ),
    of_store(
        "segments are let go of before the disk knows that they are not needed",
        SEGMENTS,
        "        if cell::replace(&*self.files, &start_path(&self.folder), &start.to_le_bytes()).is_err() {",
        "        if start == u64::MAX {",
    ),
    // Of the group on its connections, log and cells.
    of_kv(
        "a snapshot that is installed is not told to the state machine",
        GROUP,
        "self.events.push_back(Event::Install { through });",
        "let _ = through;",
    ),
    Mutant {
        equivalent: Some(
            "a snapshot is written only while the log names the current one, so a head that becomes durable always names that",
        ),
        ..of_kv(
            "a head that becomes durable is taken to name the current snapshot",
            SNAPSHOTS,
            "pub(crate) fn named(&mut self, through: Instance) {\n        self.named = Some(through);",
            "pub(crate) fn named(&mut self, _: Instance) {\n        self.named = self.current.as_ref().map(|held| held.through);",
        )
    },
    of_kv(
        "the cell of the snapshot that the log names is written over",
        SNAPSHOTS,
        "let is_settled = through.is_none() || through == self.named;",
        "let is_settled = through.is_none() || through >= self.named;",
    ),
    // Of the database.
    of_kv(
        "a snapshot is of one entry later than it says",
        "base/replicated/src/order.rs",
        "group.snapshot(through, part, is_last, out)",
        "group.snapshot(through.saturating_sub(1), part, is_last, out)",
    ),
    of_kv(
        "what is sent again is executed again",
        SESSIONS,
        "std::cmp::Ordering::Equal => Admitted::Repeated(place),",
        "std::cmp::Ordering::Equal => Admitted::Next(place),",
    ),
    of_kv(
        "a late repetition is executed",
        SESSIONS,
        "std::cmp::Ordering::Less => Admitted::Refused(Status::TooLate),",
        "std::cmp::Ordering::Less => Admitted::Next(place),",
    ),
    Mutant {
        equivalent: Some(
            "a leader's entries are decided in the order in which they were proposed, and all are given up when it leads no more: the first is always the one",
        ),
        ..of_kv(
            "answers go to whoever asked first",
            SUBMISSIONS,
            "let place = self.proposed.iter().position(|(at, _)| *at == id)?;",
            "let place = self.proposed.iter().position(|(at, _)| *at <= id)?;",
        )
    },
    of_kv(
        "a replica that leads no more says nothing to whom it owes answers, and keeps them",
        ENTRIES,
        "        for asked in self.submissions.give_up_proposed() {\n            out.close(asked.connection);\n        }",
        "        for asked in self.submissions.give_up_proposed() {\n            write_refused(out.send(asked.connection), asked.number, Why::Busy, self.replica);\n        }",
    ),
    of_kv(
        "a replica reads by itself, whoever leads",
        "systems/kv/node/src/node.rs",
        "if self.order.group().is_none() {\n            return self.carry_out_read",
        "if self.order.group().is_none() || self.replica != 99 {\n            return self.carry_out_read",
    ),
    // Of the atomizer's machine.
    of_atomizer(
        "inputs that were admitted are not spent",
        MACHINE,
        "        inputs.iter().for_each(|input| self.ring.insert(input));\n",
        "",
    ),
    of_atomizer(
        "one too many blocks may lie between attestation and admission",
        MACHINE,
        "let why = if offset > self.rules.depth && !inputs.is_empty() {",
        "let why = if offset > self.rules.depth + 1 && !inputs.is_empty() {",
    ),
    of_atomizer(
        "a block does not close the set of its inputs",
        MACHINE,
        "        self.ring.rotate();\n",
        "",
    ),
    of_atomizer(
        "a block has the height of the one before it",
        MACHINE,
        "(block.height, block.ledger, block.previous) = (self.height,",
        "(block.height, block.ledger, block.previous) = (self.height - 1,",
    ),
    of_atomizer(
        "names are compared by their tag alone",
        SPENT,
        "if is_alike && self.names[(slot as u32 - 1) as usize] == *name {",
        "if is_alike || self.names[(slot as u32 - 1) as usize] == *name {",
    ),
];
