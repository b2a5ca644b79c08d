//! In what two plans, hosts and builds differ, and whether numbers can be held against each other all the same.
//!
//! The load, the work that is asked for and the machine must be the same. How the system is deployed may differ: that is
//! what is compared.

use model::comparison::Difference;
use model::facts::Environment;
use model::plan::{Plan, SettingPlan};
use model::result::RunResult;
use serde_json::Value;

/// Memory of the same host as the kernel counts it after another start.
const MEMORY_SHARE: f64 = 0.05;

/// A run as far as it must be like another.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Its plan.
    pub plan: &'a Plan,
    /// Its host and tool.
    pub environment: &'a Environment,
    /// Its result; `None` before it is run.
    pub result: Option<&'a RunResult>,
}

/// All differences; those that matter first.
#[must_use]
pub fn differences(baseline: &Subject<'_>, candidate: &Subject<'_>) -> Vec<Difference> {
    let mut all = Found::default();
    hosts(baseline.environment, candidate.environment, &mut all);
    if let (Some(before), Some(after)) = (baseline.result, candidate.result) {
        all.add("driver", drivers(before), drivers(after), true);
        all.add("fidelity", before.fidelity.join(", "), after.fidelity.join(", "), true);
    }
    plans(baseline.plan, candidate.plan, &mut all);
    all.0.sort_by_key(|it| !it.matters);
    all.0
}

/// How the engine talked to the kernel.
fn drivers(of: &RunResult) -> String {
    let mut all: Vec<&str> = Vec::new();
    for trial in of.settings.iter().flat_map(|it| &it.trials) {
        if !trial.driver.is_empty() && !all.contains(&trial.driver.as_str()) {
            all.push(&trial.driver);
        }
    }
    all.join(", ")
}

#[derive(Default)]
struct Found(Vec<Difference>);

impl Found {
    fn add(&mut self, of: &str, baseline: String, candidate: String, matters: bool) {
        let difference = Difference { of: of.to_owned(), baseline, candidate, matters };
        if difference.baseline != difference.candidate && !self.0.contains(&difference) {
            self.0.push(difference);
        }
    }
}

fn hosts(baseline: &Environment, candidate: &Environment, all: &mut Found) {
    type Text = (&'static str, fn(&Environment) -> String);
    let texts: [Text; 6] = [
        ("assay", |it| it.assay.clone()),
        ("host.cpu", |it| it.cpu.clone()),
        ("host.cpus", |it| it.cpus.to_string()),
        ("host.kernel", |it| it.kernel.clone()),
        ("host.governor", |it| it.governor.clone()),
        ("host.virtualisation", |it| it.virtualisation.clone()),
    ];
    for (of, text) in texts {
        all.add(of, text(baseline), text(candidate), true);
    }
    #[expect(clippy::cast_precision_loss, reason = "a share of two sizes")]
    let [before, after] = [baseline, candidate].map(|it| it.memory_bytes as f64);
    if (before - after).abs() > MEMORY_SHARE * before.max(after) {
        let gib = |bytes: f64| format!("{:.1} GiB", bytes / f64::from(1_u32 << 30));
        all.add("host.memory", gib(before), gib(after), true);
    }
}

fn plans(baseline: &Plan, candidate: &Plan, all: &mut Found) {
    all.add("name", baseline.name.clone(), candidate.name.clone(), false);
    let is_search = |plan: &Plan| if plan.search.is_some() { "a search" } else { "settings" };
    all.add("search", is_search(baseline).to_owned(), is_search(candidate).to_owned(), true);
    if let (Some(one), Some(other)) = (&baseline.search, &candidate.search) {
        leaves("search", &value(one), &value(other), true, all);
        let promised = |plan: &Plan| {
            plan.thresholds.iter().map(|it| it.expr.clone()).collect::<Vec<_>>().join(", ")
        };
        all.add("threshold", promised(baseline), promised(candidate), true);
        // Its settings come of its answers; the pattern of all is the first.
        if let (Some(one), Some(other)) = (baseline.settings.first(), candidate.settings.first()) {
            setting(one, other, &["load.arrivals", "load.duration"], all);
        }
        return;
    }
    if let ([one], [other]) = (baseline.settings.as_slice(), candidate.settings.as_slice()) {
        setting(one, other, &[], all);
        return;
    }
    let keys = |plan: &Plan| plan.settings.iter().map(|it| it.key.clone()).collect::<Vec<_>>();
    let pair = |one: &SettingPlan| candidate.settings.iter().find(|it| it.key == one.key);
    let mut common = 0;
    for one in &baseline.settings {
        if let Some(other) = pair(one) {
            common += 1;
            setting(one, other, &[], all);
        }
    }
    let (before, after) = (keys(baseline).join("; "), keys(candidate).join("; "));
    all.add("settings", before, after, common == 0);
}

/// Differences of two settings, but for the paths that are left out.
fn setting(one: &SettingPlan, other: &SettingPlan, without: &[&str], all: &mut Found) {
    let mut found = Found::default();
    found.add("system.kind", one.system.kind.clone(), other.system.kind.clone(), true);
    type Part = (&'static str, fn(&SettingPlan) -> Value, bool);
    let parts: [Part; 8] = [
        ("system.deploy", |it| value(&it.system.deploy), false),
        ("workload", |it| value(&it.system.workload), true),
        ("load", |it| value(&it.load), true),
        ("probe", |it| value(&it.probe), true),
        ("measure", |it| value(&it.measure), true),
        ("fault", |it| value(&it.faults), true),
        ("links", |it| value(&it.links), true),
        ("disk", |it| value(&it.disks), true),
    ];
    for (name, part, matters) in parts {
        leaves(name, &part(one), &part(other), matters, &mut found);
    }
    for it in found.0.into_iter().filter(|it| !without.iter().any(|path| it.of.starts_with(path))) {
        all.add(&it.of, it.baseline, it.candidate, it.matters);
    }
}

fn value(of: &impl serde::Serialize) -> Value {
    serde_json::to_value(of).unwrap_or(Value::Null)
}

/// The leaves in which two trees differ.
fn leaves(path: &str, one: &Value, other: &Value, matters: bool, all: &mut Found) {
    match (one, other) {
        (Value::Object(first), Value::Object(second)) => {
            let mut keys: Vec<&String> = first.keys().collect();
            keys.extend(second.keys().filter(|key| !first.contains_key(*key)));
            for key in keys {
                let at =
                    |of: &serde_json::Map<String, Value>| of.get(key).cloned().unwrap_or_default();
                leaves(&format!("{path}.{key}"), &at(first), &at(second), matters, all);
            }
        }
        _ if one != other => all.add(path, text(one), text(other), matters),
        _ => {}
    }
}

fn text(of: &Value) -> String {
    match of {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
