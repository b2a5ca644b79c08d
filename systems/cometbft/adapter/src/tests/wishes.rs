//! What an experiment can ask for, and how mistakes are named.

use model::options::Value;
use sut::{Role, System as _};

use super::{system, text, value};
use crate::answer::Method;
use crate::config_file::Setting;

/// Claim: an experiment without any key gets four validators, `broadcast_tx_sync` and transactions of 1 KiB.
#[test]
fn defaults() {
    let system = system(&[], &[]).unwrap();
    assert_eq!((system.validators, system.method), (4, Method::Sync));
    assert_eq!((system.transaction_bytes, system.in_flight_max), (1024, 65_536));
    assert_eq!((system.observers(), system.observe), (1, 0));
    let session = system.session(Role::Submit, 0, "127.0.0.1:1".parse().unwrap());
    assert_eq!(session.in_flight_max(), 65_536);
}

/// Claim: with `commit` nothing is observed and one transaction is outstanding at a time.
#[test]
fn commit_waits_on_its_own_connection() {
    let system = system(&[("method", text("commit"))], &[]).unwrap();
    assert_eq!((system.observers(), system.in_flight_max), (0, 1));
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
    let mut settings = system.settings;
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
    for (deploy, workload, words) in [
        (vec![("validators", Value::Integer(0))], vec![], "`system.deploy.validators` must lie"),
        (vec![("validatros", Value::Integer(4))], vec![], "validatros"),
        (vec![("method", text("fast"))], vec![], "method"),
        (vec![("observe", Value::Integer(4))], vec![], "`system.deploy.observe` must lie"),
        (vec![("attach", Value::Array(vec![]))], vec![], "`attach` names no node"),
        (vec![("attach", Value::Array(vec![value(text("x"))]))], vec![], "`x` is not an address"),
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
