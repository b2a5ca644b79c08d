//! The adapter as a whole: built from options, tried by dialogue, attached to servers on loopback.

mod attaching;
mod building;
mod conforming;
mod dialogue;
mod flows;
mod hostile;
mod hostile_list;
mod http2;
mod http2_hostile_list;
mod nginx;
mod server;

use std::path::Path;

use model::options::{Options, Problems};
use sut::Request;

use crate::server::HttpSystem;

/// Builds a system from `[system.deploy]` and `[workload]`, written as JSON.
pub(crate) fn built(
    deploy: &str,
    workload: &str,
    folder: &Path,
) -> Result<HttpSystem, Vec<String>> {
    let options = |text: &str| serde_json::from_str::<Options>(text).expect(text);
    let (deploy, workload) = (options(deploy), options(workload));
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
            assert!(!messages.is_empty(), "not built, and nobody says why");
            Err(messages)
        }
    }
}

/// A system for a base URL and a workload.
pub(crate) fn system(url: &str, workload: &str) -> HttpSystem {
    built(&format!("{{\"url\":\"{url}\"}}"), workload, Path::new("."))
        .expect("the options are right")
}
