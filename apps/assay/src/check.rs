//! `assay check`: what would be done, how long it takes, whether this host can do it. Nothing is sent.

use std::io::ErrorKind;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use model::result::{AuditOutcome, Exit};
use plan::OutlineSetting;
use report::{CheckEffective, CheckFinding, CheckSetting, CheckView, check_text};

use crate::cli::{CheckArguments, ColorChoice};
use crate::experiment::{self, Experiment};
use crate::terminal::say;
use crate::{conclude, systems, terminal};

/// The most targets that are knocked at.
const TARGETS_MAX: usize = 8;
/// The most addresses of a name.
const ADDRESSES_MAX: usize = 4;
/// The longest wait for one of them.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(2);

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
            say!("assay check: {message}");
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
        findings: targets(experiment).into_iter().chain(findings(experiment)).collect(),
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

/// whether a server listens where the load would go. A connection is opened and closed; nothing is sent.
fn targets(experiment: &Experiment) -> Vec<CheckFinding> {
    let mut seen: Vec<String> = Vec::new();
    for setting in &experiment.plan.settings {
        // The reader of the plan has refused kinds that do not exist.
        let Some(adapter) = systems::adapter(&setting.system.kind) else { continue };
        for target in (adapter.targets)(&experiment.request(setting, 0)) {
            if !seen.contains(&target) && seen.len() < TARGETS_MAX {
                seen.push(target);
            }
        }
    }
    seen.iter().filter_map(|target| reachable(target)).collect()
}

/// The result of a connection attempt; `None` without an address.
fn reachable(target: &str) -> Option<CheckFinding> {
    let (scheme, rest) = target.split_once("://").unwrap_or(("", target));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let port = if scheme == "https" { 443 } else { 80 };
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(host, _)| !host.contains(':') || host.ends_with(']'));
    let address = if has_port { authority.to_owned() } else { format!("{authority}:{port}") };
    if !has_port && scheme.is_empty() {
        return None;
    }
    let finding = |outcome, text| Some(CheckFinding { topic: "target".to_owned(), text, outcome });
    let found = match address.to_socket_addrs() {
        Ok(found) => found,
        Err(error) => {
            let text = format!("{authority} cannot be looked up: {error}; is the name right?");
            return finding(AuditOutcome::Warn, text);
        }
    };
    let mut why = "it has no address".to_owned();
    for address in found.take(ADDRESSES_MAX) {
        match TcpStream::connect_timeout(&address, CONNECT_TIME_MAX) {
            Ok(_) => return finding(AuditOutcome::Ok, format!("a server listens at {authority}")),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                why = "the connection is refused".to_owned();
            }
            Err(error) => why = error.to_string(),
        }
    }
    let text = format!("no answer from {authority}: {why}; start the system before the run");
    finding(AuditOutcome::Warn, text)
}

/// The host's own figures, against those that the plan needs.
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
