//! The system that a program is, or is the client of.

use std::sync::Arc;

use model::Seed;
use model::facts::ClockRelation;
use sut::{
    Deployment, Kind, Ledger, Link, NodeEvents, NodeStage, Role, SutError, System, Testbed,
    Workload,
};

use crate::program::Program;
use crate::start::Start;
use crate::workload::Letters;

/// A program as an experiment wants it.
pub(crate) struct Exec {
    pub(crate) start: Start,
    /// Connections of the main load, which have the first channels.
    pub(crate) connections: u32,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) payload_bytes: usize,
    pub(crate) is_binary: bool,
    pub(crate) weights: Vec<u64>,
}

/// What is up.
struct Up {
    program: Program,
}

impl Exec {
    fn up(of: &Deployment) -> Result<&Up, SutError> {
        of.state::<Up>().ok_or_else(|| SutError::Deploy("the program was not started".to_owned()))
    }
}

impl System for Exec {
    fn stages(&self) -> Vec<String> {
        self.start.words.stages.clone()
    }

    fn kinds(&self) -> Vec<Kind> {
        self.kinds.clone()
    }

    fn node_stages(&self) -> Vec<NodeStage> {
        let steps = self.start.words.steps.iter();
        steps.map(|name| NodeStage::new(name, &format!("the program's step `{name}`"))).collect()
    }

    fn fidelity(&self) -> Vec<String> {
        vec!["latencies hold the program's own time, and that of a line to it and back".to_owned()]
    }

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        let program = Program::start(self.start.clone(), bed)?;
        let facts = program.facts.clone();
        let up = Up { program };
        Ok(Deployment {
            nodes: bed.nodes(),
            facts,
            clocks: ClockRelation::OneHost,
            state: Some(Arc::new(up)),
            ..Deployment::new(bed.clock())
        })
    }

    fn workload(&self, seed: Seed, _worker: u32, _workers: u32) -> Box<dyn Workload> {
        let kinds = u64::try_from(self.kinds.len()).expect("few kinds");
        let Self { payload_bytes, is_binary, weights, .. } = self;
        Box::new(Letters {
            seed,
            payload_bytes: *payload_bytes,
            is_binary: *is_binary,
            kinds,
            weights: weights.clone(),
        })
    }

    fn connect(&self, to: &Deployment, role: Role, index: u32) -> Result<Link, SutError> {
        let up = Self::up(to)?;
        match role {
            Role::Submit if index < self.connections => up.program.link(index as usize),
            Role::Submit => Err(SutError::Deploy(format!(
                "the program was started with channels for {} connections, and this is number {index}; set \
                 load.connections",
                self.connections
            ))),
            Role::Probe => up.program.link_of_probe(index, self.connections as usize),
            Role::Observe => Err(SutError::Deploy("a program has no observers".to_owned())),
        }
    }

    fn ledger(&self, of: &Deployment) -> Result<Option<Box<dyn Ledger>>, SutError> {
        Self::up(of)?.program.ledger(&of.stop)
    }

    fn finished(&self, of: &Deployment) {
        if let Ok(up) = Self::up(of) {
            up.program.stop();
        }
    }

    fn node_events(&self, of: &Deployment, to: &mut dyn NodeEvents) -> Result<(), SutError> {
        Self::up(of)?.program.hand_over_steps(to);
        Ok(())
    }
}
