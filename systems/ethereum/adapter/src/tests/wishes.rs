//! What an experiment can ask for, and what it is told of mistakes.

use std::time::Duration;

use model::options::Value;

use super::{system, text};
use crate::node::Which;

/// Claim: what is asked for is had.
#[test]
fn what_is_asked_for() {
    let deploy = [
        ("node", text("geth")),
        ("block_time", text("2s")),
        ("confirmations", Value::Integer(3)),
        ("gas_limit", Value::Integer(60_000_000)),
        ("arguments", Value::Array(vec![])),
    ];
    let workload = [
        ("accounts", Value::Integer(10)),
        ("clients_per_account", Value::Integer(2)),
        ("reverting", text("1%")),
        ("fee_max_gwei", Value::Integer(50)),
    ];
    let system = system(&deploy, &workload).unwrap();
    assert_eq!(system.wish.which, Which::Geth);
    assert_eq!(system.wish.block_time, Some(Duration::from_secs(2)));
    assert_eq!((system.confirmations, system.wish.gas_limit), (3, 60_000_000));
    assert_eq!((system.course.clients(), system.course.reverting), (20, 10_000));
    assert_eq!((system.fee_max, system.tip), (50_000_000_000, 1_000_000_000));
}

/// Claim: each mistake is said, and what is wrong with it.
#[test]
fn mistakes() {
    let told = |deploy: &[_], workload: &[_]| system(deploy, workload).err().unwrap().join("; ");
    for (deploy, workload, words) in [
        (vec![("node", text("parity"))], vec![], "anvil"),
        (vec![("attach", text("somewhere"))], vec![], "not an address"),
        (vec![("attach", text("127.0.0.1:1")), ("node", text("geth"))], vec![], "its own settings"),
        (vec![("node", text("geth")), ("block_time", text("1500ms"))], vec![], "whole seconds"),
        (vec![("block_time", text("1ms"))], vec![], "at most every 10ms"),
        (vec![("funder", text("no-such-file"))], vec![], "no secret key"),
        (vec![], vec![("accounts", Value::Integer(0))], "accounts"),
        (vec![], vec![("account", Value::Integer(1))], "not a key"),
        (vec![], vec![("tip_gwei", Value::Integer(1 << 30))], "cannot be more"),
    ] {
        let said = told(&deploy, &workload);
        assert!(said.contains(words), "{said}");
    }
}
