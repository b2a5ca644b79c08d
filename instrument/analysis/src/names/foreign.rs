//! Our names for the numbers of k6 and vegeta, for people who write their names into a threshold. Nothing is computed
//! under these names: a threshold is written in one language.

/// A number of another tool.
struct Foreign {
    tool: &'static str,
    name: &'static str,
    /// The threshold to write instead.
    here: &'static str,
    /// How it differs, where it is more than a name.
    how: &'static str,
}

const NAME_ONLY: &str = "called otherwise here";

const fn of(tool: &'static str, name: &'static str, here: &'static str) -> Foreign {
    Foreign { tool, name, here, how: NAME_ONLY }
}

/// In alphabetical order of their tools and names. docs/coming-from.md says more of some.
const FOREIGN: &[Foreign] = &[
    of("k6", "avg", "mean < 200ms"),
    of("k6", "checks", "success >= 99%"),
    of("k6", "data_received", "bytes_in < 64MiB"),
    of("k6", "data_sent", "bytes_out < 64MiB"),
    of("k6", "dropped_iterations", "shed == 0"),
    of("k6", "http_req_blocked", "send_lag.p99 < 1ms"),
    of("k6", "http_req_duration", "p99 < 500ms"),
    of("k6", "http_req_duration{expected_response:true}", "committed.p99 < 500ms"),
    Foreign { how: "the other way round here", ..of("k6", "http_req_failed", "success == 100%") },
    of("k6", "http_req_waiting", "service.p99 < 500ms"),
    of("k6", "http_reqs", "sent >= 50/s"),
    of("k6", "iteration_duration", "p99 < 500ms"),
    of("k6", "iterations", "committed.count >= 1000"),
    of("k6", "med", "p50 < 200ms"),
    of("vegeta", "bytes_in.total", "bytes_in < 64MiB"),
    of("vegeta", "bytes_out.total", "bytes_out < 64MiB"),
    of("vegeta", "duration", "vegeta.attack < 30s"),
    of("vegeta", "latencies.50th", "vegeta.p50 < 500ms"),
    of("vegeta", "latencies.90th", "vegeta.p90 < 500ms"),
    of("vegeta", "latencies.95th", "vegeta.p95 < 500ms"),
    of("vegeta", "latencies.99th", "vegeta.p99 < 500ms"),
    of("vegeta", "latencies.max", "vegeta.max < 1s"),
    of("vegeta", "latencies.mean", "vegeta.mean < 500ms"),
    of("vegeta", "latencies.min", "vegeta.min < 500ms"),
    of("vegeta", "status_codes", "success == 100%"),
];

/// The advice on another tool's name, or of one that is nearly it.
pub(crate) fn here(name: &str) -> Option<String> {
    let found = FOREIGN.iter().find(|foreign| foreign.name == name);
    found.map(|Foreign { tool, name, here, how }| format!("{tool}'s {name} is {how}: write {here}"))
}

/// All of these names.
pub(crate) fn names<'a>() -> impl Iterator<Item = &'a str> {
    FOREIGN.iter().map(|foreign| foreign.name)
}

/// k6's `p(99)`, as it is written here: `p99`.
pub(crate) fn percentile_of_k6(text: &str) -> Option<String> {
    let digits = text.strip_prefix("p(")?.strip_suffix(')')?.trim();
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    is_number.then(|| format!("p{digits}"))
}

#[cfg(test)]
mod tests {
    use model::names::DeclaredNames;

    use super::*;

    /// Claim: what is advised is a threshold that can be evaluated, the list is in order, and no name of it is one of
    /// ours.
    #[test]
    fn advice_can_be_followed() {
        let names =
            DeclaredNames { stages: vec!["committed".to_owned()], ..DeclaredNames::default() };
        assert!(FOREIGN.is_sorted_by_key(|it| (it.tool, it.name)));
        for foreign in FOREIGN {
            assert_eq!(
                crate::judge::thresholds::check_threshold(foreign.here, Some(&names)),
                Ok(()),
                "{}",
                foreign.name
            );
            assert!(
                crate::names::check_metric::check_metric(foreign.name, Some(&names)).is_err(),
                "{}",
                foreign.name
            );
        }
    }
}
