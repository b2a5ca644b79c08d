//! Handcrafted results for tests that put something into a result that no run has: texts with markup, many kinds, numbers
//! without an end. No page of them is kept; those are of `made_runs`.

use std::collections::BTreeMap;

use model::facts::PreflightFinding;
use model::fault::FaultDetail;
use model::result::{
    AuditOutcome, BorneResult, Cell, ErrorResult, Exit, Fates, FaultResult, LoadSeries,
    MinuteResult, MinutesResult, PageResult, RunResult, StatedLatency, TableResult,
    ThresholdResult, TrialResult, Verdict,
};

use crate::sample_parts::{
    MS, S, US, audit, check, counts, distribution, distribution_of, group, lag, latency, rates,
    run, set_audit, setting, stream, threshold, trial, vegeta,
};

/// Every sample with its name.
pub fn all() -> Vec<(&'static str, RunResult)> {
    vec![
        ("clean", clean()),
        ("declared", declared()),
        ("failed", failed()),
        ("inside", crate::inside_samples::inside()),
        ("interrupted", interrupted()),
        ("invalid", invalid()),
        ("liar", liar()),
        ("matrix", matrix()),
        ("nodes", crate::node_samples::nodes()),
        ("probe", probe()),
        ("sending", crate::sending_samples::sending()),
    ]
}

/// A clean pass with one setting.
pub fn clean() -> RunResult {
    let reason = "every threshold holds and no audit objects";
    run("api-smoke", Exit::Ok, reason, vec![setting("default", vec![trial("default")])])
}

/// A threshold is broken: the published run at 50 requests a second with its 41 targets.
pub fn failed() -> RunResult {
    let mut it = trial("default");
    it.window_ns = 600 * S;
    it.throughput_windows = Some((31.0, 55.0));
    it.counts = counts(30_000, &[("bad_request", 744)], 27, 0);
    it.verdict = Verdict::Fail;
    it.rates = rates(Some(50.0), &it.counts, 600 * S, &["committed"]);
    let values = [163 * MS, 1_900 * MS, 5_230 * MS, 9_240 * MS, 21_400 * MS];
    let response = distribution_of(29_229, 771, values, 29_870 * MS);
    it.vegeta = vegeta(&it.counts, 50.0, &response, &[("0", 27), ("200", 29_229), ("404", 744)]);
    it.latency = vec![latency("committed", response, 771)];
    it.kinds = (0..41)
        .map(|index| match index {
            0 => group("GET /block/last/", 732, &[("bad_request", 732)], 2 * MS),
            1 => group("GET /log/0x8B6492/0x8B649C/0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef", 732, &[("bad_request", 12)], 1_200 * MS),
            _ => group(&format!("GET /block/{}", 9_135_000 + index), 732, &[], 110 * MS),
        })
        .collect();
    it.codes = vec![
        group("0", 27, &[("transport", 27)], 30_000 * MS),
        group("200", 29_229, &[], 163 * MS),
        group("404", 744, &[("bad_request", 744)], 2 * MS),
    ];
    it.errors = vec![
        ErrorResult {
            text: "404 Not Found".to_owned(),
            class: "bad_request".to_owned(),
            count: 744,
            first_ns: 20 * MS,
            last_ns: 599_900 * MS,
            example_tx: 1,
        },
        ErrorResult {
            text: "no answer within 30s \x1b[31m(evil)\x1b[0m".to_owned(),
            class: "unknown".to_owned(),
            count: 27,
            first_ns: 402 * S,
            last_ns: 449 * S,
            example_tx: 20_133,
        },
    ];
    it.preflight = vec![PreflightFinding {
        kind: "GET /block/last/".to_owned(),
        ok: false,
        detail: "404 Not Found: the address ends with a slash that no route has".to_owned(),
        ..Default::default()
    }];
    it.thresholds = vec![
        threshold("success == 100%", Some(false), "97.43%"),
        threshold("p99 < 1s", Some(false), "9.24 s"),
        threshold("wait < 1s", Some(true), "190 ms"),
    ];
    set_audit(
        &mut it,
        "preflight",
        AuditOutcome::Warn,
        "1 of 41 targets can never succeed: GET /block/last/ answers 404",
    );
    let mut run = run(
        "api-sla",
        Exit::Failed,
        "2 of 3 thresholds are broken: success == 100% is 97.43%, p99 < 1s is 9.24 s",
        vec![setting("default", vec![it])],
    );
    run.question =
        "Which request rate can the API sustain without errors and under one second?".to_owned();
    run
}

/// The measurement does not hold: the generator was late on a throttled host.
pub fn invalid() -> RunResult {
    let mut it = trial("default");
    it.verdict = Verdict::Invalid;
    it.own_lag = lag(4_200 * US);
    it.send_lag = lag(4_300 * US);
    set_audit(
        &mut it,
        "send lag",
        AuditOutcome::Failed,
        "own lag p99 4.20 ms exceeds the bound of 1 ms: latencies may be too high by that much",
    );
    set_audit(
        &mut it,
        "host",
        AuditOutcome::Failed,
        "the processor ran at 850 MHz of 2,600 MHz: set the governor to performance and run again",
    );
    set_audit(&mut it, "generator", AuditOutcome::Warn, "busiest engine thread 81% of a core");
    let mut run = run(
        "api-smoke",
        Exit::CannotTell,
        "2 audits failed: send lag, host",
        vec![setting("default", vec![it])],
    );
    run.environment.governor = "powersave".to_owned();
    run.environment.warnings =
        vec!["governor powersave: numbers change with the clock rate".to_owned()];
    run
}

/// A system that loses, repeats and invents, with a ladder of three stages.
pub fn liar() -> RunResult {
    let mut it = trial("default");
    it.verdict = Verdict::Fail;
    it.final_stage = "verified".to_owned();
    it.streams[0].until = "verified".to_owned();
    it.window_ns = 10 * S;
    it.throughput_windows = Some((19_902.0, 20_031.0));
    it.counts = counts(200_000, &[("overloaded", 120)], 12, 0);
    it.rates = rates(Some(20_000.0), &it.counts, 10 * S, &["accepted", "committed", "verified"]);
    it.rates.reached_per_s[0].1 = 20_000.0;
    it.rates.reached_per_s[1].1 = 19_987.9;
    let response = |scale: i64| {
        distribution(
            199_868,
            210 * scale,
            390 * scale,
            460 * scale,
            900 * scale,
            2_100 * scale,
            3_800 * scale,
        )
    };
    it.vegeta = vegeta(&it.counts, 20_000.0, &response(US), &[("0", 199_988), ("1", 12)]);
    it.latency = vec![
        latency("accepted", response(US), 0),
        latency("committed", response(4 * US), 12),
        latency("verified", response(6 * US), 132),
    ];
    it.fates = Some(Fates {
        once: 199_866,
        lost: 2,
        duplicate: 3,
        phantom: 1,
        late: 7,
        entries: 199_877,
        reordered: 0,
        examples: BTreeMap::from([
            ("lost".to_owned(), vec![41_022, 141_022]),
            ("duplicate".to_owned(), vec![7, 100_007, 199_007]),
            ("phantom".to_owned(), vec![4_000_000_001]),
            ("late".to_owned(), vec![20, 21, 22, 23, 24, 25, 26]),
        ]),
        ..Fates::default()
    });
    it.stated = Some(StatedLatency {
        count: 199_875,
        without_time: 2,
        duplicates: 3,
        negative: 4,
        min_ns: Some(-40 * US),
        max_ns: Some(23 * MS),
        mean_ns: Some(2_412_345.25),
        stddev_ns: Some(812_345.5),
        p50_ns: Some(2_340 * US),
        p99_ns: Some(5_400 * US),
        clocks: model::facts::ClockRelation::OtherHosts,
    });
    it.faults = faults();
    it.faults_left_out = 3;
    it.checks = vec![
        check("no double spend", AuditOutcome::Ok, 199_877, "entries checked", &[]),
        check("balance", AuditOutcome::Failed, 2, "transfers made money", &[17, 41_022]),
    ];
    it.thresholds = vec![
        threshold("lost == 0", Some(false), "2"),
        threshold("duplicates == 0", Some(false), "3"),
    ];
    let mut run = run(
        "echo-lies",
        Exit::Failed,
        "2 of 2 thresholds are broken: lost == 0 is 2, duplicates == 0 is 3",
        vec![setting("default", vec![it])],
    );
    run.fidelity = vec!["acknowledges before it stores".to_owned()];
    run
}

/// Six rates, of which the last two are beyond the knee.
pub fn matrix() -> RunResult {
    /// Four minutes, alike.
    fn borne(it: &mut TrialResult, due: u64, refused: u64, p99: i64) -> BorneResult {
        let is_good = refused == 0;
        let minute = |n: i64| MinuteResult {
            start_ns: n * 60 * S,
            due: due / 4,
            committed: due / 4 - refused.div_ceil(4),
            quantile_ns: is_good.then_some(p99 + n * MS),
            holds: is_good,
        };
        let minutes: Vec<_> = (0..4).map(minute).collect();
        let success_min = minutes[3].committed as f64 / minutes[3].due as f64;
        it.minutes = Some(MinutesResult {
            judged: vec!["success == 100%".to_owned(), "p99 < 1s".to_owned()],
            left_out: Vec::new(),
            quantile: "p99".to_owned(),
            minutes,
        });
        it.page = Some(PageResult {
            calls: 10,
            independent: ((due - refused) as f64 / due as f64).powi(10),
            independent_without: None,
            in_a_row: Some(if is_good { 1.0 } else { 0.5 }),
        });
        let words = "at 40/s: p99 ≤ 345 ms and success ≥ 100.00% in 4 of 4 minutes";
        BorneResult {
            minutes: 4,
            held: if is_good { 4 } else { 0 },
            quantile: "p99".to_owned(),
            worst_ns: is_good.then_some(p99 + 3 * MS),
            success_min,
            in_doubt: Vec::new(),
            words: if due == 9_600 { words.to_owned() } else { String::new() },
        }
    }
    let rows = [
        (20.0, 0_u64, 117 * MS, 367 * MS, 1_186 * MS),
        (30.0, 0, 117 * MS, 396 * MS, 1_268 * MS),
        (40.0, 0, 116 * MS, 342 * MS, 1_246 * MS),
        (48.0, 350, 111 * MS, 387 * MS, 1_231 * MS),
        (49.0, 5_164, 110 * MS, 343 * MS, 1_246 * MS),
        (50.0, 9_335, 109 * MS, 368 * MS, 1_163 * MS),
    ];
    let settings = rows.map(|(rate, refused, p50, p99, max)| {
        let key = format!("rate={rate}/s");
        let mut it = trial(&key);
        it.window_ns = 240 * S;
        let due = (rate * 240.0) as u64;
        it.counts = counts(due, &[("limited", refused)], 0, 0);
        it.counts.rejected_by_class.retain(|_, count| *count > 0);
        it.rates = rates(Some(rate), &it.counts, 240 * S, &["committed"]);
        let values = [p50, p50 * 3 / 2, p50 * 17 / 10, p99, p99 * 2];
        let response = distribution_of(due - refused, refused, values, max);
        let codes = [("200", due - refused), ("429", refused)];
        let codes = if refused == 0 { &codes[..1] } else { &codes };
        it.vegeta = vegeta(&it.counts, rate, &response, codes);
        it.latency = vec![latency("committed", response, refused)];
        it.codes = codes
            .iter()
            .map(|(code, count)| {
                let class: &[(&str, u64)] =
                    if *code == "429" { &[("limited", *count)] } else { &[] };
                group(code, *count, class, p50)
            })
            .collect();
        let is_good = refused == 0;
        let borne = borne(&mut it, due, refused, p99);
        it.verdict = if is_good { Verdict::Pass } else { Verdict::Fail };
        let share = format!("{:.2}%", (due - refused) as f64 / due as f64 * 100.0);
        it.thresholds = vec![
            threshold("success == 100%", Some(is_good), &share),
            threshold("p99 < 1s", Some(true), "367 ms"),
        ];
        if !is_good {
            it.errors = vec![ErrorResult {
                text: "429 Too Many Requests".to_owned(),
                class: "limited".to_owned(),
                count: refused,
                first_ns: 61 * S,
                last_ns: 239 * S,
                example_tx: 2_880,
            }];
        }
        if rate > 48.5 {
            set_audit(
                &mut it,
                "backlog",
                AuditOutcome::Warn,
                "the system refuses what it cannot take",
            );
        }
        let mut setting = setting(&key, vec![it]);
        setting.saturated = rate > 48.5;
        setting.borne = Some(borne);
        setting
    });
    let mut run = run(
        "api-rates",
        Exit::Failed,
        "success == 100% is broken at 3 of 6 settings",
        settings.to_vec(),
    );
    run.question = "Where does the rate limiter engage?".to_owned();
    run.knee =
        "Knee: rate=48/s is the last setting before saturation (46.5/s of goodput, p99 387 ms)"
            .to_owned();
    let settings: Vec<String> = run.settings.iter().map(|setting| setting.key.clone()).collect();
    let knee = settings.iter().position(|key| key == "rate=48/s");
    run.load_series = vec![LoadSeries {
        values: BTreeMap::new(),
        knee: Some("rate=48/s".to_owned()),
        limit: knee.and_then(|knee| settings.get(knee + 1).cloned()),
        settings,
    }];
    let cell = |text: &str, value: Option<f64>, grey: bool| Cell {
        text: text.to_owned(),
        value,
        grey,
        void: false,
    };
    run.tables = vec![TableResult {
        title: "p99 by rate".to_owned(),
        columns: vec!["rate".to_owned(), "p99".to_owned(), "p99.9".to_owned()],
        rows: vec![
            vec![
                cell("20/s", None, false),
                cell("367 ms", Some(0.367), false),
                cell("734 ms", Some(0.734), true),
            ],
            vec![
                cell("50/s", None, false),
                cell("368 ms", Some(0.368), false),
                cell("736 ms", Some(0.736), true),
            ],
        ],
    }];
    run
}

/// A probe beside background load, as in the published k-latency experiment.
pub fn probe() -> RunResult {
    let rows: [(u64, u64, [i64; 5], i64); 4] = [
        (0, 0, [1_020 * MS, 1_230 * MS, 1_300 * MS, 2_020 * MS, 2_150 * MS], 2_150 * MS),
        (100, 0, [1_030 * MS, 1_260 * MS, 1_390 * MS, 2_110 * MS, 2_400 * MS], 2_400 * MS),
        (1_000, 2, [1_240 * MS, 2_530 * MS, 2_900 * MS, 6_100 * MS, 9_800 * MS], 9_800 * MS),
        (2_000, 31, [8_400 * MS, 21_000 * MS, 24_000 * MS, 29_100 * MS, 29_800 * MS], 29_800 * MS),
    ];
    let settings = rows.map(|(background, inf, values, max)| {
        let key = format!("k={background}/s");
        let mut it = trial(&key);
        it.stream = "probe".to_owned();
        it.window_ns = 600 * S;
        it.final_stage = "verified".to_owned();
        it.streams =
            vec![stream("main", "accepted", 3 * MS), stream("probe", "verified", values[0])];
        it.counts = counts(250, &[], inf, 0);
        it.rates = rates(None, &it.counts, 600 * S, &["verified"]);
        it.background =
            Some(counts(background * 600, &[], if inf > 2 { background * 60 } else { 0 }, 0));
        let response = distribution_of(250 - inf, inf, values, max);
        it.vegeta = vegeta(&it.counts, 0.42, &response, &[("200", 250 - inf)]);
        it.latency = vec![latency("verified", response, inf)];
        it.thresholds = vec![threshold("p95 < 2s", Some(values[2] < 2 * S), "see table")];
        it.verdict = if values[2] < 2 * S { Verdict::Pass } else { Verdict::Fail };
        for threshold in &mut it.thresholds {
            threshold.actual = model::quantity::show_ns(values[2]);
        }
        setting(&key, vec![it])
    });
    let mut run =
        run("k-latency", Exit::Failed, "p95 < 2s is broken at 2 of 4 settings", settings.to_vec());
    run.question = "How long does a light client wait while others load the ledger with k transactions a second?".to_owned();
    run
}

/// Ctrl-C after a moment: few samples, one setting never run.
pub fn interrupted() -> RunResult {
    let mut it = trial("rate=50/s");
    it.window_ns = 4_200 * MS;
    it.counts = counts(210, &[], 3, 0);
    it.rates = rates(Some(50.0), &it.counts, 4_200 * MS, &["committed"]);
    let response =
        distribution_of(207, 3, [420 * US, 700 * US, 810 * US, 2_240 * US, 3_900 * US], 3_900 * US);
    it.vegeta = vegeta(&it.counts, 50.0, &response, &[("0", 3), ("200", 207)]);
    it.latency = vec![latency("committed", response, 3)];
    set_audit(
        &mut it,
        "drain",
        AuditOutcome::Warn,
        "cut off with 3 outstanding; they count as unknown",
    );
    it.thresholds = vec![ThresholdResult {
        holds: None,
        actual: String::new(),
        detail: "p99.99 needs at least 10,000 samples".to_owned(),
        ..threshold("p99.99 < 1s", None, "")
    }];
    let mut run = run(
        "api-smoke",
        Exit::Interrupted,
        "interrupted after 4.2 s of 30 s; no threshold is broken so far",
        vec![setting("rate=50/s", vec![it]), setting("rate=100/s", Vec::new())],
    );
    run.interrupted = true;
    run
}

/// Settings built to fail, of which one did not; three trials each.
pub fn declared() -> RunResult {
    let of = |fault: &str, verdict: Verdict| {
        let key = format!("fault={fault}");
        let trials = (0..3).map(|index| {
            let mut it = trial(&key);
            it.trial = index;
            it.verdict = verdict;
            if verdict == Verdict::Invalid {
                set_audit(&mut it, "duplicates", AuditOutcome::Failed, "15 answers came twice");
            }
            it
        });
        let mut setting = setting(&key, trials.collect());
        setting.expect = Some(Verdict::Invalid);
        setting
    };
    let mut run = run(
        "audits",
        Exit::CannotTell,
        "fault=none passed, and invalid was declared",
        vec![of("answer-twice", Verdict::Invalid), of("none", Verdict::Pass)],
    );
    run.audits = vec![audit("repeatability", AuditOutcome::Ok, "p99 of three trials within 4%")];
    run
}

/// A cycle of a rotation, a kill, and a fault that could not be injected.
fn faults() -> Vec<FaultResult> {
    let fault = |of: (u32, u32, &str, &str), from_s: i64, length_ms: Option<i64>| {
        let (from_ns, length_ns) = (from_s * 1_000 * MS, length_ms.map(|length| length * MS));
        let (fault, cycle, kind, node) = of;
        FaultResult {
            fault,
            cycle,
            kind: kind.to_owned(),
            node: node.to_owned(),
            from_ns,
            to_ns: length_ns.map(|length| from_ns + length),
            length_ns,
            began: FaultDetail::Nothing,
            ended: length_ns.map(|ns| FaultDetail::CaughtUp { ns: ns - 100 * MS }),
            happened: true,
            silence_ns: Some(1_700 * MS),
            back_after_ns: length_ns.map(|_| 350 * MS),
            in_flight: Some(17),
        }
    };
    vec![
        fault((0, 1, "rotate", "full1"), 0, Some(12_400)),
        fault((0, 1, "rotate", "full2"), 0, Some(14_100)),
        fault((1, 0, "kill", "node|3"), 20, None),
        FaultResult {
            happened: false,
            silence_ns: None,
            in_flight: None,
            began: FaultDetail::Why { text: "it has ended".to_owned() },
            ..fault((2, 0, "pause", "node|3"), 30, None)
        },
    ]
}
