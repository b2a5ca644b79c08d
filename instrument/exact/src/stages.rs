//! Stamps of a scripted server's own, as a node writes them to a file: three stages of each request.

use std::time::Duration;

use clock::{Instant, WallTime};
use model::node_events::{NodeEvent, NodeEventsFacts, NodeSpan, NodeStage};
use record::TrialFolder;

use crate::script::end_of;
use crate::toy::Served;

/// The one node's name.
const NODE: &str = "script";
/// How long it takes to store what is done.
const STORING: Duration = Duration::from_millis(1);

/// The stages, in the order of the pipeline.
pub(crate) fn node_stages() -> Vec<NodeStage> {
    let stages = [
        ("received", "received by the node"),
        ("served", "worked on"),
        ("stored", "in its ledger"),
    ];
    stages.map(|(name, label)| NodeStage::new(name, label)).to_vec()
}

/// The calendar's reading of a moment of a trial that began at `started`.
pub(crate) fn wall_at(started: WallTime, at: Instant) -> WallTime {
    WallTime::from_unix_ns(started.unix_ns() + at.ns_since(Instant::ZERO))
}

/// Keeps what was stamped in a trial that began at `started`; what is stored in a stall of storing is stored after it.
pub(crate) fn keep(
    folder: &TrialFolder,
    started: WallTime,
    served: &[Served],
    stalls: &[(Instant, Instant)],
) -> Result<NodeEventsFacts, String> {
    let stages = node_stages();
    let mut writer = folder.node_events_writer(started, &stages).map_err(|it| it.to_string())?;
    let wall = |at: Instant| wall_at(started, at);
    for of in served {
        let stored = end_of(stalls, of.ended, STORING);
        let spans = [(of.arrived, of.arrived), (of.arrived, of.ended), (of.ended, stored)];
        // What is lost is never stored.
        let passed = if of.entries > 0 { 3 } else { 2 };
        for (stage, (from, to)) in (0..).zip(spans).take(passed) {
            let took = (stage > 0).then(|| to.saturating_since(from));
            writer.event(&NodeEvent { stage, node: NODE, at: wall(to), count: 1, took });
            writer.span(&NodeSpan { tx: of.tx, stage, node: NODE, from: wall(from), to: wall(to) });
        }
    }
    Ok(writer.close())
}
