//! `assay check`: what would be done, how long it takes, whether this host can do it. Nothing is sent.

use model::result::{AuditOutcome, Exit};
use plan::OutlineSetting;
use report::{CheckEffective, CheckFinding, CheckSetting, CheckView, check_text};

use crate::cli::{CheckArguments, ColorChoice};
use crate::experiment::{self, Experiment};
use crate::{conclude, terminal};

/// Prints the plan.
pub fn check(arguments: &CheckArguments, colour: ColorChoice) -> Exit {
    let experiment = match experiment::load(&arguments.what, &arguments.layers, &arguments.quick) {
        Ok(experiment) => experiment,
        Err(refusal) => return conclude::refused(refusal, colour),
    };
    let view = view(&experiment, arguments);
    match terminal::print(&check_text(&view, terminal::stdout_style(colour, false))) {
        Ok(()) => Exit::Ok,
        Err(message) => {
            eprintln!("assay check: {message}");
            Exit::CouldNotRun
        }
    }
}

fn view(experiment: &Experiment, arguments: &CheckArguments) -> CheckView {
    let outline = plan::outline(&experiment.plan);
    let offered_max = outline
        .offered_max_per_s
        .filter(|rate| rate.is_finite())
        .map(|rate| format!("{rate:.0} tx/s"))
        .unwrap_or_default();
    let effective = if arguments.explain { experiment.effective.as_slice() } else { &[] };
    CheckView {
        name: outline.name,
        question: outline.question,
        trials: outline.trials,
        wall: outline.wall_time,
        offered_max,
        target: target(experiment),
        settings: outline.settings.into_iter().map(setting).collect(),
        thresholds: experiment
            .plan
            .thresholds
            .iter()
            .map(|t| (t.expr.clone(), format!("{:?}", t.level).to_lowercase()))
            .collect(),
        findings: findings(experiment),
        effective: effective
            .iter()
            .map(|e| CheckEffective {
                path: e.path.clone(),
                value: e.value.clone(),
                origin: e.origin.clone(),
            })
            .collect(),
        command: command(std::env::args().skip(1)),
    }
}

/// The command that runs what was checked: the words of this one, but for those that only checking has.
fn command(words: impl Iterator<Item = String>) -> String {
    let mut line = "assay run".to_owned();
    let mut is_check_seen = false;
    for word in words {
        if word == "--explain" || (word == "check" && !std::mem::replace(&mut is_check_seen, true))
        {
            continue;
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
        line.push(' ');
        if !word.is_empty() && word.chars().all(is_plain) {
            line.push_str(&word);
        } else {
            line.push_str(&format!("'{}'", word.replace('\'', "'\\''")));
        }
    }
    line
}

fn target(experiment: &Experiment) -> String {
    let Some(first) = experiment.plan.settings.first() else { return String::new() };
    let url =
        first.system.deploy.get("url").map(model::options::Options::label).unwrap_or_default();
    format!("{} {url}", first.system.kind).trim_end().to_owned()
}

fn setting(setting: OutlineSetting) -> CheckSetting {
    CheckSetting {
        key: setting.key,
        load: setting.load,
        warmup: setting.warmup,
        measure: setting.duration,
        trials: setting.trials,
        probe: setting.probe,
    }
}

/// What the host says of itself, against what the plan needs.
fn findings(experiment: &Experiment) -> Vec<CheckFinding> {
    let environment = testbed::environment(Vec::new(), crate::cli::VERSION.to_owned());
    let connections = experiment
        .plan
        .settings
        .iter()
        // More are opened only as far as the host's limits go.
        .map(|setting| setting.load.connections)
        .max()
        .unwrap_or(0);
    testbed::host_findings(&environment, connections)
        .into_iter()
        .map(|(is_ok, text)| CheckFinding {
            topic: "host".to_owned(),
            text,
            outcome: if is_ok { AuditOutcome::Ok } else { AuditOutcome::Warn },
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::command;

    /// Claim: what the check was given is what the run is given, quoted for a shell.
    #[test]
    fn the_same_words() {
        let words =
            ["check", "my.toml", "--explain", "--set", "load.rate=80/s", "--threshold", "p99 < 1s"];
        let line = command(words.into_iter().map(str::to_owned));
        assert_eq!(line, "assay run my.toml --set load.rate=80/s --threshold 'p99 < 1s'");
        assert_eq!(
            command(["check", "it's"].into_iter().map(str::to_owned)),
            "assay run 'it'\\''s'"
        );
    }
}
