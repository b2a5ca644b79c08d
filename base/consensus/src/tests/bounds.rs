//! What comes from outside and makes no sense.

use super::group::{Group, id};
use crate::{Ballot, Input, Message, ReplicaId};

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
