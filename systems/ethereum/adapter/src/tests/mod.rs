//! The adapter without a node: options, the protocol against a peer that is a function from requests to answers, and what a
//! hostile one may say. Real nodes are in the application's tests.

mod conforming;
mod hostile;
mod peer;
mod replies;
mod wishes;

use model::options::Value;
use sut::conformance::options::{self, text};

use crate::options::read;
use crate::system::Ethereum;

/// The mark of every run in these tests.
const RUN_MARK: u64 = 0x0123_4567_89ab_cdef;

/// The system of these options, or what is wrong with them.
fn system(deploy: &[(&str, Value)], workload: &[(&str, Value)]) -> Result<Ethereum, Vec<String>> {
    options::read(read, RUN_MARK, deploy, workload)
}
