//! What nodes stamped, on its way to stages.parquet and traces.parquet: events are counted by second, stage and node,
//! spans are sampled by their transaction.
//!
//! No event is ever dropped for want of room: when much is open, what there is of each second is written, and a second
//! then has several rows, which readers add up. What is left out for another reason is counted.

use std::collections::HashMap;

use model::WallTime;
use model::node_events::{NODE_STAGES_MAX, NodeEvent, NodeEventsFacts, NodeSpan, NodeStage};

use crate::columns::writing;
use crate::disk::PartialFile;
use crate::error::RecordError;
use crate::histogram_v2::slot_of_length;
use crate::sampled_spans::SampledSpans;
use crate::slots::Counts;
use crate::stage_columns::{Cell, StageColumns};
use crate::traces;
use crate::trial::TrialFolder;

pub(crate) const STAGES: &str = "stages.parquet";
pub(crate) const TRACES: &str = "traces.parquet";

/// The most nodes that are told apart: what has more is not started by one instrument.
const NODES_MAX: usize = 10_000;
/// Seconds before the trial's start that an event may lie: nodes that ran for a day before.
const SECONDS_BEFORE_MAX: i64 = 86_400;
/// The longest trial whose seconds are told apart: 46 days.
const SECONDS_MAX: i64 = 4_000_000;
/// Seconds × stages × nodes that are open at once; a few hundred bytes to a few kB each.
const OPEN_CELLS_MAX: usize = 1 << 16;
/// Samples that are open at once: some 40 MB as a rule, 300 MB at the very worst (see [`Counts`]).
const OPEN_SAMPLES_MAX: usize = 4 << 20;
/// Problems that are kept in words.
const PROBLEMS_MAX: usize = 100;
/// The longest problem in words.
const PROBLEM_BYTES_MAX: usize = 1000;
const SECOND_NS: i64 = 1_000_000_000;

/// Takes what nodes stamped and keeps it in a trial's folder. A disk that fails is one more problem in the facts: an
/// adapter that hands over millions of events cannot do anything about it.
pub struct NodeEventsWriter {
    folder: TrialFolder,
    started: WallTime,
    stages: Vec<NodeStage>,
    nodes: Vec<String>,
    /// The node of the event before: files are read one after another.
    last_node: usize,
    cells: Vec<Cell>,
    /// By node, stage and second.
    places: HashMap<(u32, u32, i64), usize>,
    /// The cell of the event before, by node and stage: events come nearly in the order of time.
    recent: Vec<(i64, usize)>,
    open_samples: usize,
    file: Option<StageColumns<PartialFile>>,
    spans: SampledSpans,
    facts: NodeEventsFacts,
}

impl NodeEventsWriter {
    /// Starts stages.parquet.
    pub(crate) fn create(
        folder: TrialFolder,
        started: WallTime,
        stages: &[NodeStage],
    ) -> Result<Self, RecordError> {
        let path = folder.file(STAGES);
        let file = StageColumns::start(PartialFile::create(&path)?)
            .map_err(|error| writing(&path, error))?;
        Ok(Self {
            folder,
            started,
            stages: stages.iter().take(NODE_STAGES_MAX).cloned().collect(),
            nodes: Vec::new(),
            last_node: 0,
            cells: Vec::new(),
            places: HashMap::new(),
            recent: Vec::new(),
            open_samples: 0,
            file: Some(file),
            spans: SampledSpans::default(),
            facts: NodeEventsFacts::default(),
        })
    }

    /// Counts an event.
    pub fn event(&mut self, event: &NodeEvent<'_>) {
        self.facts.events += 1;
        let Some((node, stage)) = self.place_of(event.node, event.stage) else { return };
        let second = self.stamp(event.at).div_euclid(SECOND_NS);
        if !(-SECONDS_BEFORE_MAX..SECONDS_MAX).contains(&second) {
            self.facts.outside += 1;
            return;
        }
        self.facts.transactions = self.facts.transactions.saturating_add(event.count);
        let index = self.cell(node, stage, second);
        let cell = &mut self.cells[index];
        cell.count = cell.count.saturating_add(event.count);
        if let Some(took) = event.took {
            let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
            cell.sum_ns = cell.sum_ns.saturating_add(ns);
            cell.lengths.add_slot(slot_of_length(ns));
            self.open_samples += 1;
            if self.open_samples >= OPEN_SAMPLES_MAX {
                self.write_open();
            }
        }
    }

    /// Keeps a span, if its transaction is sampled.
    pub fn span(&mut self, span: &NodeSpan<'_>) {
        self.facts.spans += 1;
        if !self.spans.takes(span.tx) {
            return;
        }
        let (from, to) = (self.stamp(span.from), self.stamp(span.to));
        if let Some((node, stage)) = self.place_of(span.node, span.stage) {
            self.spans.push(traces::KeptSpan { tx: span.tx, stage, node, from, to });
        }
    }

    /// Notes that something could not be read.
    pub fn problem(&mut self, mut words: String) {
        if self.facts.problems.len() == PROBLEMS_MAX {
            self.facts.problems_left_out += 1;
            return;
        }
        let mut end = words.len().min(PROBLEM_BYTES_MAX);
        while !words.is_char_boundary(end) {
            end -= 1;
        }
        words.truncate(end);
        self.facts.problems.push(words);
    }

    /// Completes both files and says what came of it.
    #[must_use]
    pub fn close(mut self) -> NodeEventsFacts {
        self.write_open();
        if let Some(file) = self.file.take() {
            let kept = self.finish_stages(file);
            self.note(kept);
        }
        let kept = self.write_traces();
        self.note(kept);
        self.facts.sampled_one_in = self.spans.one_in();
        self.facts.spans_kept = self.spans.count() as u64;
        self.facts.is_whole = self.facts.problems.is_empty();
        self.facts
    }

    /// The calendar's time on the trial's line; both are of this host's clocks, or of one that keeps the same time.
    const fn stamp(&self, at: WallTime) -> i64 {
        at.unix_ns().saturating_sub(self.started.unix_ns())
    }

    /// Indices of a node and a stage; `None`, and counted, if there is no such stage or no room for the node.
    fn place_of(&mut self, node: &str, stage: u32) -> Option<(u32, u32)> {
        let is_declared = usize::try_from(stage).is_ok_and(|stage| stage < self.stages.len());
        if !is_declared {
            self.facts.undeclared += 1;
            return None;
        }
        if self.nodes.get(self.last_node).is_none_or(|last| last != node) {
            let known = self.nodes.iter().position(|known| known == node);
            self.last_node = match known {
                Some(index) => index,
                None if self.nodes.len() == NODES_MAX => {
                    self.facts.beyond_nodes += 1;
                    return None;
                }
                None => self.add_node(node),
            };
        }
        Some((u32::try_from(self.last_node).expect("at most NODES_MAX"), stage))
    }

    #[cold]
    fn add_node(&mut self, node: &str) -> usize {
        self.nodes.push(node.to_owned());
        self.recent.resize(self.nodes.len() * self.stages.len(), (i64::MIN, 0));
        self.nodes.len() - 1
    }

    #[inline]
    fn cell(&mut self, node: u32, stage: u32, second: i64) -> usize {
        let series = node as usize * self.stages.len() + stage as usize;
        let (recent, index) = self.recent[series];
        if recent == second {
            return index;
        }
        let index = self.other_cell(node, stage, second);
        self.recent[series] = (second, index);
        index
    }

    #[cold]
    fn other_cell(&mut self, node: u32, stage: u32, second: i64) -> usize {
        if let Some(index) = self.places.get(&(node, stage, second)) {
            return *index;
        }
        if self.cells.len() >= OPEN_CELLS_MAX {
            self.write_open();
        }
        self.places.insert((node, stage, second), self.cells.len());
        let lengths = Counts::default();
        self.cells.push(Cell { second, stage, node, count: 0, sum_ns: 0, lengths });
        self.cells.len() - 1
    }

    /// Writes what is open, and forgets it.
    fn write_open(&mut self) {
        self.cells.sort_unstable_by_key(|cell| (cell.second, cell.stage, cell.node));
        if let Some(mut file) = self.file.take() {
            match file.write(&self.cells, &self.stages, &self.nodes) {
                Ok(()) => self.file = Some(file),
                // Half a file is none: it goes with its writer.
                Err(error) => self.note(Err(writing(&self.folder.file(STAGES), error))),
            }
        }
        self.cells.clear();
        self.places.clear();
        self.recent.fill((i64::MIN, 0));
        self.open_samples = 0;
    }

    fn finish_stages(&self, mut file: StageColumns<PartialFile>) -> Result<(), RecordError> {
        let file = file.finish().map_err(|error| writing(&self.folder.file(STAGES), error))?;
        self.folder.finish_file(STAGES, file)
    }

    fn write_traces(&mut self) -> Result<(), RecordError> {
        let spans = self.spans.sorted();
        if spans.is_empty() {
            return Ok(());
        }
        let path = self.folder.file(TRACES);
        let mut file = PartialFile::create(&path)?;
        traces::write(&mut file, spans, &self.stages, &self.nodes)
            .map_err(|error| writing(&path, error))?;
        self.folder.finish_file(TRACES, &mut file)
    }

    fn note(&mut self, kept: Result<(), RecordError>) {
        if let Err(error) = kept {
            // Worth more than the adapter's hundredth: without it the reason for the missing file is lost.
            self.facts.problems.truncate(PROBLEMS_MAX - 1);
            self.facts.problems.push(error.to_string());
        }
    }
}
