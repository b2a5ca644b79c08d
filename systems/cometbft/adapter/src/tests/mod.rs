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

use model::options::{Options, Span, Value};
use sut::conformance::options;
pub(super) use sut::conformance::options::{table, text};

use crate::options::read;
use crate::system::CometBft;

/// The mark of every run in these tests.
pub(super) const RUN_MARK: u64 = 0x0123_4567_89ab_cdef;

/// A value that was written nowhere.
pub(super) fn value(value: Value) -> Options {
    Options { value, span: Span::default() }
}

/// The system of these options, or what is wrong with them.
pub(super) fn system(
    deploy: &[(&str, Value)],
    workload: &[(&str, Value)],
) -> Result<CometBft, Vec<String>> {
    options::read(read, RUN_MARK, deploy, workload)
}
