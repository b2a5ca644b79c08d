//! What the replicas say that they hold, when the load is over. Who lags is waited for a little; who does not answer says so
//! in the record.

use kv_node::protocol::Digest;
use std::io;
use std::time::Duration;

use std::sync::atomic::Ordering;
use sut::{Deployment, NodeState};

use crate::control::Control;
use crate::nodes::Places;

/// How long replicas may take to come to one position when nothing more is sent.
const SETTLE_WITHIN: Duration = Duration::from_secs(10);

/// How often they are asked meanwhile.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// What each of them holds. Those at one position that differ are asked once more: what had been executed before and is sent
/// again moves no position.
pub(crate) fn of(places: &Places, deployment: &Deployment) -> Vec<NodeState> {
    let clock = deployment.clock;
    let deadline = clock.now().plus(SETTLE_WITHIN);
    loop {
        let said: Vec<io::Result<Digest>> = (places.replicas.iter())
            .map(|place| {
                Control::open(place.address, places.tls.as_ref(), clock)
                    .and_then(|mut control| control.digest())
            })
            .collect();
        let mut known = said.iter().flatten();
        let first = known.next();
        let is_settled = known.all(|it| Some(it) == first);
        if is_settled || clock.now() >= deadline || deployment.stop.load(Ordering::Relaxed) {
            let named = places.replicas.iter().zip(said);
            return named.map(|(place, said)| state(&place.name, said)).collect();
        }
        clock.sleep_until(clock.now().plus(ASK_EVERY));
    }
}

fn state(node: &str, said: io::Result<Digest>) -> NodeState {
    let node = node.to_owned();
    match said {
        Ok(Digest { position, digest }) => {
            NodeState { node, position, digest: format!("{digest:016x}"), ..NodeState::default() }
        }
        Err(error) => {
            let why = format!("it does not say what it holds: {error}");
            NodeState { node, why, ..NodeState::default() }
        }
    }
}
