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

use model::options::Options;

use crate::server::HttpSystem;
use sut::conformance::options::read_in;

/// Builds a system from `[system.deploy]` and `[workload]`, written as JSON.
pub(crate) fn built(
    deploy: &str,
    workload: &str,
    folder: &Path,
) -> Result<HttpSystem, Vec<String>> {
    let options = |text: &str| serde_json::from_str::<Options>(text).expect(text);
    let (deploy, workload) = (options(deploy), options(workload));
    read_in(folder, crate::options::read, 0, (&deploy, &workload))
}

/// A system for a base URL and a workload.
pub(crate) fn system(url: &str, workload: &str) -> HttpSystem {
    built(&format!("{{\"url\":\"{url}\"}}"), workload, Path::new("."))
        .expect("the options are right")
}
