//! What an experiment can ask for, and how mistakes are named.

use model::options::Value;
use sut::{Role, System as _};

use super::{RUN_MARK, system, text, value};
use crate::answer::Method;
use crate::config_file::Setting;
use crate::testnet::free_subnet;

/// Claim: an experiment without any key gets four validators, `broadcast_tx_sync` and transactions of 1 KiB.
#[test]
fn defaults() {
    let system = system(&[], &[]).unwrap();
    let wish = system.start.as_ref().unwrap();
    assert_eq!((wish.manifest.nodes.len(), system.method), (4, Method::Sync));
    assert_eq!((wish.time_scale, wish.gogc, wish.serves_metrics), (1.0, None, true));
    assert_eq!(system.fidelity(), Vec::<String>::new());
    assert_eq!((system.transaction_bytes, system.in_flight_max), (1024, 65_536));
    assert_eq!((system.observers(), &system.observe), (1, &vec![0]));
    let session = system.session(Role::Submit, 0, "127.0.0.1:1".parse().unwrap());
    assert_eq!(session.in_flight_max(), 65_536);
}

/// Claim: with `commit` nothing is observed and one transaction is outstanding at a time.
#[test]
fn commit_waits_on_its_own_connection() {
    let system = system(&[("method", text("commit"))], &[]).unwrap();
    assert_eq!((system.observers(), system.in_flight_max), (0, 1));
}

/// Claim: nodes are watched by place or by name, also full nodes, and each by an observer of its own.
#[test]
fn several_are_watched() {
    let observe = Value::Array(vec![value(Value::Integer(0)), value(text("full0"))]);
    let deploy = [
        ("full_nodes", Value::Integer(2)),
        ("seeds", Value::Integer(1)),
        ("time_scale", Value::Integer(10)),
        ("observe", observe),
    ];
    let system = system(&deploy, &[]).unwrap();
    assert_eq!((system.observers(), &system.observe), (2, &vec![0, 4]));
    assert!(system.fidelity()[0].starts_with("time_scale = 10: consensus timeouts are 10 times"));
}

/// Claim: a network of 127.0.0.0/8 is taken only if all its ports are free, another is tried if one is not, and
/// when none is free that is said with the ports.
#[test]
fn ports_in_use_are_avoided() {
    let first = free_subnet(RUN_MARK, 3, |_| true).unwrap();
    let is_elsewhere = |place: (std::net::Ipv4Addr, u16)| {
        place != (std::net::Ipv4Addr::new(first[0], first[1], first[2], 3), 26660)
    };
    let second = free_subnet(RUN_MARK, 3, is_elsewhere).unwrap();
    assert!(first != second && first[0] == 127 && second[0] == 127);
    let error = free_subnet(RUN_MARK, 3, |(_, port)| port != 26657).unwrap_err().to_string();
    assert!(error.contains("ports 26656, 26657 and 26660 could not be bound on 3"), "{error}");
}

/// Claim: settings of a node's own file are taken as they are written, in their tables.
#[test]
fn settings_of_the_nodes() {
    let config = [
        ("config.mempool.size", Value::Integer(10_000)),
        ("config.consensus.timeout_commit", text("500ms")),
        ("config.log_level", text("info")),
    ];
    let system = system(&config, &[]).unwrap();
    let mut settings = system.start.unwrap().settings;
    settings.sort_by_key(Setting::path);
    let expected = [
        Setting::text("consensus", "timeout_commit", "500ms"),
        Setting::text("", "log_level", "info"),
        Setting::raw("mempool", "size", "10000"),
    ];
    assert_eq!(settings, expected);
}

/// Claim: every mistake is named by its key, and all at once.
#[test]
fn mistakes_are_named() {
    let node = || Value::Array(vec![value(text("127.0.0.1:26657"))]);
    let two = |place| Value::Array(vec![value(Value::Integer(place)), value(text("node1"))]);
    for (deploy, workload, words) in [
        (vec![("validators", Value::Integer(0))], vec![], "`system.deploy.validators` must lie"),
        (vec![("validatros", Value::Integer(4))], vec![], "validatros"),
        (vec![("method", text("fast"))], vec![], "method"),
        (
            vec![("observe", Value::Integer(4))],
            vec![],
            "`system.deploy.observe` must be places between 0 and 3",
        ),
        (vec![("observe", text("seed0"))], vec![], "`system.deploy.observe` must be places"),
        (vec![("observe", Value::Array(vec![]))], vec![], "names no node, and without one"),
        (vec![("observe", two(1))], vec![], "has node 1 twice"),
        (vec![("full_nodes", Value::Integer(197))], vec![], "are 201 nodes together"),
        (vec![("peers", Value::Integer(0))], vec![], "`system.deploy.peers` must lie"),
        (vec![("peers", Value::Integer(4))], vec![], "but in a network of 4 there are 3"),
        (
            vec![("peers", Value::Integer(2)), ("seeds", Value::Integer(1))],
            vec![],
            "and `seeds` that nodes find each other",
        ),
        (
            vec![("manifest", text("none.toml")), ("peers", Value::Integer(2))],
            vec![],
            "`peers` says what nodes there are or know",
        ),
        (vec![("attach", node()), ("peers", Value::Integer(2))], vec![], "`peers` says what is"),
        (vec![("time_scale", Value::Integer(0))], vec![], "`system.deploy.time_scale` must lie"),
        (vec![("gogc", Value::Integer(0))], vec![], "`system.deploy.gogc` must lie"),
        (vec![("manifest", text("none.toml"))], vec![], "the manifest /experiments/none.toml: "),
        (
            vec![("manifest", text("none.toml")), ("seeds", Value::Integer(1))],
            vec![],
            "and so does the manifest",
        ),
        (
            vec![("attach", Value::Array(vec![]))],
            vec![],
            "expected an address such as 127.0.0.1:26657",
        ),
        (
            vec![("attach", Value::Array(vec![value(text("x"))]))],
            vec![],
            "an address such as 127.0.0.1:26657, got `x`",
        ),
        (
            vec![("attach", node()), ("validators", Value::Integer(4))],
            vec![],
            "`validators` says what is started",
        ),
        (vec![("config.mempool.size", Value::Float(1.5))], vec![], "config.mempool.size"),
        (vec![], vec![("size", text("42B"))], "`workload.size` must lie between 43B"),
        (vec![], vec![("size", text("1MiB"))], "`workload.size` must lie"),
    ] {
        let problems = system(&deploy, &workload).map(|_| ()).unwrap_err();
        assert!(problems.iter().any(|problem| problem.contains(words)), "{words}: {problems:?}");
    }
    let both = system(&[("validators", Value::Integer(0))], &[("size", text("1B"))]);
    assert_eq!(both.map(|_| ()).unwrap_err().len(), 2);
}
