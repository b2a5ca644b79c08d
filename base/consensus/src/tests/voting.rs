//! Coming to lead.

use std::time::Duration;

use super::group::{Group, id};
use crate::{Accepted, Ballot, Entry, Input, Message, Proposal, ReplicaId};

/// Claim: a group without a leader gets one, and keeps it while it is heard.
#[test]
fn a_leader_comes_and_stays() {
    let mut group = Group::of(3, |_| {});
    group.pass(Duration::from_secs(2));
    let leader = group.all.iter().position(|member| member.replica.is_leader()).unwrap();
    let ballot = group.all[leader].replica.ballot();
    group.pass(Duration::from_secs(20));
    assert_eq!(group.all[leader].replica.ballot(), ballot);
    assert!(group.all.iter().all(|member| member.replica.leader() == Some(id(leader))));
}

/// Claim: one that was cut off does not unseat a leader that works when it comes back.
#[test]
fn one_that_was_cut_off_unseats_nobody() {
    let mut group = Group::led(3, |_| {});
    let ballot = group.all[0].replica.ballot();
    group.cut = vec![id(2)];
    group.pass(Duration::from_secs(10));
    group.cut.clear();
    group.pass(Duration::from_secs(3));
    assert_eq!(group.all[0].replica.ballot(), ballot);
    assert_eq!(group.all[2].replica.leader(), Some(id(0)));
}

/// Claim: a promise goes out once it is durable, and the candidate's own counts once it is.
#[test]
fn promises_are_durable() {
    let mut group = Group::of(3, |_| {});
    for member in &mut group.all {
        member.syncs = false;
    }
    group.now = group.now.plus(Duration::from_secs(2));
    group.tell(0, Input::Wake);
    group.settle();
    let promises = |group: &Group| group.count(|m| matches!(m, Message::Promise { .. }));
    assert_eq!(promises(&group), 0);
    group.now = group.now.plus(Duration::from_millis(100));
    group.tell(0, Input::Wake);
    group.settle();
    group.sync(1);
    group.settle();
    assert_eq!(promises(&group), 1, "it was asked twice");
    assert!(!group.all[0].replica.is_leader(), "its own promise is not durable");
    group.sync(0);
    assert!(group.all[0].replica.is_leader());
}

/// Claim: after a promise nothing of a lower ballot is accepted, and its sender is told.
#[test]
fn a_lower_ballot_is_rejected() {
    let mut group = Group::led(3, |_| {});
    let old = group.all[0].replica.ballot();
    group.cut = vec![id(0)];
    group.elect(1);
    group.cut.clear();
    group.propose(0, 5);
    group.settle();
    assert!(group.values(0).is_empty());
    assert!(!group.all[0].replica.is_leader(), "it was told of the higher ballot");
    assert!(group.count(|m| matches!(m, Message::Rejected { ballot, .. } if *ballot == old)) > 0);
    group.propose(1, 6);
    group.settle();
    group.pass(Duration::from_millis(200));
    assert_eq!(group.values(0), [6], "what the old leader proposed was never chosen");
}

/// Values of leader 0 arrive at 1 and nowhere else, and nobody learns that they are chosen. Then 0 is cut off.
fn only_one_accepts(group: &mut Group, count: u64) {
    for value in 0..count {
        group.propose(0, value);
    }
    while let Some((from, to, message)) = group.wire.pop_front() {
        if from == id(0) && to == id(1) {
            group.tell(1, Input::Received { from, message });
        }
    }
    group.sent.clear();
    group.cut = vec![id(0)];
}

/// Claim: a new leader proposes everything that was accepted once more, with one prepare and in one round, however much.
#[test]
fn everything_is_taken_over_in_one_round() {
    let mut group = Group::led(3, |_| {});
    only_one_accepts(&mut group, 100);
    group.elect(2);
    let prepares = group.count(|m| matches!(m, Message::Prepare { .. }));
    assert_eq!(prepares, 2, "one to each of the others");
    assert_eq!(group.values(2), (0..100).collect::<Vec<_>>());
}

/// Claim: a promise of more than a message holds comes in parts, each asked for.
#[test]
fn promises_come_in_parts() {
    let mut group = Group::led(3, |config| config.message_bytes_max = 500);
    only_one_accepts(&mut group, 60);
    group.elect(2);
    let longest = |(_, _, message): &(ReplicaId, ReplicaId, Message)| message.bodies().count();
    assert!(group.sent.iter().map(longest).max().unwrap() <= 6);
    assert!(group.count(|m| matches!(m, Message::Promise { .. })) >= 10);
    assert_eq!(group.values(2), (0..60).collect::<Vec<_>>());
}

fn ballot(counter: u64, replica: u8) -> Ballot {
    Ballot { counter, replica: ReplicaId(replica) }
}

fn accepted(ballot: Ballot, [origin, follows]: [Ballot; 2], value: u64) -> Accepted {
    let entry = Entry::Value(value.to_le_bytes().as_slice().into());
    Accepted { ballot, proposal: Proposal { origin, follows, entry } }
}

/// Lets replica 0 of five be a candidate and gives it these two promises; what it then proposes: the values, none for a noop.
fn takes_over(promises: [Vec<Accepted>; 2]) -> Vec<Option<u64>> {
    let mut group = Group::of(5, |_| {});
    group.now = group.now.plus(Duration::from_secs(2));
    group.all[0].replica.counter_seen = 90;
    group.tell(0, Input::Wake);
    while let Some((from, to, message)) = group.wire.pop_front() {
        if matches!(message, Message::AskForVotes { .. } | Message::Vote { .. }) {
            group.tell(to.0.into(), Input::Received { from, message });
        }
    }
    let ballot = group.all[0].replica.ballot();
    for (from, entries) in [1, 2].into_iter().zip(promises) {
        let message = Message::Promise { ballot, first: 1, chosen: 0, is_last: true, entries };
        group.tell(0, Input::Received { from: ReplicaId(from), message });
    }
    assert!(group.all[0].replica.is_leader());
    let proposed = group.wire.iter().find_map(|(_, to, message)| match message {
        Message::Accept { entries, .. } if *to == ReplicaId(3) => Some(entries.clone()),
        _ => None,
    });
    let value = |proposal: Proposal| {
        proposal.entry.body().map(|body| u64::from_le_bytes(body[..].try_into().unwrap()))
    };
    proposed.into_iter().flatten().map(value).collect()
}

/// Claim: of what was accepted at an instance the highest ballot is proposed again, instance by instance; an entry that
/// followed another than the one before it now is left behind, with all that follows.
#[test]
fn the_highest_ballot_wins() {
    let (zero, one, two, three) = (Ballot::ZERO, ballot(1, 1), ballot(2, 2), ballot(3, 1));
    let first = [one, zero];
    let left = vec![accepted(one, first, 11), accepted(two, [two, one], 12)];
    let right = vec![
        accepted(two, first, 11),
        accepted(one, [one, one], 22),
        accepted(one, [one, one], 23),
    ];
    assert_eq!(takes_over([left.clone(), right.clone()]), [Some(11), Some(12)], "23 followed 22");
    assert_eq!(takes_over([right, left]), [Some(11), Some(12)]);
    let left = vec![accepted(two, first, 11)];
    let right = vec![accepted(one, first, 11), accepted(one, [one, one], 22)];
    assert_eq!(takes_over([left, right]), [Some(11), Some(22)], "nothing came between them");
    // The leader of ballot 3 knew nothing of ballot 2 and got only its first entry out.
    let left = vec![accepted(three, first, 11)];
    let right = vec![accepted(two, [two, zero], 41), accepted(two, [two, two], 42)];
    assert_eq!(takes_over([left, right]), [Some(11)], "42 followed 41");
}

/// Claim: promises of nothing let a leader begin at the first instance.
#[test]
fn nothing_found() {
    assert_eq!(takes_over([vec![], vec![]]), []);
}
