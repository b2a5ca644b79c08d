//! Which height a transaction bears.

use std::sync::Arc;
use std::time::Duration;

use atomizer_node::protocol::request::{Request as Asked, read_request};
use model::Seed;
use model::plan::{Arrivals, LoadPlan, Schedule, Step};
use model::quantity::Rate;
use sut::{Session, Transaction, Workload as _};

use super::known;
use crate::session::{Refresh, SubmitSession};
use crate::wallet::{Shares, Wallet};
use crate::workload::Spends;

/// At which of so many transactions, beginning with this one, a connection looks the height up.
fn looks(refresh: Refresh, first: u64, count: u64) -> Vec<u64> {
    let known = known();
    let mut session = SubmitSession::new(Arc::clone(&known), refresh, 1, 64);
    let mut source = Spends::new(Wallet::new(Seed(3), 1, 1_000, Shares::default()));
    let mut last = 0;
    let mut at = Vec::new();
    for tx in first..first + count {
        known.saw(tx + 1);
        let (mut payload, mut out) = (Vec::new(), Vec::new());
        source.next(tx, None, &mut payload);
        session.submit(&Transaction::new(tx, 0, &payload), &mut out);
        let Ok(Asked::Notify(it)) = read_request(&out[8..]) else { panic!("{tx}") };
        if it.height != last {
            assert_eq!(it.height, tx + 1, "it is the height of then");
            at.push(tx - first);
        }
        last = it.height;
    }
    at
}

/// A load of ten connections, of which two hundred a second are of each of one, then of ten generators.
fn staircase() -> LoadPlan {
    let step = |generators: u64| Step {
        rate: Rate::per_second(200 * generators),
        length: Duration::from_secs(1),
        generators,
    };
    let arrivals = Arrivals::Open { schedule: Schedule::Steps { steps: vec![step(1), step(10)] } };
    LoadPlan {
        warmup: Duration::from_millis(500),
        ..LoadPlan::plain(arrivals, 10, Duration::from_secs(2))
    }
}

/// Claim: heights that are looked up each so many sends of a connection stay what they were in between; where the load counts
/// generators a connection that carries a tenth of each one's sends looks after a tenth of them, as many as are there.
#[test]
fn looked_up_each_so_many_sends() {
    assert_eq!(looks(Refresh::every(3), 0, 7), [0, 3, 6]);
    assert_eq!(looks(Refresh::of(3, None), 0, 7), [0, 3, 6]);
    let of = |sends: u32| Refresh::of(sends, Some(&staircase()));
    assert_eq!(looks(of(50), 0, 12), [0, 5, 10], "one generator");
    assert_eq!(
        looks(of(50), 299, 60),
        [0, 5, 55],
        "behind the warm-up and the first step there are ten"
    );
    assert_eq!(looks(of(1), 0, 4), [0, 1, 2, 3], "at each");
}
