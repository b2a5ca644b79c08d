//! Before a chain is read: waiting until the pool is empty, or does not become emptier any more, because what waits in it can
//! never be mined (its account has a gap below it) or is not.

use std::collections::BTreeMap;
use std::time::Duration;

use clock::Clock;
use serde::Deserialize;
use serde_json::json;

use crate::hex::{self, Hash};
use crate::rpc::Rpc;

/// How long the pool may take to become empty.
const SETTLE_WITHIN: Duration = Duration::from_secs(60);

/// A pool that is the same for so many seconds and blocks is left as it is.
const STILL_FOR: Duration = Duration::from_secs(3);
const STILL_BLOCKS: u64 = 2;

/// How long those blocks are waited for: a node that mines on demand makes none.
const STILL_WITHIN: Duration = Duration::from_secs(8);

/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How many wait in the pool: those that could be mined, and those behind a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pool {
    pub(crate) pending: u64,
    pub(crate) queued: u64,
}

/// Waits; gives what is left in the pool, or why nobody knows.
pub(crate) fn settle(rpc: &mut Rpc, clock: Clock) -> Result<Pool, String> {
    let deadline = clock.now().plus(SETTLE_WITHIN);
    let mut since = (status(rpc)?, clock.now(), rpc.height()?);
    loop {
        let (pool, now, height) = (status(rpc)?, clock.now(), rpc.height()?);
        if pool == Pool::default() || now >= deadline {
            return Ok(pool);
        }
        if pool != since.0 {
            since = (pool, now, height);
        }
        let still = now.saturating_since(since.1);
        let has_seen_blocks = height >= since.2 + STILL_BLOCKS || still >= STILL_WITHIN;
        if still >= STILL_FOR && has_seen_blocks {
            return Ok(pool);
        }
        clock.sleep_until(now.plus(LOOK_EVERY));
    }
}

fn status(rpc: &mut Rpc) -> Result<Pool, String> {
    #[derive(Deserialize)]
    struct Status {
        pending: String,
        queued: String,
    }
    let Status { pending, queued } = rpc.ask("txpool_status", json!([]))?;
    let number =
        |text: &str| hex::quantity(text).ok_or_else(|| format!("`{text}` in the pool's status"));
    Ok(Pool { pending: number(&pending)?, queued: number(&queued)? })
}

/// Whether what waits could be mined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    Pending,
    Queued,
}

/// What waits in the pool.
pub(crate) fn waiting(rpc: &mut Rpc) -> Result<Vec<(Hash, Waiting)>, String> {
    #[derive(Deserialize)]
    struct One {
        hash: String,
    }
    /// By account, then by nonce.
    type Group = BTreeMap<String, BTreeMap<String, One>>;
    #[derive(Deserialize)]
    struct Content {
        pending: Group,
        queued: Group,
    }
    let Content { pending, queued } = rpc.ask("txpool_content", json!([]))?;
    let mut all = Vec::new();
    for (group, how) in [(pending, Waiting::Pending), (queued, Waiting::Queued)] {
        for one in group.into_values().flat_map(BTreeMap::into_values) {
            let hash = hex::bytes(&one.hash);
            let hash = hash.ok_or_else(|| format!("`{}` in the pool is no hash", one.hash))?;
            all.push((hash, how));
        }
    }
    Ok(all)
}
