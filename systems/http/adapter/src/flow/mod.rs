//! Flows: what a user does, step by step, where a later request holds what an earlier answer said.
//!
//! `read` makes the plan of an experiment, `source` begins users, `walk` writes a user's request and says after its answer
//! what follows; the user himself travels in the payload of his transactions (`user`). A step is never made here: what
//! follows is the engine's to send, when it is due.

mod coding;
pub(crate) mod condition;
pub(crate) mod cookies;
pub(crate) mod data;
pub(crate) mod headers;
mod json;
pub(crate) mod read;
mod redirect;
pub(crate) mod source;
pub(crate) mod take;
pub(crate) mod template;
pub(crate) mod user;
pub(crate) mod walk;

use std::time::Duration;

use sut::{Kind, StepFacts};
use wire::http1::Asked;

use crate::url::Origin;
use condition::Condition;
use data::Data;
use headers::Headers;
use take::Take;
use template::Template;
use user::{Random, Sizes};

/// Steps of all flows together, with those that one runs of another.
pub(crate) const STEPS_MAX: usize = 1_000;

/// All flows of a workload.
#[derive(Clone, Debug)]
pub(crate) struct Flows {
    pub(crate) origin: Origin,
    /// Those that users begin, each with its weight.
    pub(crate) flows: Vec<Flow>,
    /// The steps of each, one flow after the other.
    pub(crate) steps: Vec<Step>,
    /// The weight of the targets beside them.
    pub(crate) targets_weight: u64,
    pub(crate) sizes: Sizes,
    /// Names of values, by their place.
    pub(crate) names: Vec<String>,
    /// Values that users know from the beginning.
    pub(crate) initial: Vec<(usize, Template)>,
    pub(crate) data: Option<Data>,
    pub(crate) line_use: LineUse,
    pub(crate) has_cookies: bool,
    pub(crate) has_compression: bool,
    /// Whether its requests are written for HTTP/2.
    pub(crate) is_http2: bool,
}

/// A flow that users begin.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) name: String,
    /// Its steps: from the first to the one before the end.
    pub(crate) first: usize,
    pub(crate) end: usize,
    pub(crate) weight: u64,
}

/// Which line of the data is a user's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LineUse {
    /// That of his number; after the last the first again.
    #[default]
    Around,
    /// That of his number; there are as many as users.
    Once,
    /// Any.
    Random,
}

/// One request of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) name: String,
    /// The kind of its transactions; where it is the first of its flow, of those that begin it.
    pub(crate) kind: u32,
    /// The kind where it is made again.
    pub(crate) kind_again: u32,
    /// The kind of requests to where it was redirected.
    pub(crate) kind_redirected: u32,
    pub(crate) method: String,
    pub(crate) target: Template,
    /// Headers, but for cookies and those of the body.
    pub(crate) headers: Headers,
    /// Whether it writes its own `Cookie`.
    pub(crate) has_own_cookie: bool,
    /// Headers that say what the body is.
    pub(crate) body_headers: Headers,
    pub(crate) body: Option<Template>,
    pub(crate) expects: Option<u16>,
    pub(crate) takes: Vec<Take>,
    /// It is left out where this does not hold.
    pub(crate) when: Option<Condition>,
    pub(crate) think: Think,
    pub(crate) back: Option<Back>,
    /// The loop around it, whose rounds `{{$loop}}` counts.
    pub(crate) round_of: Option<usize>,
    /// Redirects that are followed.
    pub(crate) redirects_max: u8,
}

impl Step {
    pub(crate) fn asked(&self) -> Asked {
        if self.method == "HEAD" { Asked::Head } else { Asked::Other }
    }

    /// The method of a request to where it leads; `is_get`: a redirect asks for it by GET.
    fn method_of(&self, is_get: bool) -> &str {
        if is_get && self.method != "HEAD" { "GET" } else { &self.method }
    }
}

/// A loop: after its step it goes back to an earlier one, so often at most.
#[derive(Clone, Debug)]
pub(crate) struct Back {
    pub(crate) to: usize,
    pub(crate) counter: usize,
    pub(crate) times: u32,
    /// Absent: as often as it may.
    pub(crate) condition: Option<Condition>,
}

/// How long a user waits after an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Think {
    pub(crate) low_ns: u64,
    pub(crate) high_ns: u64,
}

impl Think {
    fn next(self, random: &mut Random) -> Duration {
        match self.high_ns {
            0 => Duration::ZERO,
            high if high == self.low_ns => Duration::from_nanos(high),
            high => Duration::from_nanos(random.between(self.low_ns, high)),
        }
    }
}

impl Flows {
    /// The kinds of its transactions, in the order of their numbers.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let mut kinds: Vec<(u32, Kind)> = Vec::new();
        for flow in &self.flows {
            for (at, step) in self.steps[flow.first..flow.end].iter().enumerate() {
                let name = match self.flows.len() {
                    1 => step.name.clone(),
                    _ => format!("{}: {}", flow.name, step.name),
                };
                let facts =
                    |is_first, is_last| StepFacts { flow: flow.name.clone(), is_first, is_last };
                let has_more = step.back.is_some() || step.redirects_max > 0;
                let is_last = flow.first + at + 1 == flow.end && !has_more;
                let kind = Kind::of_flow(name.clone(), facts(at == 0, is_last));
                kinds.push((step.kind, kind));
                for (number, word) in
                    [(step.kind_again, "again"), (step.kind_redirected, "redirected")]
                {
                    if number != step.kind {
                        let name = format!("{name} ({word})");
                        kinds.push((number, Kind::of_flow(name, facts(false, false))));
                    }
                }
            }
        }
        kinds.sort_by_key(|(number, _)| *number);
        kinds.into_iter().map(|(_, kind)| kind).collect()
    }

    /// Whether anything is taken from bodies.
    pub(crate) fn read_bodies(&self) -> bool {
        self.steps.iter().flat_map(|step| &step.takes).any(|take| take.source.reads_body())
    }

    /// Whether heads have to be kept: for cookies, for codings, for what is taken from headers. Over HTTP/1.1 the reader of
    /// answers knows where one leads by itself.
    pub(crate) fn read_heads(&self) -> bool {
        let takes = self.steps.iter().flat_map(|step| &step.takes);
        self.has_cookies
            || self.has_compression
            || self.is_http2 && self.steps.iter().any(|step| step.redirects_max > 0)
            || takes.into_iter().any(|take| matches!(take.source, take::Source::Header(_)))
    }
}
