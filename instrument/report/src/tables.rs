//! The tables that a result is shown as, before they are dressed: the terminal and Markdown print the same ones.
//!
//! Nothing here may compute a figure that a verdict rests on; shares of counts that stand in the result are all
//! the arithmetic there is.

mod audits;
mod connections;
mod durability;
mod faults;
mod flows;
mod groups;
mod latency;
mod ledger;
mod node_stages;
mod nodes;
mod processor;
mod promised;
mod published;
mod results;
mod scalability;
mod search;
mod sending;
mod stated;
mod steps;
mod streams;
mod thresholds;
mod void;
mod way;

pub(crate) use audits::{
    AuditLine, Of, audit_briefs, audit_count, audit_lines, audits, audits_ok, checks, objecting,
    skipped_names, voids,
};
pub(crate) use connections::{connections, connections_line};
pub(crate) use durability::{durability, durability_brief, durability_lines};
pub(crate) use faults::faults;
pub(crate) use flows::{flow_lines, flows};
pub(crate) use groups::{
    GROUPS_MAX, class_pointer, errors, failed_parts, failed_parts_of_all, failure_classes, groups,
    groups_of,
};
pub(crate) use latency::{
    final_latency, quantiles_of_one, quantiles_of_several, said_of_all_due, said_of_all_trials,
    said_of_the_unseen, stages,
};
pub(crate) use ledger::{FateLine, fate_lines, fates_of_several};
pub(crate) use node_stages::{node_stage_lines, node_stages};
pub(crate) use nodes::{metrics_of_nodes, nodes, nodes_of};
pub(crate) use processor::{processor, processor_lines};
pub(crate) use promised::{minutes, minutes_line, pages, pages_line, promised};
pub(crate) use published::{has_statuses, published};
pub(crate) use results::{headline, is_limit_found, kept, quantile_named, results};
pub(crate) use scalability::{scalability, scalability_lines};
pub(crate) use search::{search, search_lines};
pub(crate) use sending::{attempts, attempts_line, batches, batches_line};
pub(crate) use stated::{definition_lines, two_definitions};
pub(crate) use steps::{step_lines, steps};
pub(crate) use streams::{streams, streams_line};
pub(crate) use thresholds::{
    is_declared, threshold_keys, threshold_mark, threshold_words, thresholds,
};
pub(crate) use void::{is_family_void, marked, marked_cell, void_legend};
pub(crate) use way::{way, way_lines};

use model::plan::SearchKey;
use model::result::{RunResult, SearchTrial, SettingResult, TrialResult};

use crate::called;
use crate::grid::{Cell, Grid};
use crate::paint::{Paint, clean, columns_of};

/// A trial with the name that its rows carry.
pub(crate) struct Shown<'a> {
    /// The setting's key, with the trial's number if the setting has several.
    pub(crate) label: String,
    /// Its setting.
    pub(crate) setting: &'a SettingResult,
    /// Names of axes, in the order of the experiment.
    pub(crate) axes: &'a [String],
    /// The trial.
    pub(crate) trial: &'a TrialResult,
    /// Its place in the result document, as a JSON pointer.
    pub(crate) pointer: String,
    /// That of its setting.
    pub(crate) setting_pointer: String,
    /// Its place in a search, and its part in it.
    pub(crate) search: Option<(usize, &'a SearchTrial)>,
    /// The key that the run searched.
    pub(crate) find: SearchKey,
}

impl Shown<'_> {
    /// Its setting's key, with the trial's number if the setting has several: the same wherever it is shown.
    pub(crate) fn trial_key(&self) -> String {
        let key = clean(&self.setting.key);
        match self.setting.trials.len() {
            0 | 1 => key,
            _ => format!("{key} #{}", self.trial.trial + 1),
        }
    }

    /// The place of something of the trial.
    pub(crate) fn at(&self, rest: &str) -> String {
        format!("{}/{rest}", self.pointer)
    }

    /// The place of its latency to the stage that counts as committed, if it has any.
    pub(crate) fn latency_at(&self) -> String {
        let stages = &self.trial.latency;
        let index = stages.iter().position(|it| it.stage == self.trial.final_stage);
        self.at(&format!("latency/{}", index.unwrap_or(stages.len().saturating_sub(1))))
    }
}

/// A key of a map as a part of a JSON pointer (RFC 6901).
pub(crate) fn pointer_part(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// All trials in the order of the plan.
pub(crate) fn shown(run: &RunResult) -> Vec<Shown<'_>> {
    let mut all = Vec::new();
    for (at, setting) in run.settings.iter().enumerate() {
        for (index, trial) in setting.trials.iter().enumerate() {
            let setting_pointer = format!("/settings/{at}");
            let pointer = format!("{setting_pointer}/trials/{index}");
            let axes = &run.axes;
            let label = String::new();
            let is_it = |of: &SearchTrial| of.setting == setting.key && of.trial == trial.trial;
            let steps = run.search.iter().flat_map(|search| &search.trials).enumerate();
            let search = steps.into_iter().find(|(_, of)| is_it(of));
            let find = run.search.as_ref().map(|search| search.find).unwrap_or_default();
            let row = Shown { label, setting, axes, trial, pointer, setting_pointer, search, find };
            all.push(Shown { label: row.trial_key(), ..row });
        }
    }
    all
}

/// Letters that the name of a setting may take on a page before it is shortened.
const PAGE_COLUMNS_MAX: usize = 24;

/// The same as a page calls them, everywhere on it: by the axes that vary.
pub(crate) fn shown_on_page(run: &RunResult) -> Vec<Shown<'_>> {
    let mut all = shown(run);
    shorten(&mut all, PAGE_COLUMNS_MAX);
    all
}

/// Calls settings by the axes that vary, and by their values alone where the names of the axes do not fit into
/// `columns_max`.
pub(crate) fn shorten(shown: &mut [Shown<'_>], columns_max: usize) {
    let longest =
        |labels: &[String]| labels.iter().map(|label| columns_of(label)).max().unwrap_or(0);
    let labels: Vec<String> = shown.iter().map(|row| row.label.clone()).collect();
    if longest(&labels) <= columns_max {
        return;
    }
    let Some(first) = shown.first() else { return };
    let settings: Vec<&SettingResult> = shown.iter().map(|row| row.setting).collect();
    let varying = called::differing(first.axes, &settings);
    let call_all = |with_names: bool| -> Vec<String> {
        let call = |row: &Shown<'_>| {
            let part = |axis: &&str| {
                let value = row.setting.values.get(*axis)?;
                Some(clean(&if with_names {
                    format!("{axis}={value}")
                } else {
                    called::alone(axis, value)
                }))
            };
            let parts: Vec<String> = varying.iter().filter_map(part).collect();
            let key = parts.join(if with_names { "," } else { " · " });
            if row.setting.trials.len() > 1 {
                format!("{key} #{}", row.trial.trial + 1)
            } else {
                key
            }
        };
        shown.iter().map(call).collect()
    };
    let with_names = call_all(true);
    let labels = if longest(&with_names) <= columns_max { with_names } else { call_all(false) };
    // Settings that axes do not tell apart keep their keys.
    let different: std::collections::BTreeSet<&String> = labels.iter().collect();
    if different.len() == labels.len() {
        for (row, label) in shown.iter_mut().zip(labels) {
            row.label = label;
        }
    }
}

/// Whether the latencies are those of a probe.
pub(crate) fn is_probe(trial: &TrialResult) -> bool {
    trial.stream == "probe"
}

/// Whether nothing fell due in a trial, and nodes stamped nothing: it has no numbers.
pub(crate) fn is_unsent(trial: &TrialResult) -> bool {
    trial.counts.due == 0
        && trial.background.as_ref().is_none_or(|load| load.due == 0)
        && trial.node_stages.is_none()
}

/// A table that the experiment asks for.
pub(crate) fn asked_for(table: &model::result::TableResult, pointer: &str) -> Grid {
    let mut grid = Grid::new();
    for (index, head) in table.columns.iter().enumerate() {
        let is_number =
            table.rows.iter().filter_map(|row| row.get(index)).any(|cell| cell.value.is_some());
        let head = clean(head);
        grid = match (index, is_number) {
            (0, _) => grid.pin(&head),
            (_, true) => grid.number(index_group(index), &head),
            (_, false) => grid.words(index_group(index), &head),
        };
    }
    for (at, row) in table.rows.iter().enumerate() {
        let cells = (0..table.columns.len()).map(|index| {
            let Some(of) = row.get(index) else { return Cell::default() };
            let thin = if of.grey { "~" } else { "" };
            let cell = match (of.void, of.grey) {
                (true, _) => Cell::painted(format!("!{thin}{}", clean(&of.text)), Paint::Caution),
                (false, true) => Cell::painted(format!("~{}", clean(&of.text)), Paint::Dim),
                (false, false) => Cell::new(clean(&of.text)),
            };
            match of.value {
                Some(_) => cell.at(format!("{pointer}/rows/{at}/{index}/value")),
                None => cell,
            }
        });
        grid.row(cells.collect());
    }
    grid
}

/// Each column of its own group, so that a wide table breaks anywhere.
fn index_group(index: usize) -> u8 {
    u8::try_from(index % 2).expect("zero or one")
}
