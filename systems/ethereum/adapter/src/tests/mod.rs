//! The adapter without a node: options, the protocol against a peer that is a function from requests to answers, and what a
//! hostile one may say. Real nodes are in the application's tests.

mod conforming;
mod hostile;
mod peer;
mod replies;
mod wishes;

use std::path::Path;

use model::options::{Options, Problems, Span, Value};
use sut::Request;

use crate::options::read;
use crate::system::Ethereum;

/// The mark of every run in these tests.
const RUN_MARK: u64 = 0x0123_4567_89ab_cdef;

/// A table of dotted paths.
fn table(entries: &[(&str, Value)]) -> Options {
    let mut table = Options::empty();
    for (path, written) in entries {
        table.set(path, Options { value: written.clone(), span: Span::default() });
    }
    table
}

/// The system of these options, or what is wrong with them.
fn system(deploy: &[(&str, Value)], workload: &[(&str, Value)]) -> Result<Ethereum, Vec<String>> {
    let (deploy, workload) = (table(deploy), table(workload));
    let folder = Path::new("/experiments");
    let request =
        Request { deploy: &deploy, workload: &workload, folder, run_mark: RUN_MARK, load: None };
    let mut problems = Problems::default();
    let system = read(&request, &mut problems);
    system.ok_or_else(|| problems.list.into_iter().map(|problem| problem.message).collect())
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}
