//! Checks the name of a number before there is a result, and suggests the one that was meant.

use model::names::DeclaredNames;
use model::options::{did_you_mean, nearest};

use crate::audits;
use crate::names::metric_names::{End, Name, OfStage, Word, parse};
use crate::names::{foreign, listed, metric_list};

/// Whether `name` is a number that a result has, before there is a result: for table columns and thresholds. `declared` is
/// what the system declares; where that is not known (the system's own options are wrong), any stage may be named.
///
/// # Errors
/// A sentence that names the nearest known name, or the stages that there are.
pub fn check_metric(name: &str, declared: Option<&DeclaredNames>) -> Result<(), String> {
    match parse(name) {
        Some(Name::Stage { stage, number }) => match declared {
            Some(names) if names.has_node_stage(&stage) => check_node_stage(&stage, number),
            Some(names) if !names.has_stage(&stage) => Err(no_stage(&stage, names)),
            _ => Ok(()),
        },
        Some(Name::Distribution { stage: Some(stage), .. }) => match declared {
            Some(names) if !names.has_stage(&stage) => Err(no_stage(&stage, names)),
            _ => Ok(()),
        },
        Some(Name::Resource { key, end }) => check_series(&key, end, declared),
        Some(_) => Ok(()),
        None => match declared {
            Some(names) if !names.has_stage(name) => Err(unknown(name, names)),
            _ => Ok(()),
        },
    }
}

/// Stages that nodes stamp are kept as histograms, which know no exact spread.
fn check_node_stage(stage: &str, number: OfStage) -> Result<(), String> {
    match number {
        OfStage::Latency(Word::Moment(word @ ("stddev" | "variance"))) => Err(format!(
            "`stage.{stage}.{word}` is not known of a stage that nodes stamp; write stage.{stage}.mean or \
             stage.{stage}.p99"
        )),
        _ => Ok(()),
    }
}

/// Series of the host and of the generator are known; those of nodes are the system's business.
fn check_series(key: &str, end: End, declared: Option<&DeclaredNames>) -> Result<(), String> {
    let (source, series) = key.split_once('.').expect("a name of a series has a source");
    if source == "nodes" {
        let is_known = series
            .split_once('.')
            .is_some_and(|(how, name)| ALL_NODES.contains(&how) && !name.is_empty());
        return if is_known { Ok(()) } else { Err(no_such_total(key, series)) };
    }
    let known = declared.and_then(|it| it.sources.iter().find(|(known, _)| known == source));
    let Some((_, known)) = known else { return Ok(()) };
    if end == End::Last {
        return Err(format!(
            "`{key}.last` is not kept: the last value is known of nodes only; write {key}.max or {key}.mean"
        ));
    }
    if known.iter().any(|known| known == series) {
        return Ok(());
    }
    let help = did_you_mean(series, known.iter().map(String::as_str))
        .unwrap_or_else(|| format!("`{source}` has {}", known.join(", ")));
    Err(format!("`{key}` is not a series that is recorded; {help}"))
}

/// The statistics of a series of all nodes at one time.
const ALL_NODES: [&str; 5] = ["max", "mean", "median", "min", "sum"];

fn no_such_total(key: &str, rest: &str) -> String {
    let name = rest.rsplit_once('.').map_or(rest, |(_, name)| name);
    format!(
        "`{key}` is not a series; of all nodes together there are nodes.mean.{name}, nodes.min.{name}, nodes.max.{name} \
         and, where it adds up, nodes.sum.{name}, each with .min, .mean, .max or .last after it"
    )
}

/// The message about a stage that the system does not declare.
#[must_use]
pub fn no_stage(stage: &str, declared: &DeclaredNames) -> String {
    if declared.has_node_stage(stage) {
        return format!(
            "`{stage}` is stamped by nodes and is no stage of the ladder; write stage.{stage}.throughput or \
             stage.{stage}.p99"
        );
    }
    let stages = &declared.stages;
    let known = stages.iter().chain(&declared.node_stages).map(String::as_str);
    let near = did_you_mean(stage, known);
    let near = near.map(|near| format!("{near} ")).unwrap_or_default();
    let all = match stages.as_slice() {
        [only] => format!("its only stage is {only}"),
        several => format!("its stages are {}", several.join(", ")),
    };
    let of_nodes = match declared.node_stages.as_slice() {
        [] => String::new(),
        names => format!(", and its nodes stamp {}", names.join(", ")),
    };
    format!("`{stage}` is not a stage of this system; {near}{all}{of_nodes}")
}

fn unknown(name: &str, declared: &DeclaredNames) -> String {
    if let Some(rest) = name.strip_prefix("audit.") {
        return no_figure(name, rest);
    }
    if declared.has_node_stage(name) {
        return no_stage(name, declared);
    }
    if name.starts_with("stage.") {
        return format!(
            "`{name}` is not a number of a stage; there are stage.NAME.throughput, .throughput.min, .throughput.max, \
             .count, .p50, .p99, .mean, .min and .max"
        );
    }
    if let Some(help) = foreign::here(name) {
        return format!("unknown metric `{name}`; {help}");
    }
    let latencies: Vec<String> = listed::latencies().map(|(name, _, _)| name).collect();
    let mut known: Vec<&str> = declared.stages.iter().map(String::as_str).collect();
    known.extend(latencies.iter().map(String::as_str));
    known.extend(metric_list::ENTRIES.iter().map(|entry| entry.name));
    known.extend(foreign::names());
    let near = nearest(name, known.into_iter());
    let help =
        near.map(|near| foreign::here(near).unwrap_or_else(|| format!("did you mean `{near}`?")));
    let help = help.unwrap_or_else(|| {
        format!(
            "known are p99, mean, max, success, committed, offered, restricted_mean, duplicates, lost and more (assay list \
             numbers), and this system's stages: {}",
            declared.stages.join(", ")
        )
    });
    format!("unknown metric `{name}`; {help}")
}

/// The message about a figure that no audit has.
fn no_figure(name: &str, rest: &str) -> String {
    let of: Vec<String> = audits::figure_names().collect();
    let audit = rest.split('.').next().unwrap_or_default();
    let prefix = format!("audit.{audit}.");
    let known: Vec<&str> =
        of.iter().map(String::as_str).filter(|it| it.starts_with(&prefix)).collect();
    let help = did_you_mean(name, of.iter().map(String::as_str)).unwrap_or_else(|| {
        match known.is_empty() {
            true => {
                "figures of audits are named audit.NAME.FIGURE, such as audit.backlog_drift.slope"
                    .into()
            }
            false => format!("`{audit}` has {}", known.join(", ")),
        }
    });
    format!("`{name}` is not a figure of an audit; {help}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: every column that the experiments use is a name, and near misses are told what was meant.
    #[test]
    fn names_of_the_experiments() {
        let stages = ["accepted", "make_block"].map(str::to_owned).to_vec();
        let names = |of: &[&str]| of.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let sources = vec![
            ("host".to_owned(), names(&["cpu_cores", "cpu_mhz", "load1"])),
            ("generator".to_owned(), names(&["cpu_cores", "rss_bytes", "threads"])),
        ];
        let node_stages = ["raft.send", "stored"].map(str::to_owned).to_vec();
        let declared = DeclaredNames { stages, node_stages, sources, ..DeclaredNames::default() };
        let declared = Some(&declared);
        for name in [
            "requests",
            "rate",
            "throughput",
            "success",
            "wait",
            "mean",
            "p50",
            "p95",
            "p99",
            "max",
            "codes",
            "trials",
            "inf",
            "min",
            "variance",
            "p25",
            "throughput.min",
            "throughput.max",
            "committed.count",
            "duplicates",
            "stage.make_block.throughput",
            "stage.make_block.p99.9",
            "stage.stored.throughput.min",
            "stage.raft.send.p99.9",
            "stage.raft.send.mean",
            "stage.stored.count",
            "host.cpu_mhz.min",
            "p99.9",
            "p99.9.accepted",
            "p50.accepted",
            "accepted",
            "service.p99",
            "send_lag.p99",
            "rejected.limited",
            "service.mean.accepted",
            "committed.p99",
            "answered.p99.9",
            "due.mean",
            "committed.p99.accepted",
            "node-0.rss_bytes.max",
            "node-0.height_blocks.last",
            "nodes.sum.mempool_transactions.max",
            "nodes.median.committed_transactions_per_minute.mean",
        ] {
            assert_eq!(check_metric(name, declared), Ok(()), "{name}");
        }
        for (name, help) in [
            ("comitted", "did you mean `committed`?"),
            ("p50.acepted", "did you mean `accepted`? its stages are accepted, make_block"),
            ("p50.verified", "; its stages are accepted, make_block"),
            ("verified", "(assay list numbers), and this system's stages: accepted, make_block"),
            ("stage.make_blok.throughput", "did you mean `make_block`?"),
            (
                "stage.raft.snd.p99",
                "did you mean `raft.send`? its stages are accepted, make_block, and its nodes stamp raft.send, stored",
            ),
            ("stage.stored.stddev", "write stage.stored.mean or stage.stored.p99"),
            ("stage.stored.thruput", "there are stage.NAME.throughput"),
            ("p99.stored", "write stage.stored.throughput or stage.stored.p99"),
            ("stored", "`stored` is stamped by nodes"),
            ("rejected.limitd", "unknown metric `rejected.limitd`"),
            ("p101", "unknown metric"),
            ("service.", "unknown metric"),
            ("p99..accepted", "unknown metric"),
            ("host.cpu_mzh.min", "did you mean `cpu_mhz`?"),
            ("nodes.rss_bytes.max", "where it adds up, nodes.sum.rss_bytes"),
            ("host.load1.last", "write host.load1.max"),
            ("generator.colour.max", "`generator` has cpu_cores, rss_bytes, threads"),
        ] {
            let message = check_metric(name, declared).unwrap_err();
            assert!(message.contains(help), "{name}: {message}");
        }
        for (name, help) in [
            (
                "http_req_failed",
                "k6's http_req_failed is the other way round here: write success == 100%",
            ),
            ("http_req_duration", "write p99 < 500ms"),
            ("http_req_duraton", "write p99 < 500ms"),
            ("http_req_waiting", "write service.p99 < 500ms"),
            ("dropped_iterations", "write shed == 0"),
            (
                "latencies.99th",
                "vegeta's latencies.99th is called otherwise here: write vegeta.p99",
            ),
            ("avg", "write mean"),
        ] {
            let message = check_metric(name, declared).unwrap_err();
            assert!(message.contains(help), "{name}: {message}");
        }
        let message = check_metric("audit.backlog_drift.slop", declared).unwrap_err();
        assert!(message.contains("did you mean `audit.backlog_drift.slope`?"), "{message}");
        assert_eq!(check_metric("audit.backlog_drift.slope", declared), Ok(()));
        for name in ["started", "stage.started.throughput", "p99.started", "p99"] {
            assert_eq!(check_metric(name, None), Ok(()), "{name}");
        }
        let both =
            ["rate", "vegeta.rate"].map(|name| parse(name).expect("an old name and its new one"));
        assert_eq!(both[0], both[1]);
    }
}
