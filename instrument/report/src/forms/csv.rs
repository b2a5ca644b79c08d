//! A result as CSV (RFC 4180): a row for each trial of each setting, a column for each number.
//!
//! Numbers are raw, in the unit that the head names; what is not known is an empty field, and a quantile over all that
//! were due which is infinite is `inf`. Texts are others': control characters are shown by their code, and what a spreadsheet
//! would compute has a `'` before it. It must never round, and never leave out a row because a trial went wrong.

use std::collections::{BTreeMap, BTreeSet};

use model::result::{Counts, Distribution, LatencyResult, RunResult, SettingResult, TrialResult};

use crate::paint::visible;

/// The run's trials as CSV.
#[must_use]
pub fn csv(run: &RunResult) -> String {
    csv_of(std::slice::from_ref(run))
}

/// The trials of several runs as one CSV: a column that only some have is empty for the others.
#[must_use]
pub fn csv_of(runs: &[RunResult]) -> String {
    let rows: Vec<Row> = runs.iter().flat_map(rows).collect();
    let heads = heads(&rows);
    let mut text = String::new();
    push_line(&mut text, heads.iter().map(String::as_str));
    for row in &rows {
        let by_head: BTreeMap<&str, &str> =
            row.iter().map(|(head, value)| (head.as_str(), value.as_str())).collect();
        push_line(&mut text, heads.iter().map(|h| by_head.get(h.as_str()).copied().unwrap_or("")));
    }
    text
}

/// Head and value of each field.
type Row = Vec<(String, String)>;

/// All heads: each after the one that it follows in its row, so that neighbours stay together.
fn heads(rows: &[Row]) -> Vec<String> {
    let mut heads: Vec<String> = Vec::new();
    let mut known: BTreeSet<String> = BTreeSet::new();
    for row in rows {
        let mut after = 0;
        for (head, _) in row {
            if known.insert(head.clone()) {
                heads.insert(after, head.clone());
                after += 1;
            } else if let Some(place) = heads.iter().position(|other| other == head) {
                after = place + 1;
            }
        }
    }
    heads
}

fn rows(run: &RunResult) -> Vec<Row> {
    let of_setting = |setting: &SettingResult| -> Vec<Row> {
        setting.trials.iter().map(|trial| row(run, setting, trial)).collect()
    };
    run.settings.iter().flat_map(of_setting).collect()
}

fn row(run: &RunResult, setting: &SettingResult, trial: &TrialResult) -> Row {
    let mut row = Fields::default();
    row.text("run", &run.name);
    row.text("started", &run.started);
    row.text("setting", &setting.key);
    for (axis, label) in &setting.values {
        row.text(&format!("axis.{axis}"), label);
    }
    row.raw("trial", trial.trial.to_string());
    row.text("verdict", trial.verdict.word());
    row.text("declared", setting.expect.map_or("", model::result::Verdict::word));
    row.text("saturated", if setting.saturated { "true" } else { "false" });
    row.text("reason", &trial.reason);
    row.text("stream", &trial.stream);
    row.text("until", &trial.final_stage);
    row.int("window_ns", Some(trial.window_ns));
    let rates = &trial.rates;
    row.real("planned_per_s", rates.planned_per_s);
    row.real("offered_per_s", Some(rates.offered_per_s));
    row.real("sent_per_s", Some(rates.sent_per_s));
    for (stage, per_s) in &rates.reached_per_s {
        row.real(&format!("reached.{stage}_per_s"), Some(*per_s));
    }
    row.real("goodput_per_s", Some(rates.goodput_per_s));
    counts(&mut row, "", &trial.counts);
    if let Some(background) = &trial.background {
        row.text("background.until", trial.final_stage_of_load());
        counts(&mut row, "background.", background);
    }
    for latency in &trial.latency {
        stage(&mut row, latency);
    }
    distribution(&mut row, "send_lag", &trial.send_lag);
    distribution(&mut row, "own_lag", &trial.own_lag);
    let (low, high) = trial.throughput_windows.unzip();
    row.real("throughput_min_per_s", low);
    row.real("throughput_max_per_s", high);
    for of in trial.node_stages.iter().flat_map(|it| &it.stages) {
        let stage = format!("stage.{}", of.stage);
        row.count(&format!("{stage}.passed"), of.passed);
        row.count(&format!("{stage}.count"), of.count);
        row.real(&format!("{stage}.throughput_per_s"), of.throughput_per_s);
        row.real(&format!("{stage}.throughput_min_per_s"), of.throughput_min_per_s);
        row.real(&format!("{stage}.throughput_max_per_s"), of.throughput_max_per_s);
        node_stage(&mut row, &stage, &of.latency);
    }
    let attempts = &trial.attempts;
    row.count("attempts.allowed", attempts.allowed);
    row.count("attempts.resent", attempts.resent);
    row.count("attempts.total", attempts.total);
    row.real("attempts.mean", attempts.mean);
    row.count("attempts.max", attempts.max);
    if let Some(batches) = &trial.batches {
        row.count("batches.count", batches.count);
        row.count("batches.transactions", batches.transactions);
        row.real("batches.size.mean", batches.size_mean);
        row.raw("batches.size.max", batches.size_max.map_or_else(String::new, |of| of.to_string()));
        row.count("batches.full", batches.full);
        row.count("batches.completion", batches.completion);
        row.count("batches.delay", batches.delay);
        row.count("batches.drain", batches.drain);
    }
    if let Some(of) = &trial.health {
        row.count("connections.opened", of.opened);
        row.count("connections.reopened", of.reopened);
        row.count("connections.closed", of.closed);
        row.count("connections.reset", of.reset);
        row.count("connections.unopened", of.unopened);
        row.count("connections.protocol_errors", of.protocol_errors);
        row.count("connections.unasked_bytes", of.unasked_bytes);
        row.count("connections.lost", of.lost);
        row.count("connections.doubtful", of.doubtful);
        row.count("connections.answers.min", of.answers_min);
        row.real("connections.answers.mean", of.answers_mean);
        row.count("connections.answers.max", of.answers_max);
    }
    if let Some(fates) = &trial.fates {
        let of = [
            ("once", fates.once),
            ("acknowledged_early", fates.acknowledged_early),
            ("lost", fates.lost),
            ("lost_as_refused", fates.lost_as_refused),
            ("duplicate", fates.duplicate),
            ("phantom", fates.phantom),
            ("phantom_unrecorded", fates.phantom_unrecorded),
            ("late", fates.late),
            ("refused_yet_present", fates.refused_yet_present),
            ("refused_as_logged", fates.refused_as_logged),
            ("refused_entries", fates.refused_entries),
            ("entries", fates.entries),
            ("reordered", fates.reordered),
        ];
        for (name, count) in of {
            row.count(&format!("fates.{name}"), count);
        }
    }
    row.text("path", &trial.path);
    row.0
}

fn counts(row: &mut Fields, prefix: &str, counts: &Counts) {
    row.count(&format!("{prefix}due"), counts.due);
    row.count(&format!("{prefix}sent"), counts.sent);
    row.count(&format!("{prefix}committed"), counts.committed);
    row.count(&format!("{prefix}rejected"), counts.rejected);
    for (class, count) in &counts.rejected_by_class {
        row.count(&format!("{prefix}rejected.{class}"), *count);
    }
    row.count(&format!("{prefix}unknown"), counts.unknown);
    row.count(&format!("{prefix}shed"), counts.shed);
}

fn stage(row: &mut Fields, latency: &LatencyResult) {
    let stage = &latency.stage;
    row.count(&format!("{stage}.inf"), latency.inf);
    row.count(&format!("{stage}.refused"), latency.refused);
    row.count(&format!("{stage}.missing"), latency.missing);
    let mean = latency.due_mean_ns.map_or_else(|| "inf".to_owned(), |ns| ns.to_string());
    row.raw(&format!("{stage}.due_mean_ns"), mean);
    row.real(&format!("{stage}.restricted_mean_ns"), latency.restricted_mean_ns);
    distribution(row, &format!("{stage}.response"), &latency.response);
    distribution(row, &format!("{stage}.service"), &latency.service);
}

/// Nodes' own metrics have no intervals, nor has a number of unknown origin.
fn node_stage(row: &mut Fields, name: &str, of: &Distribution) {
    row.count(&format!("{name}.samples"), of.count);
    row.real(&format!("{name}.mean_ns"), of.mean_ns);
    row.int(&format!("{name}.min_ns"), of.min_ns);
    for q in &of.quantiles {
        row.int(&format!("{name}.{}_ns", q.name), q.value_ns);
    }
    row.int(&format!("{name}.max_ns"), of.max_ns);
}

fn distribution(row: &mut Fields, name: &str, of: &Distribution) {
    row.count(&format!("{name}.count"), of.count);
    row.real(&format!("{name}.mean_ns"), of.mean_ns);
    row.real(&format!("{name}.mean_low_ns"), of.mean_low_ns);
    row.real(&format!("{name}.mean_high_ns"), of.mean_high_ns);
    row.int(&format!("{name}.min_ns"), of.min_ns);
    for q in &of.quantiles {
        row.int(&format!("{name}.{}_ns", q.name), q.value_ns);
        row.int(&format!("{name}.{}_low_ns", q.name), q.low_ns);
        row.int(&format!("{name}.{}_high_ns", q.name), q.high_ns);
        let of_all = q.unconditional_ns.map_or_else(|| "inf".to_owned(), |ns| ns.to_string());
        row.raw(&format!("{name}.{}_unconditional_ns", q.name), of_all);
        row.count(&format!("{name}.{}_beyond", q.name), q.beyond);
    }
    row.int(&format!("{name}.max_ns"), of.max_ns);
}

/// A row in the making.
#[derive(Default)]
struct Fields(Row);

impl Fields {
    fn text(&mut self, head: &str, value: &str) {
        self.raw(head, harmless(value));
    }

    /// A number, as it is; the names of stages and axes in a head are texts.
    fn raw(&mut self, head: &str, value: String) {
        self.0.push((harmless(head), value));
    }

    fn int(&mut self, head: &str, value: Option<i64>) {
        self.raw(head, value.map_or_else(String::new, |value| value.to_string()));
    }

    fn count(&mut self, head: &str, value: u64) {
        self.raw(head, value.to_string());
    }

    fn real(&mut self, head: &str, value: Option<f64>) {
        // As JSON prints it; what is not finite has no form there and none here.
        let number = value.and_then(serde_json::Number::from_f64);
        self.raw(head, number.map_or_else(String::new, |number| number.to_string()));
    }
}

/// A text that neither drives a terminal nor is computed by a spreadsheet (OWASP, "CSV injection").
fn harmless(text: &str) -> String {
    let text = visible(text);
    if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text }
}

fn push_line<'a>(text: &mut String, fields: impl Iterator<Item = &'a str>) {
    for (index, field) in fields.enumerate() {
        if index > 0 {
            text.push(',');
        }
        if field.contains(['"', ',', '\r', '\n']) {
            text.push_str(&format!("\"{}\"", field.replace('"', "\"\"")));
        } else {
            text.push_str(field);
        }
    }
    text.push_str("\r\n");
}
