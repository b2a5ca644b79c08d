//! What a new life knows of the last.

use std::time::Duration;

use super::group::{Group, id, members};
use crate::{
    Ballot, Config, Effect, Entry, Input, Message, Proposal, Record, RecoverError, Replica,
    ReplicaId, SnapshotHead,
};

/// Claim: whatever prefix of the records is left, the replica begins anew from it, promises nothing less than it had written
/// down, and catches up; nothing that was acknowledged is lost.
#[test]
fn every_prefix_recovers() {
    let mut group = Group::led(3, |_| {});
    for value in 0..10 {
        group.propose(0, value);
        group.settle();
    }
    let all = group.all[2].records.clone();
    for kept in 0..=all.len() {
        group.all[2].records.clone_from(&all);
        group.restart(2, kept);
        group.pass(Duration::from_millis(300));
        assert_eq!(group.values(2), (0..10).collect::<Vec<_>>(), "{kept} records kept");
    }
}

/// Claim: when all lose their power at once, everything that was acknowledged is there again.
#[test]
fn all_restart() {
    let mut group = Group::led(3, |_| {});
    for value in 0..10 {
        group.propose(0, value);
        group.settle();
    }
    for number in 0..3 {
        group.restart(number, usize::MAX);
    }
    assert_eq!(
        group.values(0),
        (0..9).collect::<Vec<_>>(),
        "known to be chosen by the last record"
    );
    group.elect(1);
    assert_eq!(group.values(1), (0..10).collect::<Vec<_>>());
}

/// Claim: a leader that comes back does not lead, and never uses its ballot again.
#[test]
fn a_ballot_is_used_once() {
    let mut group = Group::led(3, |_| {});
    let ballot = group.all[0].replica.ballot();
    group.restart(0, usize::MAX);
    assert!(!group.all[0].replica.is_leader());
    assert_eq!(group.all[0].replica.ballot(), ballot, "its promise is kept");
    group.elect(0);
    assert!(group.all[0].replica.ballot() > ballot);
}

/// Claim: a log to which nothing is appended for a while gets one record more, by which the last one before it is known to
/// have been durable, and no other until something is appended again.
#[test]
fn the_last_record_is_known_to_be_durable() {
    let mut group = Group::led(3, |_| {});
    for value in 0..2 {
        group.propose(0, value);
        group.pass(Duration::from_millis(500));
        let before = group.all[0].records.len();
        group.pass(Duration::from_secs(2));
        let records = &group.all[0].records;
        assert_eq!(records.len(), before + 1);
        let ballot = group.all[0].replica.ballot();
        let mut promise = Vec::new();
        Record::Promised { ballot }.encode(&mut promise);
        assert_eq!(records.last(), Some(&promise));
        group.pass(Duration::from_secs(5));
        assert_eq!(group.all[0].records.len(), before + 1);
    }
}

/// Claim: a promise that was given is kept in the next life.
#[test]
fn promises_are_kept() {
    let mut group = Group::led(3, |_| {});
    let old = group.all[0].replica.ballot();
    group.cut = vec![id(0)];
    group.elect(1);
    let records = group.all[2].records.len();
    group.restart(2, records);
    let message = Message::Accept { ballot: old, chosen: 0, first: 1, entries: vec![] };
    group.tell(2, Input::Received { from: id(0), message });
    let last = &group.wire.back().unwrap().2;
    assert!(matches!(last, Message::Rejected { ballot, .. } if *ballot == old), "{last:?}");
}

/// Claim: a log that was trimmed while a new leader proposed old entries once more, and was half-way through them, is whole:
/// the later of two records of an entry counts, though records of entries behind it come first.
#[test]
fn entries_that_were_accepted_again_leave_no_hole() {
    let mut group = Group::led(3, |config| config.message_bytes_max = 80);
    for value in 0..3 {
        group.propose(0, value);
    }
    let only = |group: &mut Group, is_let: &dyn Fn(usize, &Message) -> bool| {
        while let Some((from, to, message)) = group.wire.pop_front() {
            if is_let(to.0.into(), &message) {
                group.tell(to.0.into(), Input::Received { from, message });
            }
        }
    };
    only(&mut group, &|to, _| to == 1);
    // Replica 2 takes over, and its third entry does not reach replica 1.
    group.now = group.now.plus(Duration::from_secs(2));
    group.tell(2, Input::Wake);
    let is_third = |message: &Message| matches!(message, Message::Accept { first: 3, .. });
    only(&mut group, &|to, message| to != 0 && !(to == 1 && is_third(message)));
    assert!(group.all[2].replica.is_leader());
    group.now = group.now.plus(Duration::from_millis(60));
    group.tell(2, Input::Wake);
    only(&mut group, &|to, message| to != 0 && !(to == 1 && is_third(message)));
    assert_eq!(group.values(1), [0, 1]);
    group.tell(1, Input::SnapshotMade { through: 1 });
    let trim = group.all[1].other.iter().find_map(|effect| match effect {
        Effect::Trim { records_before, .. } => Some(*records_before),
        _ => None,
    });
    let first = trim.expect("the log is trimmed");
    let kept = group.all[1].records.iter().map(Vec::as_slice).skip(usize::try_from(first).unwrap());
    let again = Replica::recover(group.all[1].config.clone(), first, kept).unwrap();
    assert_eq!((again.snapshot().through, again.log.last()), (1, 3));
}

/// Claim: records that are damaged or lack some in the middle are not begun from.
#[test]
fn damaged_logs_are_refused() {
    let mut group = Group::led(3, |_| {});
    for value in 0..4 {
        group.propose(0, value);
        group.settle();
    }
    let records = group.all[1].records.clone();
    let config = || Config::new(id(1), super::group::members(&[0, 1, 2]));
    let recover = |records: &[Vec<u8>]| {
        Replica::recover(config(), 5, records.iter().map(Vec::as_slice)).map(|_| ())
    };
    assert!(recover(&records).is_ok());
    let mut holed = records.clone();
    holed.remove(2);
    assert!(matches!(recover(&holed), Err(RecoverError::Hole { instance: 2 })));
    let mut torn = records;
    torn[3].pop();
    let wrong = recover(&torn).unwrap_err().to_string();
    assert!(wrong.starts_with("record 8 of the log cannot be read: "), "{wrong}");
}

/// Claim: a log whose first records are trimmed may hold entries that were left behind when the replica took over, without
/// the one before them. It recovers, as what it was; only a gap before entries of the promised ballot is damage.
#[test]
fn what_was_left_behind_is_no_hole() {
    let ballot = |counter, replica| Ballot { counter, replica: ReplicaId(replica) };
    let (old, own) = (ballot(3, 0), ballot(5, 1));
    let accepted = |instance, ballot, origin| Record::Accepted {
        instance,
        ballot,
        chosen: 1,
        proposal: Proposal { origin, follows: old, entry: Entry::Noop },
    };
    let snapshot = SnapshotHead { through: 2, origin: old, members: members(&[0, 1, 2]) };
    let recovered = |left_behind| {
        // Entry 3 of the old leader stood before: its record is trimmed. Entry 2 was proposed again, and chosen.
        let records = [
            accepted(4, left_behind, old),
            Record::Promised { ballot: own },
            accepted(2, own, old),
            Record::Head { promised: own, chosen: 2, snapshot: snapshot.clone() },
        ];
        let bytes = records.map(|record| {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            bytes
        });
        let config = Config::new(ReplicaId(1), members(&[0, 1, 2]));
        Replica::recover(config, 3, bytes.iter().map(Vec::as_slice))
    };
    let replica = recovered(old).unwrap();
    assert_eq!((replica.chosen(), replica.ballot()), (2, own));
    assert!(matches!(recovered(own), Err(RecoverError::Hole { instance: 3 })));
}
