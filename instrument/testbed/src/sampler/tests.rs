//! Tests of the sampler on this host: real processes with known use.

use std::sync::{Arc, Mutex};

use super::*;
use crate::{NodeSpec, Testbed};

fn untold() -> SampleSink {
    Box::new(|_, _, _, _| ())
}

fn spawn(bed: &mut Testbed, name: &str, script: &str) -> (String, u32) {
    let node = bed.spawn(NodeSpec::new(name, "/bin/sh").args(["-c", script])).unwrap();
    (node.name, node.pid)
}

fn values(samples: &[MetricSample], source: &str, name: &str) -> Vec<f64> {
    let is_it = |s: &&MetricSample| s.source == source && s.name == name;
    samples.iter().filter(is_it).map(|s| s.value).collect()
}

/// Claim: every series of generator, nodes and host is declared and comes at its interval with possible values; a node's
/// children count as its own; one that vanishes is absent from then on and the others go on. Each is told as it is made.
#[test]
fn all_series_come() {
    let clock = Clock::start();
    let folder = tempfile::tempdir().unwrap();
    let mut bed = Testbed::new(folder.path(), clock);
    // The work is in a child of the node: the shell itself only waits.
    let busy = spawn(&mut bed, "busy", "(while :; do :; done) & wait");
    let brief = spawn(&mut bed, "brief", "read line");
    let interval = Duration::from_millis(100);
    let told = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&told);
    let hears: SampleSink = Box::new(move |at, source, name, value| {
        hears.lock().unwrap().push((source.to_owned(), name.to_owned(), at, value));
    });
    let sampler = ResourceSampler::start(clock, interval, vec![busy, brief], hears).unwrap();
    let start = clock.now();
    clock.sleep_until(start.plus(Duration::from_millis(350)));
    bed.kill("brief").unwrap();
    clock.sleep_until(start.plus(Duration::from_millis(750)));
    let samples = sampler.finish(start);
    let told = told.lock().unwrap();
    assert_eq!(told.len(), samples.len());
    for (source, name, at, value) in told.iter() {
        let (source, name, at) = (source.clone(), name.clone(), at.ns_since(start));
        assert!(samples.contains(&MetricSample { at, source, name, value: *value }), "{at}");
    }
    let busy_cores = values(&samples, "busy", "cpu_cores");
    assert!(busy_cores.len() >= 3, "{busy_cores:?}");
    let most = busy_cores.iter().copied().fold(0.0, f64::max);
    assert!((0.1..1.5).contains(&most), "a loop in a child uses about one core: {busy_cores:?}");
    let brief_count = values(&samples, "brief", "rss_bytes").len();
    assert!((1..busy_cores.len()).contains(&brief_count), "{brief_count} of {busy_cores:?}");
    for (source, name, least, highest) in [
        ("generator", "cpu_cores", 0.0, 64.0),
        ("generator", "rss_bytes", 1e5, 1e10),
        ("generator", "threads", 2.0, 1000.0),
        ("busy", "rss_bytes", 1e5, 1e9),
        ("host", "cpu_cores", 0.0, 4096.0),
        ("host", "steal_cores", 0.0, 4096.0),
        ("host", "steal_share", 0.0, 1.0),
        ("host", "run_queue", 1.0, 1e5),
        ("host", "load1", 0.0, 1e5),
        ("host", "memory_available_bytes", 1e6, 1e15),
        ("host", "tcp_retransmits_per_second", 0.0, 1e9),
        ("host", "listen_drops_per_second", 0.0, 1e9),
    ] {
        let found = values(&samples, source, name);
        assert!(found.len() >= 3, "{source}.{name}: {found:?}");
        assert!(found.iter().all(|v| (least..=highest).contains(v)), "{source}.{name}: {found:?}");
    }
    for sample in &samples {
        let (source, name) = (sample.source.as_str(), sample.name.as_str());
        let known = crate::known_sources();
        let is_declared = match known.iter().find(|(known, _)| *known == source) {
            Some((_, names)) => names.contains(&name),
            None => crate::series::is_of_a_node(name),
        };
        assert!(is_declared, "{source}.{name} is declared nowhere");
    }
    assert!(samples.iter().all(|s| s.at > 0 && s.at < 60_000_000_000));
}

mod timing {
    use super::*;

    /// Claim: a round costs less than 0.2 % of a core at one a second, with this process, the host and eight nodes.
    #[test]
    fn a_round_is_cheap() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::start();
        let mut bed = Testbed::new(folder.path(), clock);
        let mut sampling = Sampling::new(clock, Duration::from_secs(1), untold());
        for index in 0..8 {
            let (name, pid) = spawn(&mut bed, &format!("node-{index}"), "read line");
            sampling.watch(&Watch { name, pid });
        }
        sampling.round();
        let before = clock::CpuTime::of_this_thread();
        for _ in 0..50 {
            sampling.round();
        }
        let cost = clock::CpuTime::of_this_thread().since(before) / 50;
        println!("a round takes {cost:?} of processor time");
        assert!(cost < Duration::from_millis(2), "{cost:?}");
    }
}

/// Claim: memory is bounded: at the bound neighbours are merged, means are kept, and the interval doubles.
#[test]
fn a_long_run_is_thinned() {
    let clock = Clock::start();
    let mut sampling = Sampling::new(clock, Duration::from_secs(1), untold());
    let points = [1.0, 3.0, 5.0, 7.0, 9.0];
    let points = (1..).zip(points).map(|(at, value)| (Instant::from_ns(at), value)).collect();
    sampling.series.push(Series { source: "host".to_owned(), name: "load1", points });
    sampling.rounds = 5;
    sampling.thin();
    let kept: Vec<(i64, f64)> =
        sampling.series[0].points.iter().map(|(at, value)| (at.as_ns(), *value)).collect();
    assert_eq!(kept, [(2, 2.0), (4, 6.0), (5, 9.0)]);
    assert_eq!((sampling.rounds, sampling.interval), (2, Duration::from_secs(2)));
}

/// Claim: a node that was started again is followed under its name.
#[test]
fn a_restarted_node_is_followed() {
    let clock = Clock::start();
    let folder = tempfile::tempdir().unwrap();
    let mut bed = Testbed::new(folder.path(), clock);
    let first = spawn(&mut bed, "n", "read line");
    let sampler =
        ResourceSampler::start(clock, Duration::from_millis(20), vec![first], untold()).unwrap();
    let second = bed.restart("n").unwrap();
    clock.sleep_until(clock.now().plus(Duration::from_millis(50)));
    let restarted = clock.now();
    sampler.watch("n", second.pid);
    clock.sleep_until(restarted.plus(Duration::from_millis(100)));
    let samples = sampler.finish(restarted);
    assert!(samples.iter().any(|s| s.source == "n" && s.at > 0), "{samples:?}");
}
