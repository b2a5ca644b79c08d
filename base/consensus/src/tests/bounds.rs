//! What comes from outside and makes no sense.

use std::time::Duration;

use super::group::{Group, id};
use crate::ids::COUNTER_JUMP_MAX;
use crate::{Ballot, Distrust, Effect, Entry, Input, Message, Proposal, ReplicaId, Request};

/// Claim: messages in another's ballot, from strangers, of the future and of the past change nothing that was agreed.
#[test]
fn nonsense_changes_nothing() {
    let mut group = Group::led(3, |_| {});
    group.propose(0, 1);
    group.settle();
    let ballot = group.all[0].replica.ballot();
    let far = Ballot { counter: 1 << 62, replica: ReplicaId(9) };
    let nonsense = [
        Message::Heartbeat { ballot: far, chosen: 1 << 62, round: 1 },
        Message::Accept { ballot, chosen: 1 << 62, first: 1 << 62, entries: vec![] },
        Message::Accept { ballot, chosen: 0, first: 0, entries: vec![] },
        Message::Accepted { ballot, through: 1 << 62, expected: 1 << 62, is_gap: true },
        Message::Heard { ballot, round: 1 << 62, through: 1 << 62, expected: 0 },
        Message::Promise { ballot, first: 1 << 62, chosen: 7, is_last: false, entries: vec![] },
        Message::SnapshotWanted { ballot, through: 4, offset: 1 << 62 },
        Message::Vote { ballot, granted: true, promised: ballot },
        Message::Prepare { ballot: far, first: 0 },
    ];
    for message in nonsense {
        for to in 0..3 {
            for from in [0, 1, 7].into_iter().filter(|from| *from != to) {
                let message = message.clone();
                group.tell(to, Input::Received { from: id(from), message });
            }
        }
    }
    group.wire.retain(|(_, to, _)| usize::from(to.0) < 3);
    group.settle();
    group.propose(0, 2);
    group.settle();
    assert_eq!(group.values(0), [1, 2]);
}

/// Claim: a ballot far beyond all that were seen is refused and said, whatever message claims it: heeding it would leave no
/// ballots to lead with, for ever. One within the bound is heeded.
#[test]
fn a_ballot_that_jumps_is_refused() {
    let mut group = Group::led(3, |_| {});
    let seen = group.all[1].replica.ballot().counter;
    let far = Ballot { counter: seen + COUNTER_JUMP_MAX + 1, replica: ReplicaId(2) };
    let ballot = group.all[0].replica.ballot();
    for message in [
        Message::Prepare { ballot: far, first: 1 },
        Message::Vote { ballot, granted: false, promised: far },
        Message::Rejected { ballot, promised: far },
    ] {
        for to in 0..2 {
            group.tell(to, Input::Received { from: id(2), message: message.clone() });
            let why = Distrust::BallotJump { counter: far.counter, seen };
            let said = Effect::Distrusted { from: id(2), why };
            assert_eq!(group.all[to].other.last(), Some(&said), "{message:?}");
        }
    }
    group.wire.clear();
    for number in 0..3 {
        group.restart(number, usize::MAX);
    }
    group.elect(1);
    group.propose(1, 7);
    group.settle();
    assert_eq!(group.values(1), [7]);
    let near = Ballot { counter: seen + COUNTER_JUMP_MAX, replica: ReplicaId(2) };
    let message = Message::Prepare { ballot: near, first: 1 };
    group.tell(0, Input::Received { from: id(2), message });
    assert_eq!(group.all[0].replica.ballot(), near);
}

/// Claim: a follower whose entry is another than its leader's, or who is sent one that follows another than it has, says so
/// and takes part no more: it acknowledges nothing, votes for nobody and does not lead.
#[test]
fn a_follower_that_holds_something_else_takes_part_no_more() {
    let other = Ballot { counter: 1, replica: ReplicaId(7) };
    for first in [2, 3] {
        let mut group = Group::led(3, |_| {});
        (0..2).for_each(|value| group.propose(0, value));
        group.settle();
        group.pass(Duration::from_millis(200));
        let ballot = group.all[0].replica.ballot();
        let entry = Entry::Value(b"elsewhere".as_slice().into());
        let entries = vec![Proposal { origin: other, follows: other, entry }];
        let message = Message::Accept { ballot, chosen: 2, first, entries };
        group.tell(1, Input::Received { from: id(0), message });
        let said = Effect::Distrusted { from: id(0), why: Distrust::Diverged { instance: first } };
        assert!(group.all[1].other.contains(&said) && group.all[1].replica.has_diverged());
        group.sent.clear();
        group.pass(Duration::from_secs(3));
        assert_eq!(group.sent.iter().filter(|(from, ..)| *from == id(1)).count(), 0);
        group.propose(1, 9);
        assert!(matches!(group.all[1].refused[..], [(Request::Propose(9), _)]));
    }
}
