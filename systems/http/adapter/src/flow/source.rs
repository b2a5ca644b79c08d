//! Users as they begin: which flow, which line of the data, what they know. Ahead of their due times, so nothing here knows
//! what became of earlier ones.

use std::sync::Arc;

use model::{Seed, TxId};
use sut::{Made, Workload};

use crate::flow::template::Moment;
use crate::flow::user::{Random, User};
use crate::flow::{Flows, LineUse};
use crate::workload::Source as Targets;

/// The users of one engine thread.
pub(crate) struct Source {
    plan: Arc<Flows>,
    /// The targets, if they weigh beside the flows.
    targets: Option<Targets>,
    seed: Seed,
    worker: u32,
    workers: u32,
    /// Users that were begun here, where the schedule begins them.
    begun: u32,
    /// How often each client has begun, in a closed loop.
    iterations: Vec<u32>,
    user: User,
    scratch: Vec<u8>,
}

impl Source {
    pub(crate) fn new(
        plan: Arc<Flows>,
        targets: Option<Targets>,
        seed: Seed,
        worker: u32,
        workers: u32,
    ) -> Self {
        let (user, scratch) = (User::default(), Vec::new());
        let targets = targets.filter(|_| plan.targets_weight > 0);
        Self {
            plan,
            targets,
            seed,
            worker,
            workers,
            begun: 0,
            iterations: Vec::new(),
            user,
            scratch,
        }
    }

    /// The number of who begins, and which time he does.
    fn turn(&mut self, client: Option<u32>) -> (u32, u32) {
        let Some(client) = client else {
            let number = self.begun.wrapping_mul(self.workers).wrapping_add(self.worker);
            self.begun = self.begun.wrapping_add(1);
            return (number, 0);
        };
        let place = (client / self.workers.max(1)) as usize;
        if place >= self.iterations.len() {
            self.iterations.resize(place + 1, 0);
        }
        let iteration = self.iterations[place];
        self.iterations[place] = iteration.wrapping_add(1);
        (client, iteration)
    }
}

impl Workload for Source {
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        let (number, iteration) = self.turn(client);
        let turn = u64::from(iteration) << 32 | u64::from(number);
        let mut random = Random(self.seed.split_index("user", turn).0);
        let flows = &self.plan.flows;
        let weights = flows.iter().map(|flow| flow.weight).sum::<u64>() + self.plan.targets_weight;
        let mut drawn = if weights > 1 { random.between(0, weights - 1) } else { 0 };
        let mut chosen = None;
        for (at, flow) in flows.iter().enumerate() {
            if drawn < flow.weight {
                chosen = Some(at);
                break;
            }
            drawn -= flow.weight;
        }
        let Some(chosen) = chosen else {
            let targets = self.targets.as_mut().expect("they have the rest of the weight");
            return Made { client: number, ..targets.next(id, client, payload) };
        };
        begin(
            &self.plan,
            &mut self.user,
            chosen,
            (number, iteration),
            random,
            &mut self.scratch,
            id,
        );
        self.user.write(payload);
        Made { kind: self.plan.steps[flows[chosen].first].kind, client: number }
    }
}

/// A user at the beginning of a flow.
pub(crate) fn begin(
    plan: &Flows,
    user: &mut User,
    flow: usize,
    (number, iteration): (u32, u32),
    mut random: Random,
    scratch: &mut Vec<u8>,
    id: TxId,
) {
    let lines = plan.data.as_ref().map_or(1, |data| data.lines());
    let line = match plan.line_use {
        LineUse::Around | LineUse::Once => number % lines,
        LineUse::Random => {
            let any = random.between(0, u64::from(lines) - 1);
            u32::try_from(any).expect("less than the lines")
        }
    };
    user.begin(number, iteration, random.0, plan.sizes);
    user.flow = u32::try_from(flow).expect("bounded by STEPS_MAX");
    user.step = u32::try_from(plan.flows[flow].first).expect("bounded by STEPS_MAX");
    user.line = line;
    let moment = Moment { data: plan.data.as_ref(), transaction: id, unix_ms: 0, round: 0 };
    for (value, template) in &plan.initial {
        scratch.clear();
        template.fill(user, &moment, scratch);
        user.values[*value].clear();
        user.values[*value].extend_from_slice(scratch);
    }
}
