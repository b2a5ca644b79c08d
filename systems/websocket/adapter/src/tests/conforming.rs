//! The contract's own suite, for sessions and systems.

use sut::conformance::{Peer, Subject, session_conformance, system_conformance};
use sut::{Session, System as _, Workload};

use super::peer::{called, echo, peer};
use super::{BY_ID, IN_TURN, session, system};

/// Claim: sessions and systems keep the contract, one message at a time and many.
#[test]
fn websocket_conforms() {
    for (workload, answer) in [(BY_ID, called as fn(&str) -> Vec<String>), (IN_TURN, echo)] {
        let system = system(workload);
        let made = || -> Box<dyn Session> { session(&system) };
        let server = || -> Peer { peer(answer) };
        let source = || -> Box<dyn Workload> { system.workload(model::Seed(1), 0, 1) };
        session_conformance(&Subject::new(&made, &server, &source)).unwrap();
        system_conformance(&system).unwrap();
    }
}
