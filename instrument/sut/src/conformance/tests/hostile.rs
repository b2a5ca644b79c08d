//! Sessions that let a hostile server pass, each of which must be caught with the right words.

use super::mock::{Flaw, LINE_BYTES_MAX, Mock, NoPayload, line_peer};
use super::*;
use Seen::{Broken, BrokenBehind, Failed, Fine};
use Step::{Close, Drip, Flood, Hush, Right, Say};

const BEHAVIOURS: &[Behaviour<'static>] = &[
    Behaviour {
        name: "nonsense",
        does: "answers nonsense",
        greets: &[],
        answers: &[Say(b"\xff\n")],
        seen: Broken,
    },
    Behaviour {
        name: "nonsense behind",
        does: "goes on with nonsense",
        greets: &[],
        answers: &[Right, Say(b"\xff\n")],
        seen: BrokenBehind,
    },
    Behaviour {
        name: "an answer first",
        does: "answers before anybody asked",
        greets: &[Say(b"7\n")],
        answers: &[Hush],
        seen: Broken,
    },
    Behaviour {
        name: "a line without end",
        does: "never ends its line",
        greets: &[],
        answers: &[Flood(b"1", b"0")],
        seen: Broken,
    },
    Behaviour {
        name: "closed",
        does: "closes instead of answering",
        greets: &[],
        answers: &[Say(b"0"), Close],
        seen: Failed,
    },
    Behaviour {
        name: "byte by byte",
        does: "drips a good answer",
        greets: &[],
        answers: &[Drip(b"0\n", 1)],
        seen: Fine,
    },
];

fn said(flaw: Flaw, behaviours: &[Behaviour<'_>]) -> String {
    let session =
        || -> Box<dyn Session> { Box::new(Mock { flaw, in_flight_max: 4, ..Mock::default() }) };
    let subject = Subject::new(&session, &line_peer, &|| Box::new(NoPayload));
    hostile_conformance(&subject, behaviours, LINE_BYTES_MAX)
        .map_or_else(|breaches| breaches.to_string(), |()| String::new())
}

/// Claim: a session that sees everything passes.
#[test]
fn a_wary_session_passes() {
    assert_eq!(said(Flaw::None, BEHAVIOURS), "");
}

/// Claim: whatever lets a hostile server pass, or take more than it may, is named with the behaviour that showed it.
#[test]
fn what_lets_a_server_pass_is_caught() {
    for (flaw, words) in [
        (Flaw::SkipsNonsense, "nonsense (answers nonsense), whole: nothing was seen of it"),
        (
            Flaw::CommitsOnNonsense,
            "nonsense (answers nonsense), whole: earned 0 commits, and has 1",
        ),
        (
            Flaw::KeepsALineWithoutEnd,
            "a line without end (never ends its line), whole: leaves 204802 bytes unread",
        ),
        (Flaw::RepeatsNonsense, "nonsense (answers nonsense), whole: an error of 3008 bytes"),
        (Flaw::AnswersNonsenseAtLength, "whole: wrote 4096 bytes while it heard 2"),
        (Flaw::PanicsOnNonsense, "whole: panicked: index out of bounds"),
        (
            Flaw::RefusesHonestAnswers,
            "byte by byte (drips a good answer), whole: it is strange and right",
        ),
        (Flaw::NeverAnswers, "whole: earned 1 commits, and has 0"),
    ] {
        let said = said(flaw, BEHAVIOURS);
        assert!(said.contains(words), "{flaw:?}: {said}");
    }
    let twice = [BEHAVIOURS[0], BEHAVIOURS[0]];
    assert!(said(Flaw::None, &twice).contains("two behaviours have one name"));
}
