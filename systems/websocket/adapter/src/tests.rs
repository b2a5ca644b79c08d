//! The adapter as a whole: built from options, tried by dialogue and against servers that do what they must not.

mod building;
mod conforming;
mod dialogue;
mod hostile;
mod peer;

use model::options::{Options, Problems};
use sut::{Request, Session};

use crate::system::WebSocketSystem;

/// Builds a system from `[system.deploy]` and `[workload]`, written as JSON.
pub(crate) fn built(deploy: &str, workload: &str) -> Result<WebSocketSystem, Vec<String>> {
    let options = |text: &str| serde_json::from_str::<Options>(text).expect(text);
    let (deploy, workload) = (options(deploy), options(workload));
    let folder = std::path::Path::new(".");
    let request = Request { deploy: &deploy, workload: &workload, folder, run_mark: 0, load: None };
    let mut problems = Problems::default();
    let system = crate::options::read(&request, &mut problems);
    let messages: Vec<String> = problems
        .list
        .into_iter()
        .map(|p| p.help.map_or(p.message.clone(), |help| format!("{} ({help})", p.message)))
        .collect();
    match system {
        Some(system) => {
            assert!(messages.is_empty(), "built in spite of {messages:?}");
            Ok(system)
        }
        None => {
            assert!(!messages.is_empty(), "not built, and no reason is given");
            Err(messages)
        }
    }
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
