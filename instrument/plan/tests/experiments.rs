//! The experiment files of the published reports: what can be carried out is planned, and what cannot yet is
//! named, never passed over.

use model::plan::{Arrivals, Plan, Schedule};
use model::quantity::Rate;
use plan::{Input, Outside, Resolved, Source, outline, resolve};

fn input(name: &str, profile: Option<&str>, text: String) -> Input<'static> {
    Input {
        file: Source { name: format!("{name}.toml"), text },
        profile: profile.map(str::to_owned),
        outside: Outside { faults: testbed::fault_kinds(), ..Outside::default() },
        ..Input::default()
    }
}

fn text(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/experiments");
    std::fs::read_to_string(format!("{folder}/{name}.toml")).expect("the file is there")
}

/// Resolves a file as it is, or without the lines from each of `without` to the next blank line or header.
fn planned(name: &str, profile: Option<&str>, without: &[&str]) -> Resolved {
    let mut kept = Vec::new();
    let mut skipping = false;
    for line in text(name).lines() {
        if without.iter().any(|start| line.starts_with(start)) {
            skipping = true;
        } else if line.trim().is_empty() || line.starts_with('[') {
            skipping = false;
        }
        if !skipping {
            kept.push(line.to_owned());
        }
    }
    resolve(&input(name, profile, kept.join("\n"))).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn messages(name: &str, profile: Option<&str>) -> Vec<String> {
    match resolve(&input(name, profile, text(name))) {
        Ok(_) => Vec::new(),
        Err(rejected) => rejected.problems().iter().map(|p| p.message.clone()).collect(),
    }
}

/// Claim: nothing but what is not built yet keeps these files from being planned, and it is named.
#[test]
fn only_what_is_not_built_is_refused() {
    for (name, profile, refused) in [
        ("k-latency", None, vec![]),
        ("kv-throughput", None, vec![]),
        ("kv-throughput", Some("wan"), vec![]),
        ("paxos-consensus", None, vec![]),
        ("api-sla", None, vec!["search"]),
        ("atomizer-steps", None, vec!["events", "report.plots"]),
        ("testnet-saturation", None, vec!["load.drain.until", "metrics"]),
        (
            "testnet-saturation",
            Some("rotating"),
            vec!["load.drain.until", "metrics", "fault[0].every"],
        ),
    ] {
        let messages = messages(name, profile);
        assert_eq!(messages.len(), refused.len(), "{name}: {messages:?}");
        for (message, key) in messages.iter().zip(refused) {
            assert!(message.starts_with(&format!("`{key}` (")), "{name}: {message}");
            assert!(message.ends_with("is not built yet"), "{name}: {message}");
        }
    }
}

/// Claim: every plan is the same after plan.toml.
#[test]
fn plans_survive_their_file() {
    for (name, profile, without) in [
        ("k-latency", None, &[][..]),
        ("kv-throughput", None, &[]),
        ("paxos-consensus", None, &[]),
        ("api-sla", None, &["[search]"]),
        ("atomizer-steps", None, &["[[events]]", "plots"]),
        ("testnet-saturation", None, &["drain", "[[metrics]]"]),
    ] {
        let plan = planned(name, profile, without).plan;
        let written = toml::to_string(&plan).unwrap();
        let read: Plan = toml::from_str(&written).unwrap();
        assert_eq!(toml::to_string(&read).unwrap(), written, "{name}");
        // Spans are not written, so the trees are compared through what prints all else.
        assert_eq!(format!("{:?}", read.axes), format!("{:?}", plan.axes), "{name}");
        assert_eq!(read.order, plan.order, "{name}");
        assert_eq!(read.settings.len(), plan.settings.len(), "{name}");
        for (a, b) in read.settings.iter().zip(&plan.settings) {
            assert_eq!(format!("{:?}", a.load), format!("{:?}", b.load), "{name}");
            assert_eq!(a.key, b.key);
        }
    }
}

/// Claim: a matrix is the product of its axes in the order written, includes follow it, and what only they
/// set becomes an axis that every setting has a label on.
#[test]
fn matrix_and_include() {
    let plan = planned("kv-throughput", None, &[]).plan;
    assert_eq!(plan.settings.len(), 4 * 3 + 5 + 3);
    let names: Vec<&str> = plan.axes.iter().map(|axis| axis.name.as_str()).collect();
    assert_eq!(names, ["clients", "value_size", "system.deploy.batch", "system.deploy.queues"]);
    assert_eq!(plan.axes[2].labels, ["false", "true"]);
    let (first, included) = (&plan.settings[0], &plan.settings[12]);
    assert_eq!(first.key, "clients=1,value_size=1KiB");
    assert_eq!(first.values["system.deploy.batch"], "false");
    assert_eq!(included.key, "clients=64,value_size=1KiB,batch=true,queues=16");
    let deploy = &included.system.deploy;
    assert_eq!(deploy.get("batch").map(|v| v.label()).as_deref(), Some("true"));
    let mut keys: Vec<&str> = plan.settings.iter().map(|setting| setting.key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), plan.settings.len());
}

/// Claim: generators are added step by step, ten steps of ten seconds, as the published load did.
#[test]
fn generators_step_up() {
    let plan = planned("atomizer-steps", None, &["[[events]]", "plots"]).plan;
    let load = &plan.settings[0].load;
    let Arrivals::Open { schedule: Schedule::Steps { steps } } = &load.arrivals else {
        panic!("{:?}", load.arrivals)
    };
    assert_eq!(steps.len(), 10);
    assert_eq!(steps[0].rate, Rate::per_second(35_000));
    assert_eq!(steps[9].rate, Rate::per_second(350_000));
    assert_eq!(load.duration.as_secs(), 100);
    assert_eq!(outline(&plan).offered_max_per_s, Some(350_000.0));
}

/// Claim: a rate of one connection is multiplied by the setting's own connections, and a profile's lists take
/// the place of an axis's values.
#[test]
fn rate_per_connection_and_profile() {
    let without = ["drain", "[[metrics]]", "[[profile.rotating.fault]]"];
    let plan = planned("testnet-saturation", None, &without).plan;
    assert_eq!(plan.settings.len(), 12);
    let last = plan.settings.last().unwrap();
    assert_eq!(last.key, "c=4,r=200/s");
    assert!(matches!(
        last.load.arrivals,
        Arrivals::Open { schedule: Schedule::Constant { rate } } if rate == Rate::per_second(800)
    ));
    let plan = planned("testnet-saturation", Some("rotating"), &without).plan;
    assert_eq!(plan.settings.len(), 1);
    assert_eq!(plan.settings[0].key, "c=4,r=800/s");
    assert_eq!(plan.settings[0].load.duration.as_secs(), 600);
    assert_eq!(plan.profile, "rotating");
}

/// Claim: the outline says how long an experiment takes and how much it offers at most.
#[test]
fn outlines() {
    let outline = outline(&planned("k-latency", None, &[]).plan);
    assert_eq!((outline.settings.len(), outline.trials), (8, 8));
    assert_eq!(outline.offered_max_per_s, Some(2_000.0));
    assert_eq!(outline.wall_time.as_secs(), 8 * (30 + 600 + 2));
    assert_eq!(outline.wall_time_max.as_secs(), 8 * (30 + 600 + 2 + 30));
    // The rates' sum, over warm-up and window, and the probes.
    assert_eq!(outline.transactions, Some(4_610 * 630 + 8 * 250));
    assert_eq!(outline.settings[0].probe, "250 trials, inf over 30s");
    let closed = plan::outline(&planned("paxos-consensus", None, &[]).plan);
    assert_eq!((closed.offered_max_per_s, closed.transactions), (None, None));
    assert_eq!(closed.settings[0].load, "16 clients");
}

/// Claim: no experiment and no template of this repository holds anything that is taken for a secret, so that what is
/// stored of each is what was written.
#[test]
fn nothing_here_is_a_secret() {
    fn texts(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            // A list of stores names the variables that hold secrets, under keys that secrets have.
            if path.is_dir() && !path.ends_with("stores") {
                texts(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                found.push(path);
            }
        }
    }
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut found = vec![root.join("apps/assay/demo.toml")];
    texts(&root.join("experiments"), &mut found);
    texts(&root.join("apps/assay/templates"), &mut found);
    assert!(found.len() > 10, "only {found:?}");
    for path in found {
        let text = std::fs::read_to_string(&path).expect("it was found");
        assert_eq!(plan::redact(&text), text, "{}", path.display());
    }
}
