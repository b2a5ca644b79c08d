//! The adapter without a network: options, transactions, the protocol against a peer that is a function from
//! requests to answers, and files. A real network is in the application's tests.

mod blocks;
mod caring;
mod conforming;
mod files;
mod hostile;
mod loadtime;
mod manifests;
mod peer;
mod replies;
mod transactions;
mod wishes;

use std::path::Path;

use model::options::{Options, Problems, Span, Value};
use sut::Request;

use crate::options::read;
use crate::system::CometBft;

/// The mark of every run in these tests.
pub(super) const RUN_MARK: u64 = 0x0123_4567_89ab_cdef;

/// A value that was written nowhere.
pub(super) fn value(value: Value) -> Options {
    Options { value, span: Span::default() }
}

/// A table of dotted paths.
pub(super) fn table(entries: &[(&str, Value)]) -> Options {
    let mut table = Options::empty();
    for (path, written) in entries {
        table.set(path, value(written.clone()));
    }
    table
}

/// The system of these options, or what is wrong with them.
pub(super) fn system(
    deploy: &[(&str, Value)],
    workload: &[(&str, Value)],
) -> Result<CometBft, Vec<String>> {
    let (deploy, workload) = (table(deploy), table(workload));
    let folder = Path::new("/experiments");
    let request =
        Request { deploy: &deploy, workload: &workload, folder, run_mark: RUN_MARK, load: None };
    let mut problems = Problems::default();
    let system = read(&request, &mut problems);
    system.ok_or_else(|| problems.list.into_iter().map(|problem| problem.message).collect())
}

pub(super) fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}
