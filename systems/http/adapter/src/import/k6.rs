//! A k6 script's `options`, read as far as it says what there is here, too: users, rates, stages, thresholds. The script is
//! not run: its requests are no data. Everything that is left out is named.

mod literal;
mod thresholds;

use model::quantity::parse_duration;

use super::{Imported, counted, experiment::quoted};
use literal::Value;

/// Steps that a ramp of k6 is made of, at most: here a load has steps, or one ramp.
const PIECES_MAX: u32 = 10;

/// Every iteration of k6 counts.
const NO_WARMUP: &str = "warmup = \"0s\"\n";

/// Keys that say nothing of the load, and that nothing is lost without.
const HARMLESS: [&str; 5] =
    ["discardResponseBodies", "tags", "systemTags", "summaryTrendStats", "ext"];

/// Whether it looks like a script of k6.
pub(super) fn is_script(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(64 << 10)]);
    [
        "from \"k6",
        "from 'k6",
        "require('k6",
        "require(\"k6",
        "export const options",
        "export let options",
    ]
    .iter()
    .any(|mark| text.contains(mark))
}

/// Reads the options and the first URL.
pub(super) fn import(bytes: &[u8]) -> Result<Imported, String> {
    let script = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let script = literal::without_comments(script);
    let options = options(&script)?;
    let mut taking = Taking::default();
    let load = taking.load(&options);
    let thresholds = options.get("thresholds").map(|it| thresholds::read(it, &mut taking.left));
    let (url, path) = match first_url(&script) {
        Some((origin, path)) => (Some(origin), path),
        None => (None, "/".to_owned()),
    };
    let mut found = Imported {
        form: "the options of a k6 script".to_owned(),
        target_count: 1,
        steps: Some(format!("\n[[workload.step]]\npath = {}\n", quoted(&path))),
        load: Some(format!("\n[load]\n{load}{NO_WARMUP}{}", thresholds.unwrap_or_default())),
        deploy: taking.deploy,
        ..Imported::default()
    };
    let requests = calls(&script);
    found.notes.push(format!(
        "not taken: the script's function ({}); write each as a [[workload.step]]: assay init --template flow shows \
         how",
        counted(requests, "request")
    ));
    if url.is_none() {
        found
            .notes
            .push("no URL stands in the script: put yours into system.deploy.url".to_owned());
    }
    found.url = url;
    found.notes.append(&mut taking.notes);
    found.notes.extend(taking.left.iter().map(|what| format!("not taken: {what}")));
    Ok(found)
}

/// The object after `options =`.
fn options(script: &str) -> Result<Value, String> {
    let at = script.match_indices("options").find_map(|(at, word)| {
        let after = script[at + word.len()..].trim_start();
        let before = script[..at].trim_end();
        let is_declared = ["const", "let", "var"].iter().any(|word| before.ends_with(word))
            || before.ends_with("exports.");
        // A type may stand between them in TypeScript.
        let after = match after.strip_prefix(':') {
            Some(typed) => &typed[typed.find('=')?..],
            None => after,
        };
        after.strip_prefix('=').filter(|rest| is_declared && !rest.starts_with('='))
    });
    let text = at.ok_or(
        "it is a k6 script without `export const options`; give the load yourself: assay init --template flow",
    )?;
    match literal::value(text).0 {
        options @ Value::Object(_) => Ok(options),
        Value::Other(said) => Err(format!(
            "its options are computed (`{said}`), and a script is not run here; write them as an object: k6 inspect \
             --execution-requirements script.js prints them"
        )),
        _ => Err("its options are no object".to_owned()),
    }
}

/// How many requests stand in the script.
fn calls(script: &str) -> usize {
    ["get", "post", "put", "patch", "del", "head", "options", "request", "batch"]
        .iter()
        .map(|method| script.matches(&format!("http.{method}(")).count())
        .sum()
}

/// The server of the first URL, and its path as far as it is no expression.
fn first_url(script: &str) -> Option<(String, String)> {
    let starts = ["http://", "https://"].iter().flat_map(|scheme| script.match_indices(scheme));
    let at = starts.map(|(at, _)| at).min()?;
    let is_end = |c: char| c.is_whitespace() || "\"'`$\\<>{}".contains(c);
    let rest = &script[at..];
    let url = &rest[..rest.find(is_end).unwrap_or(rest.len())];
    let place = crate::url::parse(url).ok()?;
    Some((place.origin?.to_string(), place.target))
}

/// The experiment on its way, and the parts of the script that have no place in it.
#[derive(Default)]
struct Taking {
    deploy: String,
    notes: Vec<String>,
    left: Vec<String>,
}

impl Taking {
    /// The keys of `[load]`.
    fn load(&mut self, options: &Value) -> String {
        let mut scenario = None;
        for (key, value) in options.entries() {
            match key.as_str() {
                "scenarios" => scenario = self.first_scenario(value),
                "insecureSkipTLSVerify" if *value == Value::Boolean(true) => {
                    self.deploy.push_str("insecure = true\n");
                }
                "vus" | "duration" | "stages" | "iterations" | "thresholds" => {}
                key if HARMLESS.contains(&key) => {}
                key => self.leave(key, value),
            }
        }
        let short = ["vus", "duration", "stages", "iterations"];
        match scenario {
            Some(scenario) => {
                for key in short.iter().filter(|key| options.get(key).is_some()) {
                    self.left.push(format!("`{key}` beside `scenarios`, which k6 ignores, too"));
                }
                self.scenario(scenario)
            }
            None if options.get("stages").is_some() => {
                let start = options.get("vus").and_then(Value::number).unwrap_or(1.0);
                let stages = options.get("stages").expect("looked at in the guard");
                self.stages(stages, start, Ramped::Users)
            }
            None => self.users(options, 1.0),
        }
    }

    fn leave(&mut self, key: &str, value: &Value) {
        self.left.push(match value {
            Value::Other(said) => format!("`{key}`, which is computed: {said}"),
            _ => format!("`{key}`"),
        });
    }

    fn first_scenario<'v>(&mut self, scenarios: &'v Value) -> Option<&'v Value> {
        let known = |(_, one): &&(String, Value)| {
            let executor = one.get("executor").and_then(Value::text);
            executor.is_some_and(|it| EXECUTORS.contains(&it))
        };
        let taken = scenarios.entries().iter().find(known);
        for (name, one) in scenarios.entries() {
            if taken.is_some_and(|(first, _)| first == name) {
                continue;
            }
            let executor = one.get("executor").and_then(Value::text).unwrap_or("no executor");
            self.left.push(format!(
                "scenario `{name}` ({executor}); one trial has one load, and flows have weights"
            ));
        }
        taken.map(|(_, scenario)| scenario)
    }

    fn scenario(&mut self, scenario: &Value) -> String {
        let executor = scenario.get("executor").and_then(Value::text).unwrap_or_default();
        let taken: &[&str] = match executor {
            "constant-arrival-rate" => &["rate", "timeUnit", "duration"],
            "ramping-arrival-rate" => &["startRate", "timeUnit", "stages"],
            "ramping-vus" => &["startVUs", "stages"],
            _ => &["vus", "duration", "iterations", "maxDuration"],
        };
        for (key, value) in scenario.entries() {
            match key.as_str() {
                "executor" => {}
                "preAllocatedVUs" | "maxVUs" => {
                    let what = "users that wait have no bound here, and connections grow to load.connections_max";
                    self.left.push(format!("`{key}`: {what}"));
                }
                key if taken.contains(&key) || HARMLESS.contains(&key) => {}
                key => self.leave(key, value),
            }
        }
        let number =
            |key: &str, otherwise| scenario.get(key).and_then(Value::number).unwrap_or(otherwise);
        match executor {
            "constant-arrival-rate" => {
                let rate = number("rate", 0.0) / self.unit_s(scenario);
                self.computed(scenario, "rate");
                let length = self.length(scenario, "duration");
                format!("arrival  = \"constant\"\nrate     = {}\n{length}", rate_of(rate))
            }
            "ramping-arrival-rate" => {
                let unit_s = self.unit_s(scenario);
                let stages = scenario.get("stages").cloned().unwrap_or(Value::List(Vec::new()));
                self.stages(&stages, number("startRate", 0.0) / unit_s, Ramped::Rate { unit_s })
            }
            "ramping-vus" => {
                let stages = scenario.get("stages").cloned().unwrap_or(Value::List(Vec::new()));
                self.stages(&stages, number("startVUs", 1.0), Ramped::Users)
            }
            "per-vu-iterations" => self.users(scenario, number("vus", 1.0)),
            _ => self.users(scenario, 1.0),
        }
    }

    /// Seconds of `timeUnit`.
    fn unit_s(&mut self, scenario: &Value) -> f64 {
        let unit = scenario.get("timeUnit").and_then(Value::text).unwrap_or("1s");
        match parse_duration(unit) {
            Ok(unit) if !unit.is_zero() => unit.as_secs_f64(),
            _ => {
                self.left.push(format!("`timeUnit`: `{unit}`"));
                1.0
            }
        }
    }

    /// Says where a value that is needed is no literal.
    fn computed(&mut self, of: &Value, key: &str) {
        if let Some(value @ Value::Other(_)) = of.get(key) {
            self.leave(key, value);
        }
    }

    fn length(&mut self, of: &Value, key: &str) -> String {
        let length = of.get(key).and_then(Value::text);
        match length.map(|text| (text, parse_duration(text))) {
            Some((text, Ok(_))) => format!("duration = {}\n", quoted(text)),
            _ => {
                self.computed(of, key);
                "duration = \"30s\"\n".to_owned()
            }
        }
    }

    /// A closed loop: `iterations` are of each of `share` users.
    fn users(&mut self, of: &Value, share: f64) -> String {
        let vus = of.get("vus").and_then(Value::number).unwrap_or(1.0).max(1.0);
        self.computed(of, "vus");
        let mut text = format!("model    = \"closed\"\nclients  = {vus:.0}\n");
        match of.get("iterations").and_then(Value::number) {
            Some(iterations) => {
                let longest =
                    ["maxDuration", "duration"].into_iter().find(|key| of.get(key).is_some());
                let length = match longest {
                    Some(key) => self.length(of, key),
                    None => "duration = \"10m\"\n".to_owned(),
                };
                text.push_str(&format!("transactions_max = {:.0}\n{length}", iterations * share));
            }
            None => text.push_str(&self.length(of, "duration")),
        }
        text
    }

    /// Stages, each of which goes in a line from the target before it to its own.
    fn stages(&mut self, stages: &Value, start: f64, ramped: Ramped) -> String {
        let (mut steps, mut from, mut has_ramps) = (Vec::new(), start, false);
        for stage in stages.items() {
            let length = stage.get("duration").and_then(Value::text).map(parse_duration);
            let target = stage.get("target").and_then(Value::number);
            let (Some(Ok(length)), Some(target)) = (length, target) else {
                self.left.push("a stage whose duration or target is computed".to_owned());
                continue;
            };
            let to = match ramped {
                Ramped::Users => target,
                Ramped::Rate { unit_s } => target / unit_s,
            };
            // A stage of no length is a jump.
            if !length.is_zero() {
                has_ramps |= to != from;
                ramped.steps(from, to, length, &mut steps);
            }
            from = to;
        }
        if has_ramps {
            self.notes.push(format!(
                "k6 ramps in a line from stage to stage; here each ramp is up to {PIECES_MAX} steps"
            ));
        }
        let model = if matches!(ramped, Ramped::Users) { "model = \"closed\"\n" } else { "" };
        if steps.is_empty() {
            let load = if model.is_empty() { "rate = \"10/s\"\n" } else { "clients = 1\n" };
            return format!("{model}{load}duration = \"30s\"\n");
        }
        format!("{model}steps = [\n{}]\n", steps.concat())
    }
}

const EXECUTORS: [&str; 6] = [
    "constant-arrival-rate",
    "constant-vus",
    "per-vu-iterations",
    "ramping-arrival-rate",
    "ramping-vus",
    "shared-iterations",
];

/// The quantity that stages change.
#[derive(Clone, Copy)]
enum Ramped {
    Users,
    /// Targets are so many in this many seconds.
    Rate {
        unit_s: f64,
    },
}

impl Ramped {
    fn steps(self, from: f64, to: f64, length: std::time::Duration, steps: &mut Vec<String>) {
        let pieces = match (self, to == from) {
            (_, true) => 1,
            (Self::Users, _) => PIECES_MAX.min((to - from).abs().ceil() as u32),
            (Self::Rate { .. }, _) => PIECES_MAX,
        };
        let pieces = pieces.min(u32::try_from(length.as_secs()).unwrap_or(PIECES_MAX)).max(1);
        let each_ms = length.as_millis() / u128::from(pieces);
        for piece in 0..pieces {
            let level = from + (to - from) * (f64::from(piece) + 0.5) / f64::from(pieces);
            let level = match self {
                Self::Users => format!("clients = {level:.0}"),
                Self::Rate { .. } => format!("rate = {}", rate_of(level)),
            };
            steps.push(format!("  {{ {level}, for = \"{each_ms}ms\" }},\n"));
        }
    }
}

/// As an experiment has it.
fn rate_of(per_s: f64) -> String {
    let text = format!("{per_s:.3}");
    format!("\"{}/s\"", text.trim_end_matches('0').trim_end_matches('.'))
}
