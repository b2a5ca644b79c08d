//! The adapter as a whole: built from options, tried by dialogue and against servers that do what they must not.

mod building;
mod conforming;
mod dialogue;
mod hostile;
mod peer;

use model::options::Options;
use sut::Session;
use sut::conformance::options::read_in;

use crate::system::WebSocketSystem;

/// Builds a system from `[system.deploy]` and `[workload]`, written as JSON.
pub(crate) fn built(deploy: &str, workload: &str) -> Result<WebSocketSystem, Vec<String>> {
    let options = |text: &str| serde_json::from_str::<Options>(text).expect(text);
    let (deploy, workload) = (options(deploy), options(workload));
    let folder = std::path::Path::new(".");
    read_in(folder, crate::options::read, 0, (&deploy, &workload))
}

pub(crate) fn system(workload: &str) -> WebSocketSystem {
    built(r#"{"url":"ws://127.0.0.1:8080/feed?x=1"}"#, workload).unwrap()
}

/// A workload whose answers carry the id of the message.
pub(crate) const BY_ID: &str =
    r#"{"message":"{\"id\":{{$tx}},\"method\":\"echo\"}","id":"/id","error_pointer":"/error"}"#;
/// A workload of one message at a time.
pub(crate) const IN_TURN: &str = r#"{"message":"hello"}"#;

pub(crate) fn session(system: &WebSocketSystem) -> Box<dyn Session> {
    Box::new(system.session(3))
}
