//! Followers that lag: what is sent again, how much is under way, and snapshots.

use std::time::Duration;

use super::group::{Group, id};
use crate::{Effect, Input, Message};

/// Claim: what was lost on the way is sent again, once, from where it is missing.
#[test]
fn what_was_lost_is_sent_again() {
    let mut group = Group::led(3, |_| {});
    for value in 0..10 {
        group.propose(0, value);
    }
    let is_third = |to, m: &Message| to == id(1) && matches!(m, Message::Accept { first: 3, .. });
    group.wire.retain(|(_, to, message)| !is_third(*to, message));
    group.sent.clear();
    group.settle();
    group.pass(Duration::from_millis(200));
    assert_eq!(group.values(1), (0..10).collect::<Vec<_>>());
    let again: usize = group.sent.iter().map(|(_, _, message)| message.bodies().count()).sum();
    assert_eq!(again, 8, "values 3 to 10, once");
}

/// Claim: no more is under way to a follower that says nothing than the bound, and everything comes once it answers.
#[test]
fn what_is_under_way_is_bounded() {
    let mut group = Group::led(3, |config| config.peer_bytes_max = 1_000);
    group.cut = vec![id(2)];
    for value in 0..200 {
        group.propose(0, value);
        group.settle();
    }
    assert_eq!(group.values(0).len(), 200);
    let to_dead = group.sent.iter().filter(|(_, to, _)| *to == id(2));
    let bytes: usize =
        to_dead.flat_map(|(_, _, message)| message.bodies()).map(|b| b.len() + 64).sum();
    assert!((900..=1_000).contains(&bytes), "{bytes} bytes are under way");
    group.cut.clear();
    group.pass(Duration::from_millis(300));
    assert_eq!(group.values(2), (0..200).collect::<Vec<_>>());
}

/// The leader's state machine makes a snapshot of all that it has.
fn make_snapshot(group: &mut Group, number: usize) -> u64 {
    let through = group.all[number].replica.delivered();
    group.tell(number, Input::SnapshotMade { through });
    through
}

/// Claim: the log is trimmed by a snapshot although a replica is dead, once the record that says so is durable.
#[test]
fn a_dead_replica_stops_no_trimming() {
    let mut group = Group::led(3, |config| config.retain_bytes = 0);
    group.cut = vec![id(2)];
    for value in 0..20 {
        group.propose(0, value);
        group.settle();
    }
    group.all[0].syncs = false;
    let through = make_snapshot(&mut group, 0);
    let trims = |group: &Group| {
        let is_trim = |effect: &&Effect| matches!(effect, Effect::Trim { .. });
        group.all[0].other.iter().filter(is_trim).cloned().collect::<Vec<_>>()
    };
    assert_eq!(trims(&group), []);
    group.sync(0);
    let records_before = group.all[0].records.len() as u64 - 1;
    assert_eq!(trims(&group), [Effect::Trim { records_before, snapshots_before: through }]);
    group.restart(0, usize::MAX);
    assert_eq!(group.all[0].replica.snapshot().through, 20);
    assert_eq!(group.all[0].replica.delivered(), 20);
}

/// Carries a snapshot of these bytes from 0 to 2, as both state machines would; what 2 installed.
fn carry_snapshot(group: &mut Group, whole: &[u8]) -> Vec<u8> {
    let mut installed = Vec::new();
    for _ in 0..100 {
        for effect in std::mem::take(&mut group.all[0].other) {
            let Effect::ReadSnapshot { to, through, offset, bytes_max } = effect else { continue };
            let start = usize::try_from(offset).unwrap().min(whole.len());
            let end = (start + bytes_max as usize).min(whole.len());
            let (bytes, is_last) = (whole[start..end].into(), end == whole.len());
            group.tell(0, Input::SnapshotPart { to, through, offset, bytes, is_last });
        }
        group.settle();
        for effect in std::mem::take(&mut group.all[2].other) {
            let Effect::InstallPart { through, offset, bytes, is_last } = effect else { continue };
            assert_eq!(offset, installed.len() as u64);
            installed.extend_from_slice(&bytes);
            if is_last {
                group.tell(2, Input::SnapshotInstalled { through });
                group.settle();
                return installed;
            }
        }
        group.pass(Duration::from_millis(20));
    }
    panic!("the snapshot did not come: {} bytes of it", installed.len());
}

/// Claim: what the leader's log no longer has comes as a snapshot in parts, with lost ones asked for again, and then the
/// log goes on behind it.
#[test]
fn a_snapshot_comes_in_parts() {
    let mut group = Group::led(3, |config| {
        config.retain_bytes = 0;
        config.snapshot_part_bytes = 10;
    });
    group.cut = vec![id(2)];
    for value in 0..20 {
        group.propose(0, value);
        group.settle();
    }
    group.pass(Duration::from_secs(1));
    make_snapshot(&mut group, 0);
    group.propose(0, 20);
    group.settle();
    assert!(group.values(2).is_empty());
    group.cut.clear();
    group.pass(Duration::from_millis(100));
    let whole: Vec<u8> = (0..95).collect();
    assert_eq!(carry_snapshot(&mut group, &whole), whole);
    group.pass(Duration::from_millis(100));
    assert_eq!(group.all[2].replica.snapshot().through, 20);
    assert_eq!(group.values(2), [20], "what follows the snapshot, and nothing before it");
    group.restart(2, usize::MAX);
    assert_eq!(group.all[2].replica.delivered(), 20, "it stands on the snapshot");
    group.cut = vec![id(1)];
    group.pass(Duration::from_millis(100));
    assert_eq!(group.values(2), [20], "and has what came behind it");
}

/// Claim: a part that is lost is asked for again.
#[test]
fn a_lost_part_is_sent_again() {
    let mut group = Group::led(3, |config| config.retain_bytes = 0);
    group.cut = vec![id(2)];
    group.propose(0, 1);
    group.settle();
    group.pass(Duration::from_secs(1));
    make_snapshot(&mut group, 0);
    group.cut.clear();
    group.pass(Duration::from_millis(50));
    group.all[0].other.clear();
    group.pass(Duration::from_millis(200));
    let asks = |effect: &Effect| matches!(effect, Effect::ReadSnapshot { offset: 0, .. });
    assert!(group.all[0].other.iter().any(asks), "asked again");
    assert_eq!(carry_snapshot(&mut group, b"state"), b"state");
}

/// Claim: once as many bytes were delivered as the bound says, a snapshot is asked for, once.
#[test]
fn a_snapshot_is_asked_for() {
    let mut group = Group::led(3, |config| config.snapshot_after_bytes = 720);
    for value in 0..30 {
        group.propose(0, value);
        group.settle();
    }
    let asked = |group: &Group| {
        group.all[0].other.iter().filter(|effect| **effect == Effect::NeedSnapshot).count()
    };
    assert_eq!(asked(&group), 1);
    make_snapshot(&mut group, 0);
    for value in 0..10 {
        group.propose(0, value);
        group.settle();
    }
    assert_eq!(asked(&group), 2);
}
