//! The system: its ladder, its inner steps, its connections, its ledger.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use exec_adapter::Program;
use model::facts::ClockRelation;
use model::{Seed, TxId, WallTime};
use sut::{
    Deployment, Endpoint, Kind, Ledger, Link, NodeEvent, NodeEvents, NodeSpan, NodeStage, Role,
    SutError, System, Testbed, Workload,
};

use crate::ledger::{Audited, settle};
use crate::nodes::{self, Wish};
use crate::session::{ACCEPTED, QueueSession};
use crate::stages::{FINALITY, STAGES, STEPS};
use crate::workload::Letters;

/// Where it begins and ends, in [`STEPS`]: when the one is over, and when the other is.
const DEQUEUED: u32 = 1;
const STORED: u32 = 7;

/// A ledger as an experiment wants it.
pub(crate) struct ObjectLedger {
    pub(crate) wish: Wish,
    pub(crate) in_flight_max: u32,
    pub(crate) settle: Duration,
    pub(crate) payload_bytes: usize,
    pub(crate) run_mark: u64,
}

/// What is up.
struct Up {
    queue: SocketAddr,
    probe: Program,
    audit: Program,
    /// Where pipelines say what fails.
    pipelines: Vec<SocketAddr>,
}

impl ObjectLedger {
    fn up(of: &Deployment) -> Result<&Up, SutError> {
        of.state::<Up>().ok_or_else(|| SutError::Deploy("the ledger was not started".to_owned()))
    }

    fn facts(&self) -> BTreeMap<String, String> {
        let Wish { pipelines, buckets, required, batch_max, .. } = &self.wish;
        let Wish { timestamp_delay, sequencer_delay, bucket_delay, .. } = &self.wish;
        let Wish { bucket_to_queue, queue_to_cache, omc, push, .. } = &self.wish;
        let pieces = if self.wish.full_copies { "full copies" } else { "Reed-Solomon pieces" };
        let watching = if *push { "pushed, else " } else { "" };
        [
            ("pipelines", format!("{pipelines}, batches of at most {batch_max}")),
            ("storage", format!("{pieces}, {required} of {} buckets", buckets.len())),
            (
                "delays",
                format!(
                    "timestamp {timestamp_delay}, sequencer {sequencer_delay}, bucket {bucket_delay}"
                ),
            ),
            (
                "watching",
                format!(
                    "{watching}bucket to queue {bucket_to_queue:?}, queue to cache {queue_to_cache:?}, main chain {omc:?}"
                ),
            ),
        ]
        .map(|(key, value)| (format!("object-ledger.{key}"), value))
        .into()
    }
}

impl System for ObjectLedger {
    fn stages(&self) -> Vec<String> {
        STAGES.map(str::to_owned).to_vec()
    }

    /// The queue answers that it has accepted, and never more; the probe sees everything.
    fn reaches(&self, role: Role) -> usize {
        match role {
            Role::Probe => STAGES.len() - 1,
            Role::Submit | Role::Observe => usize::from(ACCEPTED),
        }
    }

    fn node_stages(&self) -> Vec<NodeStage> {
        let all = STEPS.iter().chain(std::iter::once(&FINALITY));
        all.map(|(name, label)| NodeStage::new(name, label)).collect()
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::recorded("transaction")]
    }

    fn fidelity(&self) -> Vec<String> {
        let switches = [
            (!self.wish.sync, "sync = none: the queue acknowledges what a loss of power takes"),
            (!self.wish.hedged, "hedged = false: a write waits for every bucket"),
            (self.wish.full_copies, "full_copies: each bucket has each object whole"),
            (!self.wish.byzantine.is_empty(), "byzantine: some services lie on purpose"),
        ];
        switches.iter().filter(|(is_on, _)| *is_on).map(|(_, words)| (*words).to_owned()).collect()
    }

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        let nodes::Up { queue, probe, audit, scrape, pipelines } = nodes::start(&self.wish, bed)?;
        let mut facts = self.facts();
        facts.extend(probe.facts.clone());
        let up = Up { queue, probe, audit, pipelines };
        Ok(Deployment {
            endpoints: vec![(nodes::QUEUE.to_owned(), queue)],
            nodes: bed.nodes(),
            facts,
            clocks: ClockRelation::OneHost,
            state: Some(Arc::new(up)),
            scrape,
            ..Deployment::new(bed.clock())
        })
    }

    fn workload(&self, _seed: Seed, _worker: u32, _workers: u32) -> Box<dyn Workload> {
        let Self { run_mark, payload_bytes, .. } = *self;
        Box::new(Letters { run_mark, payload_bytes })
    }

    fn connect(&self, to: &Deployment, role: Role, index: u32) -> Result<Link, SutError> {
        let up = Self::up(to)?;
        match role {
            Role::Submit => {
                let session = QueueSession::new(self.in_flight_max);
                Ok(Link::Wire(Endpoint { address: up.queue, tls: None }, Box::new(session)))
            }
            Role::Probe => up.probe.link_of_probe(index, 0),
            Role::Observe => Err(SutError::Deploy("the ledger has no observers".to_owned())),
        }
    }

    fn ledger(&self, of: &Deployment) -> Result<Option<Box<dyn Ledger>>, SutError> {
        let up = Self::up(of)?;
        let left = settle(up.queue, &up.pipelines, self.settle, of);
        let inner = up.audit.ledger(&of.stop)?;
        let run_mark = self.run_mark;
        // The pipeline that took the later batch may win the race for the next place.
        let is_ordered = self.wish.pipelines == 1;
        Ok(inner.map(|inner| {
            Box::new(Audited { inner, run_mark, left, is_ordered }) as Box<dyn Ledger>
        }))
    }

    fn finished(&self, of: &Deployment) {
        if let Ok(up) = Self::up(of) {
            up.audit.stop();
        }
    }

    fn node_events(&self, of: &Deployment, to: &mut dyn NodeEvents) -> Result<(), SutError> {
        let mut batches = Batches { to, dequeued: HashMap::new() };
        Self::up(of)?.probe.hand_over_steps(&mut batches);
        Ok(())
    }
}

/// Hands on what the probe timed, and says of each of its transactions how long its batch took.
struct Batches<'a> {
    to: &'a mut dyn NodeEvents,
    /// When the batch of a transaction was dequeued; steps of one come in their order.
    dequeued: HashMap<TxId, WallTime>,
}

impl NodeEvents for Batches<'_> {
    fn event(&mut self, event: NodeEvent<'_>) {
        self.to.event(event);
    }

    fn span(&mut self, span: NodeSpan<'_>) {
        match span.stage {
            DEQUEUED => {
                self.dequeued.insert(span.tx, span.to);
            }
            STORED => {
                if let Some(from) = self.dequeued.remove(&span.tx) {
                    let took = span.to.unix_ns().saturating_sub(from.unix_ns());
                    let took = Duration::from_nanos(u64::try_from(took).unwrap_or(0));
                    let stage = u32::try_from(STEPS.len()).expect("few");
                    let (node, at) = (span.node, span.to);
                    self.to.event(NodeEvent { stage, node, at, count: 1, took: Some(took) });
                }
            }
            _ => {}
        }
        self.to.span(span);
    }

    fn problem(&mut self, words: String) {
        self.to.problem(words);
    }
}
