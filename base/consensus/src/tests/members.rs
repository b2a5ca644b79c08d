//! Changes of members, one at a time.

use std::time::Duration;

use super::group::{Group, id, members};
use crate::{Input, Refusal, Request};

/// Claim: a newcomer catches up before it has a vote, then has one: the old majority alone decides nothing any more.
#[test]
fn one_joins() {
    let mut group = Group::with_members(4, &[0, 1, 2], |config| config.window_max = 4);
    group.elect(0);
    for value in 0..20 {
        group.propose(0, value);
        group.settle();
    }
    group.cut = vec![id(3)];
    group.tell(0, Input::ChangeMembers { id: 99, members: members(&[0, 1, 2, 3]) });
    group.settle();
    group.propose(0, 20);
    group.settle();
    assert_eq!(group.all[0].replica.members(), &members(&[0, 1, 2]), "it has not caught up");
    assert_eq!(group.values(0).len(), 21, "and holds nobody up");
    group.cut.clear();
    group.pass(Duration::from_millis(200));
    for member in &group.all {
        assert_eq!(member.replica.members(), &members(&[0, 1, 2, 3]));
    }
    assert_eq!(group.values(3), (0..21).collect::<Vec<_>>());
    let told = group.all[0].delivered.iter().find(|(_, _, proposal)| *proposal == Some(99));
    assert!(told.is_some(), "whoever asked is told");
    group.cut = vec![id(2), id(3)];
    group.propose(0, 21);
    group.settle();
    assert_eq!(group.values(0).len(), 21, "two of four are no majority");
}

/// Claim: nothing is proposed behind a change of members until it is chosen.
#[test]
fn nothing_is_proposed_behind_a_change() {
    let mut group = Group::led(4, |_| {});
    group.tell(0, Input::ChangeMembers { id: 1, members: members(&[0, 1, 2]) });
    group.propose(0, 2);
    group.tell(0, Input::ChangeMembers { id: 3, members: members(&[0, 1, 2]) });
    let busy = [(Request::Propose(2), Refusal::Busy), (Request::ChangeMembers(3), Refusal::Busy)];
    assert_eq!(group.all[0].refused, busy);
    group.settle();
    group.propose(0, 4);
    group.settle();
    assert_eq!(group.values(0), [4]);
}

/// Claim: a change of several members, or of none, is refused.
#[test]
fn one_at_a_time() {
    let mut group = Group::led(3, |_| {});
    for (number, others) in [(1, &[0, 1, 2][..]), (2, &[0]), (3, &[0, 1, 3])] {
        group.tell(0, Input::ChangeMembers { id: number, members: members(others) });
    }
    let why = Refusal::NotOneChange;
    let refused = [1, 2, 3].map(|number| (Request::ChangeMembers(number), why));
    assert_eq!(group.all[0].refused, refused);
    group.tell(1, Input::ChangeMembers { id: 4, members: members(&[0, 1]) });
    let why = Refusal::NotLeader { leader: Some(id(0)) };
    assert_eq!(group.all[1].refused, [(Request::ChangeMembers(4), why)]);
}

/// Claim: a newcomer that never comes gives way to the next change, and its asker is told.
#[test]
fn a_newcomer_that_never_comes_gives_way() {
    let mut group = Group::led(3, |_| {});
    group.cut = vec![id(3)];
    group.tell(0, Input::ChangeMembers { id: 1, members: members(&[0, 1, 2, 3]) });
    group.settle();
    group.tell(0, Input::ChangeMembers { id: 2, members: members(&[0, 1]) });
    group.settle();
    assert_eq!(group.all[0].refused, [(Request::ChangeMembers(1), Refusal::Busy)]);
    assert_eq!(group.all[0].replica.members(), &members(&[0, 1]));
}

/// Claim: a leader that is removed leads until that is chosen, then steps down, and the others go on without it.
#[test]
fn a_leader_leaves() {
    let mut group = Group::led(3, |_| {});
    group.propose(0, 1);
    group.settle();
    group.tell(0, Input::ChangeMembers { id: 2, members: members(&[1, 2]) });
    group.settle();
    assert!(!group.all[0].replica.is_leader());
    group.pass(Duration::from_secs(5));
    assert!(!group.all[0].replica.is_leader(), "it has no vote and asks for none");
    let leader = (1..3).find(|number| group.all[*number].replica.is_leader()).unwrap();
    group.cut = vec![id(0)];
    group.propose(leader, 3);
    group.settle();
    assert_eq!(group.values(leader), [1, 3]);
}

/// Claim: members are known again after a restart, from records and from a snapshot.
#[test]
fn members_are_remembered() {
    let mut group = Group::led(4, |config| config.retain_bytes = 0);
    group.tell(0, Input::ChangeMembers { id: 1, members: members(&[0, 1, 2]) });
    group.settle();
    group.propose(0, 2);
    group.settle();
    group.restart(0, usize::MAX);
    assert_eq!(group.all[0].replica.members(), &members(&[0, 1, 2]));
    let through = group.all[0].replica.delivered();
    group.tell(0, Input::SnapshotMade { through });
    assert_eq!(group.all[0].replica.snapshot().members, members(&[0, 1, 2]));
    group.restart(0, usize::MAX);
    assert_eq!(group.all[0].replica.members(), &members(&[0, 1, 2]));
}

/// Claim: that a change of members is chosen outlives a restart of all: those who are left elect a leader without the one that
/// was let go, though nothing was proposed after the change.
#[test]
fn a_change_that_is_chosen_is_known_after_a_restart() {
    let mut group = Group::led(4, |_| {});
    group.tell(0, Input::ChangeMembers { id: 1, members: members(&[0, 1, 2]) });
    group.settle();
    group.pass(Duration::from_millis(300));
    for number in 0..3 {
        group.restart(number, usize::MAX);
    }
    group.cut = vec![id(0), id(3)];
    group.elect(1);
    assert_eq!(group.all[1].replica.members(), &members(&[0, 1, 2]));
}
