//! Proposing, choosing and reading.

use std::time::Duration;

use super::group::{Group, id};
use crate::{Entry, Input, Message, Refusal, Request};

/// Claim: a value is chosen once a majority has it durably, whoever that is: the leader's own disk may be the last.
#[test]
fn a_majority_of_disks_decides() {
    let mut group = Group::led(3, |_| {});
    for member in &mut group.all {
        member.syncs = false;
    }
    group.propose(0, 7);
    group.settle();
    assert!(group.values(0).is_empty(), "accepted by all and durable nowhere");
    group.sync(1);
    group.settle();
    assert!(group.values(0).is_empty(), "durable at one");
    group.sync(2);
    group.settle();
    assert_eq!(group.values(0), [7], "durable at two followers, and not at the leader");
    assert_eq!(group.all[0].delivered[0].2, Some(7), "its proposer is told");
}

/// Claim: with the leader's own disk one follower is enough, and a dead one holds nobody up.
#[test]
fn a_dead_follower_holds_nobody_up() {
    let mut group = Group::led(3, |_| {});
    group.cut = vec![id(2)];
    for value in 0..50 {
        group.propose(0, value);
        group.settle();
    }
    assert_eq!(group.values(0), (0..50).collect::<Vec<_>>());
}

/// Claim: with the switch "all" a dead follower stalls everybody, and goes on when it is back; with "majority" it does not.
#[test]
fn waiting_for_all_stalls() {
    let mut group = Group::led(3, |config| config.wait_for_all = true);
    group.propose(0, 1);
    group.settle();
    assert_eq!(group.values(0), [1]);
    group.cut = vec![id(2)];
    group.propose(0, 2);
    group.settle();
    group.pass(Duration::from_secs(1));
    assert!(group.all[0].replica.is_leader(), "a majority still hears it");
    assert_eq!(group.values(0), [1], "one replica lacks it");
    group.cut.clear();
    group.pass(Duration::from_millis(200));
    assert_eq!((group.values(0), group.values(2)), (vec![1, 2], vec![1, 2]));
}

/// Claim: a value crosses the network once a follower; with the switch that resends it, twice.
#[test]
fn values_cross_once() {
    for (resends, times) in [(false, 2), (true, 4)] {
        let mut group = Group::led(3, |config| config.resend_values = resends);
        for value in 0..20 {
            group.propose(0, value);
            group.settle();
        }
        group.pass(Duration::from_millis(100));
        let copies: usize = group.sent.iter().map(|(_, _, message)| message.bodies().count()).sum();
        assert_eq!(copies, 20 * times);
        assert_eq!(group.values(2), (0..20).collect::<Vec<_>>());
    }
}

/// Claim: proposals are pipelined up to the window, in count and in bytes, and what is beyond is refused, not queued.
#[test]
fn the_window_is_bounded() {
    let mut group = Group::led(3, |config| config.window_max = 4);
    for value in 0..6 {
        group.propose(0, value);
    }
    let busy = |id| (Request::Propose(id), Refusal::Busy);
    assert_eq!(group.all[0].refused, [busy(4), busy(5)]);
    assert!(!group.all[0].replica.can_propose(8));
    group.settle();
    assert_eq!(group.values(0), [0, 1, 2, 3]);
    assert!(group.all[0].replica.can_propose(8));

    let mut group = Group::led(3, |config| config.window_bytes_max = 200);
    for value in 0..4 {
        group.propose(0, value);
    }
    assert_eq!(group.all[0].refused, [busy(2), busy(3)], "72 bytes each");
    group.settle();
    let long: crate::Value = vec![0; 1000].into();
    group.tell(0, Input::Propose { id: 9, value: long });
    group.settle();
    assert_eq!(group.all[0].delivered.last().unwrap().2, Some(9), "one value always fits");
}

/// Claim: a leader whose own disk stands still goes on with the others' disks, but not beyond the bound on what waits for it.
#[test]
fn what_waits_for_the_own_disk_is_bounded() {
    let mut group = Group::led(3, |config| config.peer_bytes_max = 720);
    group.all[0].syncs = false;
    for value in 0..20 {
        group.propose(0, value);
        group.settle();
    }
    assert_eq!(group.values(0), (0..10).collect::<Vec<_>>(), "72 bytes each");
    group.all[0].syncs = true;
    group.sync(0);
    group.propose(0, 20);
    group.settle();
    assert_eq!(group.values(0).last(), Some(&20));
}

/// Claim: a leader whose own disk stands still for as long as followers wait for one gives up, does not try again while it
/// does, and another leads; what it had proposed is not lost, and it follows once its disk works. A disk that is only slow
/// changes nothing.
#[test]
fn a_leader_whose_disk_stands_still_gives_up() {
    let mut group = Group::led(3, |_| {});
    let timeout = group.all[0].config.election_timeout;
    group.all[0].syncs = false;
    for value in 0..8 {
        group.propose(0, value);
        group.settle();
        group.pass(timeout / 2);
        group.sync(0);
        group.settle();
    }
    assert!(group.all[0].replica.is_leader(), "slow is not stuck");
    group.propose(0, 8);
    group.settle();
    assert_eq!(group.values(0).len(), 9, "the others' disks decide");
    group.pass(timeout * 5);
    assert!(!group.all[0].replica.is_leader());
    let leads = (1..3).find(|number| group.all[*number].replica.is_leader());
    let leads = leads.expect("one whose disk works leads");
    let ballot = group.all[leads].replica.ballot();
    group.propose(leads, 9);
    group.settle();
    assert_eq!(group.values(leads), (0..10).collect::<Vec<_>>());
    group.pass(timeout * 10);
    assert_eq!(group.all[leads].replica.ballot(), ballot, "it has not tried to lead");
    group.all[0].syncs = true;
    group.sync(0);
    group.settle();
    group.pass(timeout);
    assert_eq!(group.values(0), (0..10).collect::<Vec<_>>());
    assert_eq!(group.all[0].replica.leader(), Some(id(leads)));
}

/// Claim: a replica that decides alone waits for its disk, however long that takes: there is nobody to leave it to.
#[test]
fn alone_it_waits_for_its_disk() {
    let mut group = Group::led(1, |_| {});
    group.all[0].syncs = false;
    group.propose(0, 1);
    group.pass(group.all[0].config.election_timeout * 5);
    assert!(group.all[0].replica.is_leader() && group.values(0).is_empty());
    group.sync(0);
    assert_eq!(group.values(0), [1]);
}

/// Claim: whoever does not lead refuses, and says who does.
#[test]
fn followers_refuse() {
    let mut group = Group::led(3, |_| {});
    group.propose(1, 5);
    group.tell(1, Input::Read { id: 6 });
    let why = Refusal::NotLeader { leader: Some(id(0)) };
    assert_eq!(group.all[1].refused, [(Request::Propose(5), why), (Request::Read(6), why)]);
    let value: crate::Value = vec![0; crate::VALUE_BYTES_MAX + 1].into();
    group.tell(0, Input::Propose { id: 7, value });
    assert_eq!(group.all[0].refused, [(Request::Propose(7), Refusal::TooLong)]);
}

/// Claim: a read waits for one round of heartbeats and for what was chosen when it came, writes nothing, and reads that come
/// meanwhile share the next round.
#[test]
fn reads_take_a_round() {
    let mut group = Group::led(3, |_| {});
    group.propose(0, 1);
    group.settle();
    let records = group.all[0].records.len();
    let beats = |group: &Group| group.count(|m| matches!(m, Message::Heartbeat { .. }));
    let before = beats(&group);
    for read in 10..20 {
        group.tell(0, Input::Read { id: read });
    }
    assert!(group.all[0].ready.is_empty(), "nobody has answered");
    group.settle();
    assert_eq!(group.all[0].ready, (10..20).map(|read| (read, 1)).collect::<Vec<_>>());
    assert_eq!(beats(&group) - before, 4, "two rounds to two followers");
    assert_eq!(group.all[0].records.len(), records);
}

/// Claim: a leader that is cut off serves no read and, after an election timeout, refuses it and leads no more.
#[test]
fn a_leader_that_is_cut_off_serves_nothing() {
    let mut group = Group::led(3, |_| {});
    group.cut = vec![id(0)];
    group.tell(0, Input::Read { id: 3 });
    group.propose(0, 4);
    group.pass(Duration::from_secs(3));
    assert!(group.all[0].ready.is_empty() && group.values(0).is_empty());
    assert!(!group.all[0].replica.is_leader());
    let why = Refusal::NotLeader { leader: None };
    assert_eq!(group.all[0].refused, [(Request::Read(3), why)]);
    let leads = |number: usize| group.all[number].replica.is_leader();
    assert!(leads(1) || leads(2), "the others have a leader of their own");
}

/// Claim: reads that wait are bounded.
#[test]
fn reads_are_bounded() {
    let mut group = Group::led(3, |config| config.reads_max = 2);
    for read in 0..3 {
        group.tell(0, Input::Read { id: read });
    }
    assert_eq!(group.all[0].refused, [(Request::Read(2), Refusal::Busy)]);
    group.settle();
    assert_eq!(group.all[0].ready.len(), 2);
}

/// Claim: a new leader serves a read only behind everything that the one before it had chosen, though it did not know it.
#[test]
fn a_new_leader_reads_what_the_old_one_chose() {
    let mut group = Group::led(3, |_| {});
    group.propose(0, 1);
    group.settle();
    assert_eq!(group.values(0), [1]);
    assert!(group.values(1).is_empty(), "the follower has it and does not know that it is chosen");
    group.cut = vec![id(0)];
    group.elect(1);
    group.tell(1, Input::Read { id: 8 });
    group.settle();
    assert_eq!(group.all[1].ready, [(8, 1)]);
    assert_eq!(
        group.all[1].delivered,
        [(1, Entry::Value(1u64.to_le_bytes().as_slice().into()), None)]
    );
}

/// Claim: a group of one decides alone.
#[test]
fn one_alone() {
    let mut group = Group::led(1, |_| {});
    group.propose(0, 1);
    group.tell(0, Input::Read { id: 2 });
    assert_eq!((group.values(0), &group.all[0].ready[..]), (vec![1], &[(2, 1)][..]));
}
