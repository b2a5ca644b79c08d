//! The content of a plan: defaults, layers, order, expectations, and where every value came from.

use std::path::Path;
use std::time::Duration;

use model::Seed;
use model::plan::{Arrivals, BatchPlan, LoadPlan, Pacing, Plan, Schedule};
use model::quantity::Rate;
use model::result::Verdict;
use plan::{Input, Outside, Resolved, Source, fuzz_experiment, keys, redact_plan, resolve};

const SYSTEM: &str = "[system]\nkind = 'echo'\n";

fn file(load: &str) -> Source {
    Source { name: "my.toml".into(), text: format!("{SYSTEM}{load}") }
}

fn resolved(input: &Input<'_>) -> Resolved {
    resolve(input).unwrap_or_else(|rejected| panic!("{rejected}"))
}

fn plan_of(text: &str) -> Plan {
    resolved(&Input { file: file(text), ..Input::default() }).plan
}

fn load_of(load: &str) -> LoadPlan {
    plan_of(&format!("[load]\n{load}")).settings.remove(0).load
}

fn origin<'a>(resolved: &'a Resolved, path: &str) -> (&'a str, &'a str) {
    let found = resolved.effective.iter().find(|effective| effective.path == path);
    let found = found.unwrap_or_else(|| panic!("{path} is not among the effective values"));
    (&found.value, &found.origin)
}

/// Claim: a file that says only its rate gets exactly the documented defaults.
#[test]
fn defaults() {
    let plan = plan_of("[load]\nrate = '50/s'");
    assert_eq!((plan.name.as_str(), plan.seed, plan.shuffled), ("my", Seed(1), false));
    assert_eq!(plan.percentiles, [0.5, 0.9, 0.95, 0.99, 0.999]);
    assert_eq!((plan.settings.len(), plan.settings[0].key.as_str()), (1, "default"));
    let load = &plan.settings[0].load;
    assert_eq!((load.connections, load.connections_max, load.threads), (64, 1_024, 1));
    assert_eq!(load.duration, Duration::from_secs(30));
    assert_eq!(load.warmup, Duration::from_secs(2));
    assert_eq!((load.timeout, load.drain_max), (Duration::from_secs(30), Duration::from_secs(30)));
    assert_eq!((load.backlog_max, load.lookahead), (1_000_000, 1024));
    assert_eq!((load.pacing, load.transactions_max), (Pacing::Balanced, 0));
    assert_eq!(load_of("rate = '1/s'\nduration = '5s'").warmup, Duration::from_millis(500));
    assert_eq!(load_of("rate = '1/s'\ntimeout = '3s'").drain_max, Duration::from_secs(3));
    let closed = load_of("model = 'closed'\nclients = 12");
    assert_eq!((closed.connections, closed.connections_max), (12, 12));
    let windowed = load_of("model = 'closed'\nwindow = 3000");
    assert_eq!(windowed.connections, 1);
    assert!(matches!(windowed.arrivals, Arrivals::Closed { clients: 3000, window: 3000, .. }));
}

/// Claim: the n-th trials of the two sides of [against] have the same seed, and so the same arrivals; other trials and other
/// settings have others.
#[test]
fn sides_share_their_arrivals() {
    let plan = plan_of(
        "[against.deploy]\nservice = '5ms'\n[load]\nrate = '50/s'\n[matrix]\nn = { set = 'load.connections', values = [1, 2] }",
    );
    let seed = |setting: usize, trial| plan::trial_seed(plan.seed, &plan.settings[setting], trial);
    let keys: Vec<&str> = plan.settings.iter().map(|it| it.key.as_str()).collect();
    assert_eq!(
        keys,
        ["n=1,side=system", "n=1,side=against", "n=2,side=system", "n=2,side=against"]
    );
    assert_eq!(seed(0, 3), seed(1, 3));
    assert_eq!(seed(2, 0), seed(3, 0));
    assert!(seed(0, 0) != seed(0, 1) && seed(0, 0) != seed(2, 0));
}

/// Claim: what the command line sets becomes the only value of an axis that sets the same, however the axis is written, and
/// that is said; other axes stay.
#[test]
fn a_flag_replaces_an_axis() {
    let connections = "connections = [4, 8]";
    for axis in [
        "rate = { set = 'load.rate', values = ['20/s', '25/s', '30/s'], labels = ['a', 'b', 'c'] }",
        "rate = ['20/s', '25/s', '30/s']",
        "'load.rate' = ['20/s', '25/s', '30/s']",
    ] {
        let text = format!("[load]\nrate = '1/s'\n[matrix]\n{axis}\n{connections}");
        let flags = vec![("load.rate".to_owned(), "80/s".to_owned())];
        let by_flag = resolved(&Input { file: file(&text), flags, ..Input::default() });
        let sets = vec!["load.rate=80/s".to_owned()];
        let by_set = resolved(&Input { file: file(&text), sets, ..Input::default() });
        for (found, said) in [(by_flag, "--rate 80/s"), (by_set, "--set load.rate=80/s")] {
            assert_eq!(found.plan.settings.len(), 2, "{axis}");
            for setting in &found.plan.settings {
                assert!(setting.key.contains("=80/s"), "{}", setting.key);
                let Arrivals::Open { schedule: Schedule::Constant { rate } } =
                    setting.load.arrivals
                else {
                    panic!("{:?}", setting.load.arrivals)
                };
                assert!((rate.as_per_second() - 80.0).abs() < 1e-9);
            }
            let [remark] = &found.remarks[..] else { panic!("{:?}", found.remarks) };
            assert!(
                remark.starts_with(said) && remark.contains("3 values of the axis"),
                "{remark}"
            );
        }
    }
}

/// Claim: without `load.batch` each transaction leaves at once; an empty table has the documented defaults; what is
/// written counts.
#[test]
fn batches() {
    assert_eq!(load_of("rate = '1/s'").batch, None);
    let ms = Duration::from_millis;
    let fallback = BatchPlan { size_max: 100, delay_max: ms(1), in_flight_max: 1 };
    assert_eq!(load_of("rate = '1/s'\nbatch = {}").batch, Some(fallback));
    let written = "batch = { size_max = 7, delay_max = '20ms', in_flight_max = 3 }";
    let expected = BatchPlan { size_max: 7, delay_max: ms(20), in_flight_max: 3 };
    for model in ["rate = '1/s'", "rate = 'max'", "model = 'closed'\nclients = 9"] {
        assert_eq!(load_of(&format!("{model}\n{written}")).batch, Some(expected));
    }
}

/// Claim: every value that a plan's load has is explained, and each default is the one in the table.
#[test]
fn everything_is_explained() {
    let text = "[load]\nrate = '50/s'\nburst = {}\nbatch = {}\n[probe]\n";
    let resolved = resolved(&Input { file: file(text), ..Input::default() });
    for key in keys::KEYS {
        let top = key.path.split('.').next().unwrap();
        let not_of_this = [
            "ramp",
            "steps",
            "trace",
            "clients",
            "think",
            "window",
            "poll",
            "generators",
            "resend",
        ];
        let is_of_this = ["load", "probe", "measure"].contains(&top)
            && !not_of_this.iter().any(|part| key.path.starts_with(&format!("load.{part}")));
        if !is_of_this {
            continue;
        }
        let (value, from) = origin(&resolved, key.path);
        if let keys::Fallback::Fixed(fixed) = key.fallback
            && from == "default"
            && key.path != "load.arrival"
        {
            assert_eq!(value, fixed, "{}", key.path);
        }
    }
    assert_eq!(origin(&resolved, "load.rate"), ("50/s", "my.toml:4"));
    assert_eq!(origin(&resolved, "load.arrival"), ("burst", "default"));
    let text = "[load]\nrate = '50/s'\ntimeout = '7s'\nresend = {}\n";
    let again = self::resolved(&Input { file: file(text), ..Input::default() });
    assert_eq!(origin(&again, "load.resend.attempts_max"), ("3", "default"));
    assert_eq!(origin(&again, "load.resend.after"), ("7s", "default"));
}

/// Claim: each layer covers the one below, and the origin names the one that won.
#[test]
fn precedence() {
    let mut input = Input {
        file: file("[load]\nrate = '50/s'\n[profile.fast]\nload.rate = '70/s'"),
        user: Some(Source {
            name: "user.toml".into(),
            text: "[load]\nrate = '40/s'\nthreads = 2".into(),
        }),
        ..Input::default()
    };
    let mut expect = |change: &dyn Fn(&mut Input<'_>), rate: &str, from: &str| {
        change(&mut input);
        let resolved = resolved(&input);
        assert_eq!(origin(&resolved, "load.rate"), (rate, from));
        assert_eq!(origin(&resolved, "load.threads"), ("2", "user.toml:3"));
    };
    expect(&|_| {}, "50/s", "my.toml:4");
    expect(&|i| i.profile = Some("fast".into()), "70/s", "my.toml:6");
    expect(&|i| i.env = vec![("ASSAY_LOAD_RATE".into(), "80/s".into())], "80/s", "ASSAY_LOAD_RATE");
    expect(&|i| i.sets = vec!["load.rate=90/s".into()], "90/s", "--set load.rate=90/s");
    expect(&|i| i.flags = vec![("load.rate".into(), "99/s".into())], "99/s", "--rate 99/s");
}

/// Claim: a layer that chooses the other model needs no help to be rid of the first one's keys.
#[test]
fn another_model_from_above() {
    let flags = vec![("load.model".into(), "closed".into()), ("load.clients".into(), "8".into())];
    let input = Input { file: file("[load]\nrate = '50/s'"), flags, ..Input::default() };
    let load = resolved(&input).plan.settings.remove(0).load;
    assert!(matches!(load.arrivals, Arrivals::Closed { clients: 8, .. }));
}

/// Claim: `--set` takes TOML values, text where they are none, quoted keys, whole lists for an axis; a date is text.
#[test]
fn set_values() {
    let sets = [
        "load.timeout=5s",
        "load.threads = 2",
        "workload.\"a.b\"=true",
        "workload.on=2026-11-21",
        "workload.list=[1, '2']",
        "matrix.k=[\"3/s\"]",
    ];
    let input = Input {
        file: file(
            "[load]\nrate = '50/s'\n[matrix]\nk = { set = 'load.rate', values = ['1/s', '2/s'] }",
        ),
        sets: sets.iter().map(|set| (*set).to_owned()).collect(),
        ..Input::default()
    };
    let plan = resolved(&input).plan;
    assert_eq!(plan.settings.len(), 1);
    let setting = &plan.settings[0];
    assert_eq!(setting.key, "k=3/s");
    assert_eq!((setting.load.timeout, setting.load.threads), (Duration::from_secs(5), 2));
    assert_eq!(setting.system.workload.label(), "{a.b=true,list=[1,2],on=2026-11-21}");
}

/// Claim: a threshold may ask to be as sure as its interval is, and for nothing else.
#[test]
fn thresholds_may_ask_for_confidence() {
    let of = |confidence: &str| {
        let threshold = format!("[[threshold]]\nexpr = 'p99 < 1s'\n{confidence}");
        plan_of(&format!("[load]\nrate = '50/s'\n{threshold}")).thresholds[0].confidence
    };
    assert_eq!((of(""), of("confidence = '95%'")), (None, Some(0.95)));
}

/// Claim: thresholds from flags join those of the file.
#[test]
fn threshold_flags_add() {
    let input = Input {
        file: file("[load]\nrate = '50/s'\n[[threshold]]\nexpr = 'success == 100%'"),
        flags: vec![
            ("threshold".into(), "p99 < 1s".into()),
            ("threshold".into(), "p50 < 9ms".into()),
        ],
        ..Input::default()
    };
    let thresholds = resolved(&input).plan.thresholds;
    let exprs: Vec<&str> = thresholds.iter().map(|threshold| threshold.expr.as_str()).collect();
    assert_eq!(exprs, ["success == 100%", "p99 < 1s", "p50 < 9ms"]);
}

/// Claim: several trials run in an order that the seed alone decides; one trial each runs as written.
#[test]
fn order_by_seed() {
    let text = |head: &str| Source {
        name: "x.toml".into(),
        text: format!("{head}\n{SYSTEM}[load]\nrate = '1/s'\n[matrix]\nconnections = [1, 2, 3, 4]"),
    };
    let order = |head: &str| {
        let plan = resolved(&Input { file: text(head), ..Input::default() }).plan;
        (plan.order, plan.shuffled)
    };
    let written = |trials: u32| -> Vec<(usize, u32)> {
        (0..4).flat_map(|setting| (0..trials).map(move |trial| (setting, trial))).collect()
    };
    assert_eq!(order(""), (written(1), false));
    let (shuffled, is_shuffled) = order("trials = 3\nseed = 5");
    assert!(is_shuffled && shuffled != written(3));
    assert_eq!(order("trials = 3\nseed = 5").0, shuffled);
    assert_ne!(order("trials = 3\nseed = 6").0, shuffled);
    assert_eq!(order("trials = 3\norder = 'as-written'"), (written(3), false));
    let mut sorted = shuffled;
    sorted.sort_unstable();
    assert_eq!(sorted, written(3));
}

/// Claim: a verdict that is expected of some settings reaches these, and an include brings its own.
#[test]
fn expected_verdicts() {
    let plan = plan_of(
        "[load]\nrate = '1/s'\n[matrix]\nk = { set = 'workload.k', values = ['a', 'b'] }\n\
         [[include]]\nk = 'c'\nexpect = 'invalid'\n[[exclude]]\nk = 'a'\n\
         [[expect]]\nat = { k = 'b' }\nverdict = 'fail'",
    );
    let expected: Vec<_> = plan.settings.iter().map(|s| (s.key.as_str(), s.expect)).collect();
    assert_eq!(expected, [("k=b", Some(Verdict::Fail)), ("k=c", Some(Verdict::Invalid))]);
}

/// Claim: labels name values that have no short text, in keys and in includes.
#[test]
fn labels() {
    let plan = plan_of(
        "[load]\nrate = '1/s'\n[matrix]\nwho = { set = 'workload.who', values = [{ a = 1 }, { a = 2 }], labels = ['one', 'two'] }\n\
         c = { set = 'load.connections', values = [1] }\n\
         [[include]]\nwho = 'two'\nc = 9\n",
    );
    let keys: Vec<&str> = plan.settings.iter().map(|setting| setting.key.as_str()).collect();
    assert_eq!(keys, ["who=one,c=1", "who=two,c=1", "who=two,c=9"]);
    assert_eq!(plan.settings[2].system.workload.label(), "{who={a=2}}");
}

/// Claim: a secret that an include sets is in no label, no key and no stored plan, wherever in the value it stands; two of them
/// are told apart, and one that an axis has is known again.
#[test]
fn secrets_of_includes() {
    let path = "workload.headers.Authorization";
    let set = |secret: &str| format!("set = {{ '{path}' = 'Bearer {secret}' }}");
    let of_one = format!(
        "[load]\nrate = '1/s'\n[[include]]\n{}\n[[include]]\n{}\n",
        set("s3cr3t-1234"),
        set("s3cr3t-5678")
    );
    let of_table =
        "[load]\nrate = '1/s'\n[[include]]\nset = { workload = { token = 's3cr3t-1234' } }";
    let of_default = format!("[workload.headers]\nAuthorization = 'Bearer s3cr3t-0'\n{of_one}")
        .replacen(
            "[[include]]\nset",
            "[[include]]\nset = { 'load.threads' = 1 }\n[[include]]\nset",
            1,
        );
    let of_axis = format!(
        "[load]\nrate = '1/s'\n[matrix]\nauth = {{ set = '{path}', values = ['Bearer s3cr3t-1', 'Bearer s3cr3t-2'] }}\n\
         [[exclude]]\nauth = 'Bearer s3cr3t-2'\n[[include]]\nauth = ['Bearer s3cr3t-3', 'Bearer s3cr3t-2']\n"
    );
    for (text, keys) in [
        (
            of_one.as_str(),
            &[
                "default",
                "Authorization=Bearer ${AUTHORIZATION}",
                "Authorization=Bearer ${AUTHORIZATION_2}",
            ][..],
        ),
        (of_table, &["default", "workload={token=${TOKEN}}"]),
        (
            &of_default,
            &[
                "default",
                "threads=1",
                "Authorization=Bearer ${AUTHORIZATION}",
                "Authorization=Bearer ${AUTHORIZATION_2}",
            ],
        ),
        (
            &of_axis,
            &[
                "auth=Bearer ${AUTHORIZATION}",
                "auth=Bearer ${AUTHORIZATION_3}",
                "auth=Bearer ${AUTHORIZATION_2}",
            ],
        ),
    ] {
        let plan = plan_of(text);
        let found: Vec<&str> = plan.settings.iter().map(|setting| setting.key.as_str()).collect();
        assert_eq!(found, keys, "{text}");
        let stored = toml::to_string(&redact_plan(&plan)).expect("a plan is TOML");
        assert!(!stored.contains("s3cr3t"), "{stored}");
    }
}

/// Claim: a trace's due times are read exactly, scaled by its speed, cut at the window's end, and read once.
#[test]
fn traces() {
    let reads = std::cell::Cell::new(0);
    let read_file = |path: &Path| {
        reads.set(reads.get() + 1);
        assert_eq!(path, Path::new("t.txt"));
        Ok("# due\n0\n250ms\n1.5\n1.5 # again\n\n2s\n".to_owned())
    };
    let due = |load: &str| {
        let outside = Outside { read_file: &read_file, ..Outside::default() };
        let input = Input { file: file(load), outside, ..Input::default() };
        let setting = resolved(&input).plan.settings.remove(0).load;
        let Arrivals::Open { schedule: Schedule::Trace { due_ns } } = setting.arrivals else {
            panic!("no trace")
        };
        (due_ns, setting.warmup, setting.duration)
    };
    let ms = |ms: u64| ms * 1_000_000;
    let (all, warmup, duration) = due("[load]\ntrace = { file = 't.txt' }");
    assert_eq!(all, [0, ms(250), ms(1500), ms(1500), ms(2000)]);
    assert_eq!((warmup, duration), (Duration::ZERO, Duration::from_nanos(ms(2000) + 1)));
    assert_eq!(due("[load]\ntrace = { file = 't.txt', speed = 2.0 }").0[1], ms(125));
    let (cut, ..) = due("[load]\nduration = '1s'\ntrace = { file = 't.txt' }");
    assert_eq!(cut, [0, ms(250)]);
    reads.set(0);
    due("[load]\ntrace = { file = 't.txt' }\n[matrix]\nconnections = [1, 2, 3]");
    assert_eq!(reads.get(), 1);
}

/// Claim: shapes come out as written, with their rates multiplied out.
#[test]
fn shapes() {
    let schedule = |load: &str| match load_of(load).arrivals {
        Arrivals::Open { schedule } => schedule,
        Arrivals::Closed { .. } => panic!("open"),
    };
    let per_second = Rate::per_second;
    assert!(
        matches!(schedule("rate = '5/s'\narrival = 'poisson'"), Schedule::Poisson { rate } if rate == per_second(5))
    );
    assert!(matches!(schedule("rate = 'max'"), Schedule::Constant { rate } if rate.is_max()));
    assert!(matches!(
        schedule("rate = '5/s'\nrate_per = 'generator'\ngenerators = 3\narrival = 'burst'"),
        Schedule::Burst { rate, every } if rate == per_second(15) && every == Duration::from_secs(1)
    ));
    assert!(matches!(
        schedule("ramp = { from = '0/s', to = '8/s' }\nrate_per = 'connection'\nconnections = 2"),
        Schedule::Ramp { from, to } if from.is_zero() && to == per_second(16)
    ));
    let steps = "rate = '10/s'\nsteps = { every = '2s', add = { rate = '5/s' }, until = { rate = '27/s' } }";
    let Schedule::Steps { steps } = schedule(steps) else { panic!("steps") };
    let rates: Vec<String> = steps.iter().map(|step| step.rate.to_string()).collect();
    assert_eq!(rates, ["10/s", "15/s", "20/s", "25/s"]);
    assert_eq!(
        load_of("steps = [{ rate = '1/s', for = '3s' }, { rate = '0/s', for = '4s' }]")
            .duration
            .as_secs(),
        7
    );
}

/// Claim: what is stored of a plan has no secrets, what is explained neither, and what is run has them.
#[test]
fn secrets() {
    let text =
        "[load]\nrate = '1/s'\n[workload.headers]\nAuthorization = 'Bearer abc'\nAccept = 'x'";
    let resolved = resolved(&Input { file: file(text), ..Input::default() });
    let value = |plan: &Plan| {
        plan.settings[0].system.workload.get("headers.Authorization").map(|v| v.label())
    };
    assert_eq!(value(&resolved.plan).as_deref(), Some("Bearer abc"));
    let stored = "Bearer ${AUTHORIZATION}";
    assert_eq!(value(&redact_plan(&resolved.plan)).as_deref(), Some(stored));
    assert_eq!(origin(&resolved, "workload.headers.Authorization").0, stored);
    assert_eq!(origin(&resolved, "workload.headers.Accept").0, "x");
}

/// Claim: ten thousand settings are resolved in less time than a user notices (a bound far above it here).
#[test]
fn a_large_matrix() {
    let axis = |name: &str| {
        let values: Vec<String> = (1..=100).map(|n| n.to_string()).collect();
        format!("{name} = {{ set = 'workload.{name}', values = [{}] }}\n", values.join(","))
    };
    let plan = plan_of(&format!("[load]\nrate = '1/s'\n[matrix]\n{}{}", axis("a"), axis("b")));
    assert_eq!(plan.settings.len(), 10_000);
    assert_eq!(plan.settings[9_999].key, "a=100,b=100");
}

/// Claim: files damaged at random places never panic, and end in a plan or in a rejection.
/// `ASSAY_TEST_ROUNDS` makes it a longer search.
#[test]
fn damage() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/experiments");
    let mut texts: Vec<Vec<u8>> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
        .collect();
    texts.sort();
    let shapes = b"#p load.rate=5/s\n[system]\nkind='x'\n[load]\nsteps={every='1s',add={rate='1/s'},until={rate='9/s'}}\nrate='1/s'\n[profile.p]\nload.timeout='1s'\n[[include]]\nset={'load.threads'=1}".to_vec();
    texts.push(shapes);
    let rounds = std::env::var("ASSAY_TEST_ROUNDS").map_or(6_000, |text| text.parse().unwrap());
    let mut rng = Seed(20_261_121).rng();
    for round in 0_usize..rounds {
        let mut bytes = texts[round % texts.len()].clone();
        for _ in 0..=rng.below(6) {
            let length = u64::try_from(bytes.len()).unwrap();
            let at = usize::try_from(rng.below(length)).unwrap();
            let until = bytes.len().min(at + usize::try_from(rng.below(12)).unwrap());
            match rng.below(4) {
                0 => bytes[at] = u8::try_from(rng.below(256)).unwrap(),
                1 => drop(bytes.drain(at..until)),
                2 => {
                    let piece = bytes[at..until].to_vec();
                    bytes.splice(at..at, piece);
                }
                _ => bytes.insert(at, b"\"'[]{}=.,\n#0/s"[usize::try_from(rng.below(14)).unwrap()]),
            }
            if bytes.is_empty() {
                bytes.push(b'=');
            }
        }
        fuzz_experiment(&bytes, testbed::fault_kinds());
    }
}

/// Claim: texts made to be deep, long or many are refused, not suffered.
#[test]
fn hostile_texts() {
    let dotted = vec!["a"; 60_000].join(".");
    for text in [
        "[".repeat(500_000),
        "{".repeat(500_000),
        format!("{dotted} = 1"),
        format!("[{dotted}]"),
        format!("x = {}", "[".repeat(79).as_str().to_owned() + &"{a.b=".repeat(40)),
        "[[a]]\n".repeat(100_000),
        format!(
            "{SYSTEM}[load]\nrate = '1/s'\n[workload]\ntext = '{}'\n[matrix]\na = {{ set = 'workload.a', values = [{}] }}",
            "x".repeat(500_000),
            (0..9_000).map(|n| n.to_string()).collect::<Vec<_>>().join(",")
        ),
        format!(
            "{SYSTEM}[load]\nrate='1/s'\nsteps={{every='1ns',add={{rate='0.001/s'}},until={{rate='1000000000000/s'}}}}"
        ),
        format!("{SYSTEM}[load]\nrate='1/s'\nduration='584y'\ntimeout='99999999999999999999s'"),
        "a=1\n".repeat(200_000),
        "\u{feff}\u{0}\u{7f}\u{202e}".repeat(1000),
    ] {
        fuzz_experiment(text.as_bytes(), testbed::fault_kinds());
        let file = Source { name: "x.toml".into(), text };
        assert!(resolve(&Input { file, ..Input::default() }).is_err());
    }
}
