//! What a host lacks for a run, in words, for `assay check`. It judges only what it is given.

use model::facts::Environment;
use model::quantity::show_count;

/// Files that a run opens beside its connections: the record, logs, node pipes, what the runtime holds.
const FILES_BESIDE: u64 = 64;
/// More load than this part of the processors, before anything was started, is that of other programs.
const IDLE_LOAD_MAX: f64 = 0.25;

/// Findings about the host for a run that opens `connections` connections to one address, most important
/// first: whether all is well, and a sentence.
#[must_use]
pub fn host_findings(host: &Environment, connections: u32) -> Vec<(bool, String)> {
    let mut findings = vec![processors(host), files(host, connections), ports(host, connections)];
    if host.cpu_mhz.1 > 0.0 {
        findings.push((true, clock_rate(host)));
    }
    findings.push(idle(host));
    if !host.virtualisation.is_empty() {
        findings.push((true, format!("{}: watch stolen time", host.virtualisation)));
    }
    findings.extend(host.warnings.iter().map(|warning| (false, warning.clone())));
    findings
}

fn processors(host: &Environment) -> (bool, String) {
    let cores = if host.cpus == 1 { "1 core".to_owned() } else { format!("{} cores", host.cpus) };
    match host.governor.as_str() {
        "" => (true, format!("{cores}, governor not visible")),
        "performance" => (true, format!("{cores}, governor performance")),
        other => (
            false,
            format!(
                "{cores}, governor {other}: latency depends on the clock rate (set it to performance)"
            ),
        ),
    }
}

fn files(host: &Environment, connections: u32) -> (bool, String) {
    let needed = u64::from(connections) + FILES_BESIDE;
    if host.files_max == 0 {
        return (true, "limit of open files not visible".to_owned());
    }
    if host.files_max >= needed {
        return (true, format!("files {}", shown(host.files_max)));
    }
    let text = format!(
        "files {}: {} connections need {} (raise the hard limit: ulimit -Hn)",
        shown(host.files_max),
        show_count(u64::from(connections)),
        show_count(needed)
    );
    (false, text)
}

fn ports(host: &Environment, connections: u32) -> (bool, String) {
    if host.ports == 0 {
        return (true, "range of local ports not visible".to_owned());
    }
    if host.ports >= connections {
        return (true, format!("ports {}", host.ports));
    }
    let text = format!(
        "ports {}: too few for {} connections to one address (widen net.ipv4.ip_local_port_range)",
        host.ports,
        show_count(u64::from(connections))
    );
    (false, text)
}

fn clock_rate(host: &Environment) -> String {
    let (low, high) = (host.cpu_mhz.0 / 1000.0, host.cpu_mhz.1 / 1000.0);
    if high - low < 0.05 {
        format!("cpu {high:.2} GHz")
    } else {
        format!("cpu {low:.2} to {high:.2} GHz")
    }
}

fn idle(host: &Environment) -> (bool, String) {
    let load = host.load_average;
    if load <= IDLE_LOAD_MAX * f64::from(host.cpus.max(1)) {
        return (true, format!("idle (load {load:.2})"));
    }
    (
        false,
        format!("not idle: load {load:.2} before the run (end what else runs, or wait a minute)"),
    )
}

fn shown(limit: u64) -> String {
    if limit == u64::MAX { "unlimited".to_owned() } else { limit.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Environment {
        Environment {
            cpus: 4,
            governor: "performance".to_owned(),
            cpu_mhz: (2600.0, 2600.0),
            files_max: 1_048_576,
            ports: 28_232,
            load_average: 0.4,
            ..Environment::default()
        }
    }

    /// Claim: a quiet host with room passes every point.
    #[test]
    fn a_good_host_passes() {
        let findings = host_findings(&host(), 64);
        assert!(findings.iter().all(|(ok, _)| *ok), "{findings:?}");
        let texts: Vec<&str> = findings.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "4 cores, governor performance",
                "files 1048576",
                "ports 28232",
                "cpu 2.60 GHz",
                "idle (load 0.40)"
            ]
        );
    }

    /// Claim: each thing that a host can lack is named with what to do, and alone.
    #[test]
    fn each_lack_is_named() {
        type Change = fn(&mut Environment);
        let cases: [(Change, &str); 5] = [
            (
                |h| h.governor = "powersave".to_owned(),
                "4 cores, governor powersave: latency depends",
            ),
            (|h| h.files_max = 1024, "files 1024: 20,000 connections need 20,064 (raise"),
            (|h| h.ports = 10_000, "ports 10000: too few for 20,000 connections"),
            (|h| h.load_average = 2.0, "not idle: load 2.00"),
            (
                |h| h.warnings.push("cpu 2.60 GHz now 0.85 GHz: throttled".to_owned()),
                "cpu 2.60 GHz now 0.85",
            ),
        ];
        for (change, start) in cases {
            let mut host = host();
            change(&mut host);
            let bad: Vec<String> = host_findings(&host, 20_000)
                .into_iter()
                .filter(|(ok, _)| !ok)
                .map(|(_, text)| text)
                .collect();
            assert!(bad.len() == 1 && bad[0].starts_with(start), "{bad:?}");
        }
    }
}
