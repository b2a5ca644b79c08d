//! `[links]` and `[[fault]]` in a plan, through all layers, and that plan.toml keeps them.

use std::time::Duration;

use model::plan::{FaultPlan, FaultValue, LinkPlan, Plan, Through};
use plan::{Input, Outside, Resolved, Source, resolve};

const LOAD: &str = "[system]\nkind = 'echo'\n[load]\nrate = '1/s'\nduration = '1m'\n";

fn resolved(rest: &str, profile: Option<&str>, sets: &[&str]) -> Resolved {
    let input = Input {
        file: Source { name: "my.toml".into(), text: format!("{LOAD}{rest}") },
        profile: profile.map(str::to_owned),
        sets: sets.iter().map(|set| (*set).to_owned()).collect(),
        outside: Outside { faults: testbed::fault_kinds(), ..Outside::default() },
        ..Input::default()
    };
    resolve(&input).unwrap_or_else(|rejected| panic!("{rejected}"))
}

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Claim: without `[links]` there is no network; an empty table makes one on which nothing happens.
#[test]
fn links_are_asked_for() {
    assert_eq!(resolved("", None, &[]).plan.settings[0].links, None);
    let plan = resolved("[links]\n", None, &[]).plan;
    let links = plan.settings[0].links.as_ref().expect("asked for");
    assert_eq!(links.through, Through::Switch);
    assert_eq!((links.between, links.client), (LinkPlan::default(), LinkPlan::default()));
}

/// Claim: a pair has what it does not say from `[links]`, or from `[links.client]` where the instrument is an end;
/// the client's links have nothing from `[links]`.
#[test]
fn pairs_inherit() {
    let plan = resolved(
        "[links]\nthrough = 'switch'\ndelay = '100ms'\njitter = '10ms'\nbandwidth = '100Mbit/s'\n\
         [links.client]\nloss = '0.1%'\n\
         [[links.pair]]\nfrom = 'node0'\nto = 'node*'\ndelay = '200ms'\nreorder = '1%'\n\
         [[links.pair]]\nfrom = 'client'\nto = 'node0'\nbandwidth = '10MB/s'\n",
        None,
        &[],
    );
    let links = plan.plan.settings[0].links.clone().expect("asked for");
    let between = links.link("node1", "node2");
    assert_eq!((between.delay, between.jitter, between.bandwidth), (ms(100), ms(10), 12_500_000));
    let pair = links.link("node0", "node2");
    assert_eq!((pair.delay, pair.jitter, pair.bandwidth), (ms(200), ms(10), 12_500_000));
    assert_eq!((pair.loss, pair.reorder), (0.0, 0.01));
    let of_client = links.link("node1", "client");
    assert_eq!(of_client, LinkPlan { loss: 0.001, ..LinkPlan::default() });
    let of_pair = links.link("client", "node0");
    assert_eq!((of_pair.loss, of_pair.bandwidth), (0.001, 10_000_000));
    let shown = |path: &str| {
        let effect = plan.effective.iter().find(|effect| effect.path == path);
        effect.map(|effect| (effect.value.as_str(), effect.origin.as_str()))
    };
    assert_eq!(shown("links.delay"), Some(("100ms", "my.toml:8")));
    assert_eq!(shown("links.loss"), Some(("0%", "default")));
    assert_eq!(shown("links.client.loss"), Some(("0.1%", "my.toml:12")));
    assert_eq!(shown("links.pair[0].jitter"), Some(("10ms", "default")));
    assert_eq!(shown("links.pair[1].bandwidth"), Some(("80Mbit/s", "my.toml:21")));
}

/// Claim: the matrix, a profile, `--set` and an include reach links as they reach the load.
#[test]
fn every_layer_reaches_links() {
    let delays = |resolved: Resolved| -> Vec<Duration> {
        let of = |links: &Option<model::plan::LinksPlan>| links.as_ref().map(|it| it.between.delay);
        resolved.plan.settings.iter().filter_map(|setting| of(&setting.links)).collect()
    };
    let matrix = "[matrix]\nd = { set = 'links.delay', values = ['0s', '50ms'] }\n\
                  [[include]]\nd = '100ms'\nset = { 'links.loss' = '1%' }\n\
                  [profile.far]\nlinks.delay = '300ms'\n";
    assert_eq!(delays(resolved(matrix, None, &[])), [ms(0), ms(50), ms(100)]);
    let profile = "[links]\ndelay = '1ms'\n[profile.far]\nlinks.delay = '300ms'\n";
    assert_eq!(delays(resolved(profile, Some("far"), &[])), [ms(300)]);
    assert_eq!(delays(resolved(profile, None, &["links.delay=7ms"])), [ms(7)]);
    assert_eq!(delays(resolved("", None, &["links.delay=7ms"])), [ms(7)]);
}

/// Claim: every kind of fault is read as written and is the same after plan.toml.
#[test]
fn every_fault_survives_its_file() {
    let plan = resolved(
        "[links]\n\
         [[fault]]\nat = '1s'\nfor = '1s'\npause = 'a'\n\
         [[fault]]\nat = '1s'\nkill = 'a*'\n\
         [[fault]]\nat = '1s'\nfor = '0s'\nrestart = 'a'\n\
         [[fault]]\nat = '1s'\nfor = '10m'\nrotate = 'full*'\ncycles = 2\n\
         [[fault]]\nat = '1s'\nfor = '20s'\npartition = ['a', 'b*']\none_way = 'in'\nclient = true\n\
         [[fault]]\nat = '1s'\nfor = '20s'\npartition = 'a'\n\
         [[fault]]\nat = '1s'\nfor = '20s'\n\
         link = { from = 'a', to = 'client', delay = '200ms', loss = '100%', bandwidth = '8bit/s' }\n",
        None,
        &[],
    )
    .plan;
    let second = Duration::from_secs(1);
    let fault =
        |kind: &str, on: &[&str], seconds| FaultPlan::new(kind, on, second, second * seconds);
    let partition =
        |on: &[&str], client| fault("partition", on, 20).with("client", FaultValue::Flag(client));
    assert_eq!(
        plan.settings[0].faults,
        [
            fault("pause", &["a"], 1),
            fault("kill", &["a*"], 0),
            fault("restart", &["a"], 0),
            fault("rotate", &["full*"], 600).with("cycles", FaultValue::Count(2)),
            partition(&["a", "b*"], true).with("one_way", FaultValue::Word("in".into())),
            partition(&["a"], false),
            fault("link", &["a", "client"], 20)
                .with("delay", FaultValue::Duration(ms(200)))
                .with("loss", FaultValue::Share(1.0))
                .with("bandwidth", FaultValue::Bandwidth(1)),
        ]
    );
    let written = toml::to_string(&plan).unwrap();
    let read: Plan = toml::from_str(&written).unwrap();
    assert_eq!(read.settings[0].faults, plan.settings[0].faults, "{written}");
    assert_eq!(read.settings[0].links, plan.settings[0].links, "{written}");
}
