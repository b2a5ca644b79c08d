//! From `[[workload.step]]` to flows: which steps belong to which flow, which flows run others, what they may name. Every
//! mistake is found here, before anything is sent. One step's keys are read by [`step`].

mod step;

use std::collections::HashMap;
use std::path::Path;

use model::options::{Options, Problems, Section, Span, did_you_mean};
use model::plan::{Arrivals, LoadPlan, Schedule};

use crate::expect::Expected;
use crate::flow::data::{DATA_BYTES_MAX, Data};
use crate::flow::template::{Form, Names, Template};
use crate::flow::user::Sizes;
use crate::flow::{Flow, Flows, LineUse, STEPS_MAX, Step};
use crate::url::Origin;
use step::{Writing, Written};

/// Redirects that a step may follow.
const REDIRECTS_MAX: u64 = 20;

/// The surroundings of the flows.
pub(crate) struct Around<'a> {
    pub(crate) folder: &'a Path,
    /// Headers of every request.
    pub(crate) headers: &'a [(String, String)],
    pub(crate) load: Option<&'a LoadPlan>,
    /// Kinds that there are before those of the steps.
    pub(crate) kinds: u32,
    /// Whether requests are written for HTTP/2.
    pub(crate) is_http2: bool,
}

/// `[workload]`, as far as it is about flows, before the server is known.
pub(crate) struct Given<'a> {
    steps: Vec<Written<'a>>,
    weights: Vec<(&'a str, Span, u64)>,
    values: Vec<(&'a str, Span, &'a Options)>,
    data: Option<Data>,
    line_use: LineUse,
    redirects_max: u8,
    has_cookies: bool,
    has_compression: bool,
}

impl<'a> Given<'a> {
    /// Reads the keys; `None`: there is no step.
    pub(crate) fn read(
        workload: &mut Section<'a>,
        around: &Around<'_>,
        problems: &mut Problems,
    ) -> Option<Self> {
        let before = problems.list.len();
        let items = workload.array("step", problems).unwrap_or_default();
        let redirects = workload.integer("redirects", 0, REDIRECTS_MAX, problems);
        let weights = weights(workload, problems);
        let values = workload.section("values", problems).map(Section::entries).unwrap_or_default();
        let data = data(workload, around.folder, problems);
        let line_use = workload.one_of("data_use", &["around", "once", "random"], problems);
        let has_cookies = workload.boolean("cookies", problems);
        let has_compression = workload.boolean("compression", problems);
        if items.is_empty() {
            let only_flows = [
                ("redirects", redirects.is_some_and(|count| count > 0)),
                ("weights", !weights.is_empty()),
                ("values", !values.is_empty()),
                ("data", data.is_some()),
                ("data_use", line_use.is_some()),
                ("cookies", has_cookies.is_some()),
                ("compression", has_compression.is_some()),
            ];
            for (key, _) in only_flows.iter().filter(|(_, is_given)| *is_given) {
                let message =
                    format!("`workload.{key}` is for flows, and there is no [[workload.step]]");
                let help =
                    "write the request as a step: assay init --template flow shows one".to_owned();
                workload.reject(key, message, Some(help), problems);
            }
            return None;
        }
        let line_use = match line_use {
            Some("once") => LineUse::Once,
            Some("random") => LineUse::Random,
            _ => LineUse::Around,
        };
        let steps = items.iter().map(|item| Written::read(item, problems)).collect();
        let given = Self {
            steps,
            weights,
            values,
            data,
            line_use,
            redirects_max: u8::try_from(redirects.unwrap_or(0)).expect("bounded above"),
            has_cookies: has_cookies.unwrap_or(true),
            has_compression: has_compression.unwrap_or(false),
        };
        given.check_lines(workload, around.load, problems);
        (problems.list.len() == before).then_some(given)
    }

    /// A user who would find no line is found before the load.
    fn check_lines(
        &self,
        workload: &Section<'_>,
        load: Option<&LoadPlan>,
        problems: &mut Problems,
    ) {
        let (Some(data), Some(load), LineUse::Once) = (&self.data, load, self.line_use) else {
            return;
        };
        let help = Some("add lines, lower the load, or write data_use = \"around\"".to_owned());
        match users_max(load) {
            Some(users) if users <= u64::from(data.lines()) => {}
            Some(users) => {
                let message = format!(
                    "the data ends: workload.data has {} lines, and the load begins up to {users} users",
                    data.lines()
                );
                workload.reject("data", message, help, problems);
            }
            None => {
                let message = "the data ends: each line is used once, and a load of rate `max` begins users without end";
                workload.reject("data_use", message, help, problems);
            }
        }
    }

    /// Makes the flows.
    pub(crate) fn flows(
        &self,
        origin: &Origin,
        around: &Around<'_>,
        expected: &mut Expected,
        problems: &mut Problems,
    ) -> Option<Flows> {
        let before = problems.list.len();
        let names = self.names();
        let columns = self.data.as_ref().map_or(&[][..], |data| data.columns.as_slice());
        let initial = self.initial(&names, columns, problems);
        let mut making = Making {
            given: self,
            names: &names,
            columns,
            around,
            origin,
            expected,
            expectations: HashMap::new(),
            loops: 0,
            kinds: around.kinds,
            steps: Vec::new(),
        };
        let mut flows = Vec::new();
        for (name, weight) in self.begun(problems) {
            let first = making.steps.len();
            making.flow(name, problems);
            let end = making.steps.len();
            flows.push(Flow { name: name.to_owned(), first, end, weight });
        }
        let (loops, steps) = (making.loops, making.steps);
        let targets_weight = self.weight_of(TARGETS).unwrap_or(0);
        (problems.list.len() == before).then(|| Flows {
            origin: origin.clone(),
            flows,
            steps,
            targets_weight,
            sizes: Sizes { loops, values: names.len() },
            names,
            initial,
            data: self.data.clone(),
            line_use: self.line_use,
            has_cookies: self.has_cookies,
            has_compression: self.has_compression,
            is_http2: around.is_http2,
        })
    }

    /// Every name that a user may know, in the order written.
    fn names(&self) -> Vec<String> {
        let initial = self.values.iter().map(|(name, ..)| *name);
        let taken = self.steps.iter().flat_map(|step| step.takes.iter().map(|take| take.name));
        let mut names: Vec<String> = Vec::new();
        for name in initial.chain(taken) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }

    fn initial(
        &self,
        names: &[String],
        columns: &[String],
        problems: &mut Problems,
    ) -> Vec<(usize, Template)> {
        let mut known = vec![String::new(); names.len()];
        let mut initial = Vec::new();
        for (name, _, value) in &self.values {
            let at = names.iter().position(|it| it == name).expect("all names are there");
            let text = value.label();
            let text = crate::given::given(&text).unwrap_or_else(|why| {
                problems.add(value.span, why, None);
                String::new()
            });
            let known_now = Names { values: &known, columns };
            match Template::parse(text.as_bytes(), Form::Raw, known_now) {
                Ok(template) => initial.push((at, template)),
                Err(wrong) => wrong.into_iter().for_each(|why| problems.add(value.span, why, None)),
            }
            known[at] = (*name).to_owned();
        }
        initial
    }

    /// The flows that users begin: those with a weight, or where none has one, all that no other runs.
    fn begun(&self, problems: &mut Problems) -> Vec<(&'a str, u64)> {
        let mut all: Vec<&'a str> = Vec::new();
        for step in &self.steps {
            if !all.contains(&step.flow) {
                all.push(step.flow);
            }
        }
        for (name, span, _) in &self.weights {
            if *name != TARGETS && !all.contains(name) {
                let message = format!("`{name}` is not a flow of this workload");
                problems.add(*span, message, did_you_mean(name, all.iter().copied()));
            }
        }
        let is_run =
            |name: &str| self.steps.iter().any(|step| step.run.is_some_and(|(run, _)| run == name));
        let weight = |name: &&'a str| match self.weights.is_empty() {
            true => u64::from(!is_run(name)),
            false => self.weight_of(name).unwrap_or(0),
        };
        let begun: Vec<(&str, u64)> = all
            .iter()
            .map(|name| (*name, weight(name)))
            .filter(|(_, weight)| *weight > 0)
            .collect();
        if begun.is_empty() && self.weight_of(TARGETS).is_none() {
            // Each runs another: nothing would be begun. The flow that is read finds the circle.
            return all.first().map(|name| (*name, 1)).into_iter().collect();
        }
        begun
    }

    fn weight_of(&self, name: &str) -> Option<u64> {
        self.weights.iter().find(|(known, ..)| *known == name).map(|(.., weight)| *weight)
    }

    /// Whether targets weigh beside the flows.
    pub(crate) fn has_targets(&self) -> bool {
        self.weight_of(TARGETS).is_some_and(|weight| weight > 0)
    }
}

/// The name in `[workload.weights]` that means the targets.
const TARGETS: &str = "targets";

/// Flows on their way to a plan.
struct Making<'g, 'a> {
    given: &'g Given<'a>,
    names: &'g [String],
    columns: &'g [String],
    around: &'g Around<'g>,
    origin: &'g Origin,
    expected: &'g mut Expected,
    /// By the step as written: an expectation is read once, however many flows run it.
    expectations: HashMap<usize, Option<u16>>,
    loops: usize,
    kinds: u32,
    steps: Vec<Step>,
}

impl Making<'_, '_> {
    /// Adds the steps of a flow, with those of the flows that it runs in their places.
    fn flow(&mut self, name: &str, problems: &mut Problems) {
        let mut order = Vec::new();
        if !self.expand(name, &mut vec![name], &mut order, problems) {
            return;
        }
        let first = self.steps.len();
        let mut known: Vec<String> = vec![String::new(); self.names.len()];
        for (initial, ..) in &self.given.values {
            self.learn(initial, &mut known);
        }
        for (nth, written) in order.iter().enumerate() {
            let step = &self.given.steps[*written];
            let is_first = nth == 0;
            if let (true, Some((_, span))) = (is_first, step.when) {
                let message = "the first step of a flow is always made; `when` cannot stand there";
                add(problems, span, message.to_owned(), None);
            }
            let expects = self.expectation(*written, problems);
            let here = self.steps.len();
            let kind = self.kinds;
            let writing = Writing {
                names: Names { values: &known, columns: self.columns },
                all: self.names,
                around: self.around,
                origin: self.origin,
                redirects_max: self.given.redirects_max,
                has_compression: self.given.has_compression,
            };
            let Some(mut made) = step.make(&writing, problems) else { continue };
            made.expects = expects;
            (made.kind, made.kind_again, made.kind_redirected) = (kind, kind, kind);
            if is_first && step.goes_back() {
                self.kinds += 1;
                made.kind_again = self.kinds;
            }
            if made.redirects_max > 0 {
                self.kinds += 1;
                made.kind_redirected = self.kinds;
            }
            self.kinds += 1;
            for take in &step.takes {
                self.learn(take.name, &mut known);
            }
            if let Some(mut back) =
                step.back(&Names { values: &known, columns: self.columns }, problems)
            {
                back.counter = self.loops;
                self.loops += 1;
                back.to = self.destination(step, (first, here), &made.name, problems);
                if back.to == first
                    && here > first
                    && self.steps[first].kind_again == self.steps[first].kind
                {
                    self.steps[first].kind_again = self.kinds;
                    self.kinds += 1;
                }
                let (to, counter) = (back.to, back.counter);
                made.back = Some(back);
                made.round_of = Some(counter);
                let inside = self.steps[to.min(here)..].iter_mut();
                inside
                    .filter(|it| it.round_of.is_none())
                    .for_each(|it| it.round_of = Some(counter));
            }
            self.steps.push(made);
        }
        if self.steps.len() > STEPS_MAX {
            let span = self.given.steps[0].span;
            add(
                problems,
                span,
                format!("the flows have more than {STEPS_MAX} steps together"),
                None,
            );
        }
    }

    /// The steps of a flow by their places in the file. Says whether they come to an end.
    fn expand<'n>(
        &self,
        name: &str,
        stack: &mut Vec<&'n str>,
        order: &mut Vec<usize>,
        problems: &mut Problems,
    ) -> bool
    where
        Self: 'n,
    {
        let steps = &self.given.steps;
        for (at, step) in steps.iter().enumerate().filter(|(_, step)| step.flow == name) {
            let Some((run, span)) = step.run else {
                order.push(at);
                continue;
            };
            if !steps.iter().any(|step| step.flow == run) {
                let message = format!("`{run}` is not a flow of this workload");
                add(problems, span, message, did_you_mean(run, steps.iter().map(|step| step.flow)));
                return false;
            }
            if stack.contains(&run) {
                let way: Vec<&str> = stack.iter().copied().chain([run]).collect();
                add(
                    problems,
                    span,
                    format!("a recursive flow: {} would never end", way.join(" → ")),
                    None,
                );
                return false;
            }
            // The name lives as long as the file does; the stack only as long as this call.
            let mut deeper: Vec<&str> = stack.iter().copied().chain([run]).collect();
            if order.len() > STEPS_MAX || !self.expand(run, &mut deeper, order, problems) {
                return false;
            }
        }
        true
    }

    /// Where a loop goes back to: its own step, or an earlier one of the flow by its name.
    fn destination(
        &self,
        step: &Written<'_>,
        (first, here): (usize, usize),
        own: &str,
        problems: &mut Problems,
    ) -> usize {
        let Some((name, span)) = step.back_to.filter(|(name, _)| *name != own) else { return here };
        let earlier = &self.steps[first..here];
        if let Some(at) = earlier.iter().position(|it| it.name == name) {
            return first + at;
        }
        let message = format!("`{name}` is no earlier step of this flow");
        let help = did_you_mean(name, earlier.iter().map(|it| it.name.as_str()));
        add(problems, span, message, help);
        here
    }

    fn expectation(&mut self, written: usize, problems: &mut Problems) -> Option<u16> {
        let (given, expected) = (self.given, &mut *self.expected);
        *self.expectations.entry(written).or_insert_with(|| match given.steps[written].expect {
            Some(table) => {
                let section = Section::open(table, "workload.step.expect", problems);
                expected.add(section, problems)
            }
            None => expected.of_all,
        })
    }

    fn learn(&self, name: &str, known: &mut [String]) {
        if let Some(at) = self.names.iter().position(|it| it == name) {
            known[at] = name.to_owned();
        }
    }
}

/// Adds a problem, once: a step may be read for several flows.
fn add(problems: &mut Problems, span: Span, message: String, help: Option<String>) {
    if !problems.list.iter().any(|it| it.span == span && it.message == message) {
        problems.add(span, message, help);
    }
}

fn weights<'a>(workload: &mut Section<'a>, problems: &mut Problems) -> Vec<(&'a str, Span, u64)> {
    let entries = workload.section("weights", problems).map(Section::entries).unwrap_or_default();
    let mut weights = Vec::with_capacity(entries.len());
    for (name, span, value) in entries {
        match value.value {
            model::options::Value::Integer(weight @ 0..=1_000_000) => {
                weights.push((name, span, weight.unsigned_abs()));
            }
            _ => {
                let message = format!(
                    "the weight of `{name}` must be a whole number from 0 to 1000000, but is {}",
                    value.label()
                );
                problems.add(value.span, message, None);
            }
        }
    }
    weights
}

fn data(workload: &mut Section<'_>, folder: &Path, problems: &mut Problems) -> Option<Data> {
    let path = workload.string("data", problems)?;
    let read = crate::given::bytes_of(&folder.join(path), DATA_BYTES_MAX);
    let parsed = read.map_err(|why| vec![format!("{path}: {why}")]).and_then(|bytes| {
        let text = std::str::from_utf8(&bytes);
        let text = text.map_err(|_| vec![format!("{path}: the file is not UTF-8 text")])?;
        Data::parse(path, text)
    });
    match parsed {
        Ok(data) => Some(data),
        Err(wrong) => {
            wrong.into_iter().for_each(|why| workload.reject("data", why, None, problems));
            None
        }
    }
}

/// The most users that a load begins; `None`: without end. What chance adds to Poisson arrivals is in it, but for one trial
/// in a billion.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a bound"
)]
fn users_max(load: &LoadPlan) -> Option<u64> {
    let schedule = match &load.arrivals {
        Arrivals::Closed { clients, .. } => return Some(u64::from(*clients)),
        Arrivals::Open { schedule } => schedule,
    };
    let (warmup, window) = (load.warmup, load.duration);
    let count = match schedule {
        Schedule::Constant { rate } | Schedule::Poisson { rate } | Schedule::Burst { rate, .. }
            if rate.is_max() =>
        {
            return bounded(load, None);
        }
        Schedule::Constant { rate } => rate.events_in(warmup + window) + 1,
        Schedule::Burst { rate, every } => rate.events_in(warmup + window + *every) + 1,
        Schedule::Poisson { rate } => {
            let mean = rate.events_in(warmup + window) as f64;
            (mean + 6.0 * mean.sqrt() + 10.0) as u64
        }
        Schedule::Ramp { from, to } => {
            let mean = (from.as_per_second() + to.as_per_second()) / 2.0;
            from.events_in(warmup) + (mean * window.as_secs_f64()) as u64 + 2
        }
        Schedule::Steps { steps } => {
            let before = steps.first().map_or(0, |step| step.rate.events_in(warmup));
            before + steps.iter().map(|step| step.rate.events_in(step.length) + 1).sum::<u64>()
        }
        Schedule::Trace { due_ns } => due_ns.len() as u64,
    };
    bounded(load, Some(count))
}

fn bounded(load: &LoadPlan, count: Option<u64>) -> Option<u64> {
    match load.transactions_max {
        0 => count,
        max => Some(count.map_or(max, |count| count.min(max))),
    }
}
