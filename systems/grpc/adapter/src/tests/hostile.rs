//! Every behaviour of the list, played to sessions, whole and in pieces.

use sut::conformance::{Behaviour, Seen, Step, Subject, hostile_conformance};
use sut::{Session, System as _, Workload};

use super::conforming::peer;
use super::hostile_list::{behaviours, frame};
use super::{session, system};

/// The most unread bytes that a session may leave: a frame that is not whole.
const UNREAD_MAX: usize = 9 + 16_384;

/// Claim: of each behaviour the session sees what must be seen, however its bytes are cut.
#[test]
fn none_passes_unseen() {
    let list = behaviours();
    assert!(list.len() >= 30);
    let steps: Vec<[Step<'_>; 2]> =
        list.iter().map(|(_, bytes, seen)| Step::saying(bytes, *seen)).collect();
    let mut all: Vec<Behaviour<'_>> = list
        .iter()
        .zip(&steps)
        .map(|((does, _, seen), answers)| Behaviour::answering(does, answers, *seen))
        .collect();
    let (empty, ping) = (frame(0, 0, 1, b""), frame(6, 0, 0, b"12345678"));
    let head = super::hostile_list::head(1);
    let zeros = frame(0, 0, 1, &[0; 500]);
    let floods = [
        ("pings without end", [Step::Flood(&ping, &ping)], Seen::Broken),
        ("sends frames of nothing without end", [Step::Flood(&head, &empty)], Seen::Broken),
        ("sends messages of nothing without end", [Step::Flood(&head, &zeros)], Seen::Failed),
    ];
    all.extend(
        floods.iter().map(|(does, answers, seen)| Behaviour::answering(does, answers, *seen)),
    );
    let system =
        system(r#""streams":2,"method":"shop.v1.Orders/Get","message":"{\"id\":\"{{$tx}}\"}""#);
    let made = || -> Box<dyn Session> { session(&system) };
    let source = || -> Box<dyn Workload> { system.workload(model::Seed(1), 0, 1) };
    let subject = Subject::new(&made, &peer, &source).ladder(2, 1);
    hostile_conformance(&subject, &all, UNREAD_MAX).unwrap();
}
