//! The adapter as a whole: built from options, tried by dialogue and against servers that do what they must not.

mod building;
mod conforming;
mod dialogue;
mod hostile;
mod hostile_list;
mod reflecting;

use std::path::Path;

use model::options::Options;
use sut::conformance::options::read_in;
use sut::{Link, Role, Session, System as _};

use crate::system::GrpcSystem;

pub(crate) const SERVER: &str = "grpc://127.0.0.1:50051";
pub(crate) const PROTO: &str = include_str!("tests/shop.proto");

/// A folder that holds `shop.proto`.
pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("shop.proto"), PROTO).unwrap();
    folder
}

/// Builds a system from `[system.deploy]` and `[workload]`, written as JSON.
pub(crate) fn built(
    deploy: &str,
    workload: &str,
    folder: &Path,
) -> Result<GrpcSystem, Vec<String>> {
    let options = |text: &str| serde_json::from_str::<Options>(text).expect(text);
    let (deploy, workload) = (options(deploy), options(workload));
    read_in(folder, crate::options::read, 0, (&deploy, &workload))
}

/// A system of the shop; `more` is JSON after a comma.
pub(crate) fn system(more: &str) -> GrpcSystem {
    let folder = folder();
    let workload = format!("{{\"proto\":\"shop.proto\",{more}}}");
    built(&format!("{{\"url\":\"{SERVER}\"}}"), &workload, folder.path()).unwrap()
}

pub(crate) fn session(system: &GrpcSystem) -> Box<dyn Session> {
    let to = sut::Deployment {
        endpoints: vec![("grpc".into(), "127.0.0.1:50051".parse().unwrap())],
        ..sut::Deployment::new(clock::Clock::start())
    };
    match system.connect(&to, Role::Submit, 0).unwrap() {
        Link::Wire(_, session) => session,
        _ => panic!("a gRPC server is reached over a wire"),
    }
}
