//! Every behaviour of the list, played to sessions.

use sut::conformance::{Subject, hostile_conformance};
use sut::{Session, System as _, Workload};

use super::conforming::peer;
use super::hostile_list::BEHAVIOURS;
use super::system;
use crate::session::HttpSession;

/// The most unread bytes that a session may leave to the engine: a head that is not complete.
const UNREAD_MAX: usize = (64 << 10) + 64;

/// Claim: of each behaviour the session sees what must be seen, however its bytes are cut; it holds no more of them than a
/// head; and what is strange and right is taken.
#[test]
fn none_passes_unseen() {
    assert!(BEHAVIOURS.len() >= 60, "{}", BEHAVIOURS.len());
    for pipeline in [1, 16] {
        let system = system("http://h/", &format!("{{\"pipeline\":{pipeline}}}"));
        let session = || -> Box<dyn Session> {
            Box::new(HttpSession::new(system.requests.clone(), system.rules.clone(), pipeline))
        };
        let source = || -> Box<dyn Workload> { system.workload(model::Seed(1), 0, 1) };
        let subject = Subject::new(&session, &peer, &source);
        hostile_conformance(&subject, BEHAVIOURS, UNREAD_MAX).unwrap();
    }
}
