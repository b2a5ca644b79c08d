//! The parts that the sample runs are put together from: distributions of a given shape, counts, audits, one good trial.
//!
//! Nothing here may depend on a clock or on chance: golden pages are made of it.

use std::collections::BTreeMap;

use model::facts::Environment;
use model::result::{
    Answer, AttemptsResult, AuditFacts, AuditOutcome, AuditResult, CallsResult, CheckResult,
    CombinedQuantile, CombinedResult, ConnectionsResult, Counted, Counts, CurvePoint, Distribution,
    Exit, Family, Figure, FigureUnit, GroupResult, LatencyResult, ProcessorOf, ProcessorResult,
    Quantile, Rates, RunResult, SCHEMA, SecondResult, SectionsResult, SettingResult, StepResult,
    StepsResult, StreamResult, ThresholdResult, Timeline, TimelineColumn, TrialResult,
    VegetaResult, Verdict, Voided,
};
use model::series::{SeriesFacts, SeriesUnit};

/// Nanoseconds.
pub const US: i64 = 1_000;
/// Nanoseconds.
pub const MS: i64 = 1_000_000;
/// Nanoseconds.
pub const S: i64 = 1_000_000_000;

/// A distribution of `count` samples around the given p50, with a tail of the given shape.
pub fn distribution(
    count: u64,
    p50: i64,
    p90: i64,
    p95: i64,
    p99: i64,
    p999: i64,
    max: i64,
) -> Distribution {
    distribution_of(count, 0, [p50, p90, p95, p99, p999], max)
}

/// The same with `inf` further transactions that never got an answer.
pub fn distribution_of(count: u64, inf: u64, values: [i64; 5], max: i64) -> Distribution {
    let due = count + inf;
    let quantile = |(q, value): (f64, i64)| {
        let beyond = ((1.0 - q) * count as f64).floor() as u64;
        let reach = q * due as f64 / count as f64;
        let slack = value / 40 + (value / 4) * i64::from(beyond < 100);
        let of_all_due = (reach < 1.0).then_some(if inf == 0 { value } else { value + value / 50 });
        Quantile {
            q,
            name: format!("p{}", (q * 1000.0).round() / 10.0),
            value_ns: Some(value),
            less_own_ns: None,
            low_ns: Some(value - slack),
            high_ns: (beyond >= 3).then_some(value + slack),
            unconditional_ns: of_all_due,
            beyond,
            due_low_ns: of_all_due.map(|value| value - slack),
            due_low_infinite: of_all_due.is_none(),
            due_high_ns: of_all_due.filter(|_| beyond >= 3).map(|value| value + slack),
            due_beyond: ((1.0 - q) * due as f64).floor() as u64,
        }
    };
    let fractions = [0.5, 0.9, 0.95, 0.99, 0.999];
    let mean = values[0] as f64 * 0.75 + values[1] as f64 * 0.2 + values[3] as f64 * 0.05;
    Distribution {
        count,
        min_ns: Some(values[0] / 3),
        max_ns: Some(max),
        mean_ns: Some(mean),
        mean_less_own_ns: None,
        mean_low_ns: Some(mean * 0.98),
        mean_high_ns: Some(mean * 1.02),
        variance_ns2: Some(mean * mean / 4.0),
        quantiles: fractions.into_iter().zip(values).map(quantile).collect(),
        negative: 0,
        curve: curve(values, max),
    }
}

/// A percentile curve through the values of p50, p90, p95, p99 and p99.9.
pub fn curve(values: [i64; 5], max: i64) -> Vec<CurvePoint> {
    let known = [0.5, 0.9, 0.95, 0.99, 0.999].into_iter().zip(values);
    let mut points = vec![CurvePoint { q: 0.0, value_ns: values[0] / 3 }];
    points.extend(known.map(|(q, value_ns)| CurvePoint { q, value_ns }));
    points.push(CurvePoint { q: 1.0, value_ns: max });
    points
}

/// Thirty seconds of 50/s.
pub fn timeline() -> Timeline {
    let column = |index: u32| TimelineColumn {
        offered: 50,
        sent: 50,
        committed: 50,
        failed: BTreeMap::new(),
        reached: vec![50],
        outstanding: 0,
        p50_ns: Some((400 + i64::from(index % 7) * 5) * US),
        p99_ns: (index != 3).then_some((1_200 + i64::from(index % 5) * 40) * US),
        p999_ns: Some((3_000 + i64::from(index % 3) * 100) * US),
        max_ns: Some((3_500 + i64::from(index % 3) * 160) * US),
        own_lag_p99_ns: Some(21 * US),
    };
    Timeline { width_ns: S, columns: (0..30).map(column).collect(), ..Timeline::default() }
}

pub fn lag(p99: i64) -> Distribution {
    distribution(1_500, p99 / 8, p99 / 3, p99 / 2, p99, p99 * 2, p99 * 3)
}

pub fn scaled(of: &Distribution, percent: i64) -> Distribution {
    let mut scaled = of.clone();
    let scale = |ns: Option<i64>| ns.map(|ns| ns * percent / 100);
    scaled.max_ns = scale(scaled.max_ns);
    scaled.mean_ns = scaled.mean_ns.map(|ns| ns * percent as f64 / 100.0);
    for q in &mut scaled.quantiles {
        q.value_ns = scale(q.value_ns);
        q.low_ns = scale(q.low_ns);
        q.high_ns = scale(q.high_ns);
        q.unconditional_ns = scale(q.unconditional_ns);
        q.due_low_ns = scale(q.due_low_ns);
        q.due_high_ns = scale(q.due_high_ns);
    }
    scaled
}

/// A value of all due, none of which was refused: infinite as soon as one is missing.
fn response_of_all<T>(value: Option<T>, missing: u64) -> Option<T> {
    value.filter(|_| missing == 0)
}

pub fn latency(stage: &str, response: Distribution, inf: u64) -> LatencyResult {
    // As with a timeout of 30 s.
    let (count, never) = (response.count as f64, inf as f64);
    let restricted = response.mean_ns.map(|mean| (mean * count + never * 30e9) / (count + never));
    let (mean_ns, max_ns) = (response.mean_ns, response.max_ns);
    LatencyResult {
        stage: stage.to_owned(),
        service: scaled(&response, 99),
        response,
        due_mean_ns: response_of_all(mean_ns, inf),
        due_max_ns: response_of_all(max_ns, inf),
        missing: inf,
        restricted_mean_ns: restricted,
        inf,
        ..LatencyResult::default()
    }
}

pub fn audit(name: &str, outcome: AuditOutcome, detail: &str) -> AuditResult {
    let voids = match outcome {
        AuditOutcome::Failed => vec![Voided::too_high(Family::Response)],
        _ => Vec::new(),
    };
    let figures = vec![Figure { name: "share".into(), value: 0.5, unit: FigureUnit::Share }];
    AuditResult { name: name.to_owned(), outcome, detail: detail.to_owned(), voids, figures }
}

pub fn check(
    name: &str,
    outcome: AuditOutcome,
    count: u64,
    words: &str,
    examples: &[u64],
) -> CheckResult {
    CheckResult {
        name: name.to_owned(),
        summary: String::new(),
        outcome,
        count,
        examples: examples.to_vec(),
        words: words.to_owned(),
        left_out: 0,
    }
}

pub fn audits() -> Vec<AuditResult> {
    let ok = |name, detail| audit(name, AuditOutcome::Ok, detail);
    vec![
        ok("conservation", "due 1,500 = committed 1,500 + rejected 0 + unknown 0 + shed 0"),
        ok("send lag", "own lag p99 21 µs, bound 1 ms"),
        ok("generator", "busiest engine thread 3% of a core"),
        ok("offered", "1,500 due of 1,500 planned"),
        ok("warm-up", "no trend left (p = 0.61)"),
        ok("backlog", "slope 0.0/s"),
        ok("drain", "reached zero after 4.1 ms"),
        ok("duplicates", "no answer came twice"),
        ok("little", "in flight 0.02 = rate × response time 0.02"),
        ok("clock", "wall clock stepped 0 ns; 0 negative times"),
        ok("host", "governor performance, steal 0%"),
        audit("preflight", AuditOutcome::Skipped, "one kind only"),
        ok("client", "no failure was this client's"),
        ok("survivorship", "every transaction was answered"),
        ok("stage order", "due ≤ ready ≤ sent ≤ marks in every row"),
        audit("repeatability", AuditOutcome::Skipped, "one trial a setting"),
    ]
}

pub fn set_audit(trial: &mut TrialResult, name: &str, outcome: AuditOutcome, detail: &str) {
    let place = trial.audits.iter_mut().find(|audit| audit.name == name).expect("a known audit");
    *place = audit(name, outcome, detail);
}

pub fn threshold(expr: &str, holds: Option<bool>, actual: &str) -> ThresholdResult {
    ThresholdResult {
        expr: expr.to_owned(),
        level: "fail".to_owned(),
        answer: match holds {
            Some(true) => Answer::Met,
            Some(false) => Answer::Failed,
            None => Answer::Invalid,
        },
        holds,
        actual: actual.to_owned(),
        counted: vec![Counted {
            comparison: expr.to_owned(),
            limit_ns: Some(1e9),
            all: 1_500,
            allowed_share: 0.01,
            chance: 3e-7,
            ..Counted::default()
        }],
        ..ThresholdResult::default()
    }
}

pub fn counts(due: u64, rejected: &[(&str, u64)], unknown: u64, shed: u64) -> Counts {
    let rejected_by_class: BTreeMap<String, u64> =
        rejected.iter().map(|(class, count)| ((*class).to_owned(), *count)).collect();
    let rejected = rejected_by_class.values().sum();
    Counts {
        due,
        sent: due - shed,
        committed: due - rejected - unknown - shed,
        rejected,
        rejected_by_class,
        unknown,
        shed,
    }
}

pub fn rates(planned: Option<f64>, counts: &Counts, window_ns: i64, stages: &[&str]) -> Rates {
    let per_s = |count: u64| count as f64 / (window_ns as f64 / 1e9);
    Rates {
        planned_per_s: planned,
        offered_per_s: per_s(counts.due),
        sent_per_s: per_s(counts.sent),
        reached_per_s: stages
            .iter()
            .map(|stage| ((*stage).to_owned(), per_s(counts.committed)))
            .collect(),
        goodput_per_s: per_s(counts.committed),
    }
}

/// All were sent once.
pub fn attempts(counts: &Counts, allowed: u64) -> AttemptsResult {
    let sent = counts.sent;
    AttemptsResult { allowed, sent, resent: 0, total: sent, mean: Some(1.0), max: 1 }
}

pub fn vegeta(
    counts: &Counts,
    rate: f64,
    response: &Distribution,
    codes: &[(&str, u64)],
) -> VegetaResult {
    let at = |name: &str| {
        let found = response.quantiles.iter().find(|q| q.name == name);
        found.and_then(|q| q.value_ns).unwrap_or(0)
    };
    let attack = (counts.due as f64 - 1.0) / rate;
    let good: u64 = codes.iter().filter(|(code, _)| *code == "200").map(|(_, count)| *count).sum();
    VegetaResult {
        requests: counts.due,
        rate: counts.due as f64 / attack,
        throughput: good as f64 / (attack + 0.19),
        attack_ns: (attack * 1e9) as i64,
        wait_ns: 190_008_366,
        total_ns: (attack * 1e9) as i64 + 190_008_366,
        mean_ns: response.mean_ns.unwrap_or(0.0) as i64,
        min_ns: response.min_ns.unwrap_or(0),
        p50_ns: at("p50"),
        p90_ns: at("p90"),
        p95_ns: at("p95"),
        p99_ns: at("p99"),
        max_ns: response.max_ns.unwrap_or(0),
        bytes_in: counts.due * 34_313,
        bytes_out: 0,
        success: good as f64 / counts.due as f64,
        status_codes: codes.iter().map(|(code, count)| ((*code).to_owned(), *count)).collect(),
        errors: if codes.len() > 1 { vec!["404 Not Found".to_owned()] } else { Vec::new() },
    }
}

pub fn environment() -> Environment {
    Environment {
        schema: "assay.environment/1".to_owned(),
        assay: "assay 0.1.0 (1faeaae)".to_owned(),
        command: vec!["assay".to_owned(), "run".to_owned(), "api.toml".to_owned()],
        started: "2026-11-21T06:50:32Z".to_owned(),
        kernel: "Linux 6.8.0".to_owned(),
        os: "Debian 12".to_owned(),
        cpu: "Example CPU @ 2.60GHz".to_owned(),
        cpus: 2,
        memory_bytes: 8 << 30,
        governor: "performance".to_owned(),
        cpu_mhz: (2_600.0, 2_600.0),
        files_max: 1_048_576,
        ports: 28_232,
        clock_source: "tsc".to_owned(),
        load_average: 0.1,
        virtualisation: String::new(),
        warnings: Vec::new(),
    }
}

/// The testbed's own samples, in short: in the order in which they are shown.
pub fn own_series() -> Vec<SeriesFacts> {
    let of = |name, label, unit| SeriesFacts::of_host(name, label, unit).foremost();
    let cores = || SeriesUnit::of("cores");
    vec![
        of("cpu_cores", "processor", cores()).adding_up(),
        of("steal_share", "share stolen by the hypervisor", SeriesUnit::Share),
        of("steal_cores", "cores stolen by the hypervisor", cores()),
        of("run_queue", "run queue", SeriesUnit::of("threads")),
        of("memory_available_bytes", "memory available", SeriesUnit::Bytes),
        of("rss_bytes", "memory in use", SeriesUnit::Bytes).adding_up(),
    ]
}

/// A stream to its own final stage.
pub fn stream(stream: &str, until: &str, p50_ns: i64) -> StreamResult {
    let at = |times: i64| Some(p50_ns * times);
    let (stream, until) = (stream.to_owned(), until.to_owned());
    StreamResult { stream, until, p50_ns: at(1), p99_ns: at(3), max_ns: at(9) }
}

/// A trial of `assay run URL --rate 50/s --duration 30s` in which all went well.
pub fn trial(key: &str) -> TrialResult {
    let counts = counts(1_500, &[], 0, 0);
    let response =
        distribution(1_500, 412 * US, 688 * US, 790 * US, 1_240 * US, 3_310 * US, 3_980 * US);
    TrialResult {
        path: format!("settings/{key}/trial-0"),
        targets: Vec::new(),
        rest: None,
        durability: Default::default(),
        trial: 0,
        seed: 7,
        verdict: Verdict::Pass,
        reason: "every threshold holds and no audit objects".to_owned(),
        window_ns: 30 * S,
        final_stage: "committed".to_owned(),
        stream: "main".to_owned(),
        streams: vec![stream("main", "committed", 412 * US)],
        driver: "io_uring".to_owned(),
        rates: rates(Some(50.0), &counts, 30 * S, &["committed"]),
        attempts: attempts(&counts, 1),
        batches: None,
        vegeta: vegeta(&counts, 50.0, &response, &[("200", 1_500)]),
        connections: ConnectionsResult {
            first: 64,
            grown: 2,
            grown_by_second: vec![(0, 2)],
            bound: 1_024,
            blocked: 0,
            wait_p50_ns: Some(0),
            wait_p99_ns: Some(0),
        },
        latency: vec![latency("committed", response, 0)],
        counts,
        background: None,
        send_lag: lag(35 * US),
        own_lag: lag(21 * US),
        throughput_windows: Some((49.0, 51.0)),
        seconds: vec![SecondResult {
            second: 0,
            offered: 50,
            committed: 50,
            failed: 0,
            p50_ns: Some(412 * US),
            p99_ns: None,
            max_ns: Some(900 * US),
            outstanding: 0,
        }],
        timeline: timeline(),
        sections: SectionsResult::default(),
        calls: vec![
            CallsResult { calls: 1, chance: 0.5, exceeds_ns: Some(412 * US) },
            CallsResult { calls: 10, chance: 0.1, exceeds_ns: Some(1_240 * US) },
            CallsResult { calls: 100, chance: 0.01, exceeds_ns: None },
        ],
        page: None,
        minutes: None,
        health: None,
        processor: processor(30 * S),
        steps: None,
        flows: None,
        kinds: vec![group("GET /", 1_500, &[], 412 * US)],
        codes: vec![group("200", 1_500, &[], 412 * US)],
        errors: Vec::new(),
        fates: None,
        stated: None,
        node_stages: None,
        faults: Vec::new(),
        faults_left_out: 0,
        preflight: Vec::new(),
        audits: audits(),
        checks: Vec::new(),
        thresholds: vec![threshold("p99 < 10ms", Some(true), "1.24 ms")],
        series: own_series(),
        resources: BTreeMap::from([
            ("generator.cpu_cores".to_owned(), (0.01, 0.03, 0.05)),
            ("host.cpu_mhz".to_owned(), (2_598.0, 2_600.0, 2_601.0)),
        ]),
        resources_last: BTreeMap::new(),
    }
}

/// One step that keeps up.
pub fn one_step() -> StepsResult {
    let step = StepResult {
        length_ns: 30 * S,
        offered_per_s: 51.0,
        goodput_per_s: 50.5,
        counts: counts(6_600, &[("conflict", 2_012)], 3_003, 0),
        p50_ns: Some(413 * US),
        p99_ns: Some(1_377 * US),
        outstanding: 777,
        keeps_up: true,
        ..StepResult::default()
    };
    StepsResult { steps: vec![step], ..StepsResult::default() }
}

/// Processor time of this process alone, of 1,500 transactions.
fn processor(window_ns: i64) -> ProcessorResult {
    let each = 0.03 * window_ns as f64 / 1_500.0;
    let own = ProcessorOf {
        process: "generator".to_owned(),
        sampled: 1.0,
        cores: Some(0.03),
        ns_per_transaction: Some(each),
    };
    ProcessorResult { committed: 1_500, processes: vec![own], ns_per_transaction: Some(each) }
}

pub fn group(name: &str, due: u64, rejected: &[(&str, u64)], p50: i64) -> GroupResult {
    GroupResult {
        name: name.to_owned(),
        counts: counts(due, rejected, 0, 0),
        p50_ns: Some(p50),
        p99_ns: Some(p50 * 3),
        max_ns: Some(p50 * 9),
    }
}

/// What several trials say together: from the smallest of their values to the largest, and half as much on both sides;
/// open above where one of them is.
fn combined(trials: &[TrialResult]) -> CombinedResult {
    let around = |values: Vec<f64>| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        (Some(low - (high - low) / 2.0), Some(high + (high - low) / 2.0))
    };
    let responses: Vec<&Distribution> = trials.iter().map(|it| &it.latency[0].response).collect();
    let (mean_low_ns, mean_high_ns) =
        around(responses.iter().filter_map(|it| it.mean_ns).collect());
    let quantile = |(index, of): (usize, &Quantile)| {
        let all = || responses.iter().map(|it| &it.quantiles[index]);
        let (low, high) = around(all().filter_map(|it| it.value_ns).map(|ns| ns as f64).collect());
        let is_closed = all().all(|it| it.high_ns.is_some());
        CombinedQuantile {
            q: of.q,
            name: of.name.clone(),
            low_ns: low.map(|ns| ns as i64),
            high_ns: high.filter(|_| is_closed).map(|ns| ns as i64),
        }
    };
    let (goodput_low_per_s, goodput_high_per_s) =
        around(trials.iter().map(|it| it.rates.goodput_per_s).collect());
    CombinedResult {
        trials: trials.len() as u64,
        mean_low_ns,
        mean_high_ns,
        quantiles: responses[0].quantiles.iter().enumerate().map(quantile).collect(),
        goodput_low_per_s,
        goodput_high_per_s,
    }
}

pub fn setting(key: &str, trials: Vec<TrialResult>) -> SettingResult {
    let values = key.split(',').filter_map(|pair| pair.split_once('='));
    SettingResult {
        key: key.to_owned(),
        values: values.map(|(axis, label)| (axis.to_owned(), label.to_owned())).collect(),
        verdict: trials.iter().map(|trial| trial.verdict).max().unwrap_or(Verdict::Pass),
        expect: None,
        saturated: false,
        combined: (trials.len() > 1).then(|| combined(&trials)),
        borne: None,
        scalability: None,
        trials,
    }
}

fn asked(audit: &AuditResult) -> AuditFacts {
    let question = format!("Is there nothing to say of what {} looks at?", audit.name);
    AuditFacts { name: audit.name.clone(), question }
}

pub fn run(name: &str, exit: Exit, reason: &str, settings: Vec<SettingResult>) -> RunResult {
    let verdict = match exit {
        Exit::CannotTell => Verdict::Invalid,
        Exit::Failed => Verdict::Fail,
        _ => Verdict::Pass,
    };
    // As they stand in the key, which has them in the order of the experiment.
    let key = settings.first().map(|setting| setting.key.clone()).unwrap_or_default();
    let pairs = key.split(',').filter_map(|pair| pair.split_once('='));
    let axes = pairs.map(|(axis, _)| axis.to_owned()).collect();
    RunResult {
        schema: SCHEMA.to_owned(),
        name: name.to_owned(),
        question: String::new(),
        notes: String::new(),
        started: "2026-11-21T06:50:32Z".to_owned(),
        seed: 42,
        subject: model::result::RunSubject::default(),
        verdict,
        reason: reason.to_owned(),
        exit_code: exit as i32,
        exit_meaning: exit.meaning().to_owned(),
        interrupted: false,
        fidelity: Vec::new(),
        percentile_method:
            "HdrHistogram, three digits, nearest rank; 95% intervals by block bootstrap".to_owned(),
        axes,
        settings,
        tables: Vec::new(),
        load_series: Vec::new(),
        search: None,
        statements: Vec::new(),
        knee: String::new(),
        audits: Vec::new(),
        audits_asked: audits().iter().map(asked).collect(),
        environment: environment(),
    }
}
