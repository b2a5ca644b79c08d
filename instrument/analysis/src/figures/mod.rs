//! From rows, entries and samples to figures. Nothing here has heard of an audit, a threshold or a verdict.

pub(crate) mod agents;
pub(crate) mod block;
pub(crate) mod by_id;
pub(crate) mod combined;
pub(crate) mod connections;
pub(crate) mod fates;
pub(crate) mod faults;
pub(crate) mod first_use;
pub(crate) mod float;
pub(crate) mod flow;
pub(crate) mod grid;
pub(crate) mod groups;
pub(crate) mod known;
pub(crate) mod latency;
pub(crate) mod left_out;
pub(crate) mod levels;
pub(crate) mod node_stages;
pub(crate) mod nodes;
pub(crate) mod order;
pub(crate) mod page;
pub(crate) mod part;
pub(crate) mod phases;
pub(crate) mod planned;
pub(crate) mod pool;
pub(crate) mod processor;
pub(crate) mod received;
pub(crate) mod sending;
pub(crate) mod series;
pub(crate) mod share;
pub(crate) mod silence;
pub(crate) mod stated;
pub(crate) mod steps;
pub(crate) mod tally;
pub(crate) mod timeline;
pub(crate) mod told;
pub(crate) mod traces;
pub(crate) mod under_way;
pub(crate) mod user_flows;
pub(crate) mod vegeta;
pub(crate) mod way;
pub(crate) mod without_lag;

use agents::AgentShares;
use fates::Join;
use first_use::FirstUse;
use flow::Flow;
use groups::Groups;
use latency::Latencies;
use node_stages::NodeStages;
use order::Order;
use page::Page;
use part::parts;
use phases::Phases;
use pool::Pool;
use received::Received;
use silence::{Committed, Ended};
use stated::Stated;
use steps::Steps;
use tally::{Streams, Tally};
use timeline::TimelineTally;
use traces::Traces;
use under_way::UnderWay;
use user_flows::UserFlows;
use vegeta::Vegeta;
use way::Way;
use without_lag::WithoutLag;

parts! {
    /// Everything that is counted while rows and entries of a trial stream past.
    Figures {
        all: Tally,
        timeline: TimelineTally,
        traces: Traces,
        committed: Committed,
        under_way: Option<UnderWay>,
        ended: Ended,
        first_use: FirstUse,
        order: Order,
        join: Join,
        flow: Flow,
        pool: Pool,
        streams: Streams,
        latencies: Latencies,
        without_lag: WithoutLag,
        received: Received,
        agents: AgentShares,
        phases: Option<Phases>,
        vegeta: Vegeta,
        groups: Groups,
        user_flows: UserFlows,
        page: Page,
        stated: Stated,
        node_stages: Option<NodeStages>,
        /// A section of what nodes stamped.
        way: Way,
        /// They show what nodes stamped, too.
        steps: Option<Steps>,
    }
}
