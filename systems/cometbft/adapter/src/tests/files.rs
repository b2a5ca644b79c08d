//! A node's config.toml: changed where it is asked for and nowhere else.

use model::options::Value;

use crate::config_file::{Setting, changed, value_of};
use crate::testnet::known_peers;

const FILE: &str = r#"# top
moniker = "x"

[mempool]
# size = 1
size = 5000
keep-invalid-txs-in-cache = false

[consensus]
size = 1
timeout_commit = "1s"
"#;

/// Claim: a setting changes its own line only; the same key of another table, comments and order stay.
#[test]
fn one_line_is_changed() {
    let settings = [
        Setting::raw("mempool", "size", "7"),
        Setting::text("", "moniker", "a \"b\" \\\n"),
        Setting::of_value("consensus", "timeout_commit", &Value::String("2s".to_owned())).unwrap(),
        Setting::of_value("mempool", "keep-invalid-txs-in-cache", &Value::Boolean(true)).unwrap(),
    ];
    let expected = FILE
        .replace("\nsize = 5000", "\nsize = 7")
        .replace("moniker = \"x\"", "moniker = \"a \\\"b\\\" \\\\\\u000a\"")
        .replace("\"1s\"", "\"2s\"")
        .replace("cache = false", "cache = true");
    assert_eq!(changed(FILE, &settings).unwrap(), expected);
    assert_eq!(value_of(FILE, "consensus", "timeout_commit"), Some("1s"));
}

/// Claim: a setting that the file does not have is named, not added.
#[test]
fn an_unknown_setting_is_named() {
    for (table, key) in [("mempool", "sice"), ("rpc", "size"), ("", "size"), ("mempool", "# size")]
    {
        let setting = Setting::raw(table, key, "1");
        assert_eq!(changed(FILE, std::slice::from_ref(&setting)), Err(setting.path()));
    }
}

/// Claim: in a small network each knows all others and not itself; in a large one each knows four, and every
/// node can be reached from every other.
#[test]
fn who_knows_whom() {
    assert_eq!(known_peers("a,b,c,d", 2), "a,b,d");
    assert_eq!(known_peers("a", 0), "");
    let names: Vec<String> = (0..64).map(|n| format!("n{n}")).collect();
    let all = names.join(",");
    let (mut reached, mut todo) = (vec![false; 64], vec![0]);
    while let Some(at) = todo.pop() {
        let known = known_peers(&all, at);
        let known: Vec<usize> = known.split(',').map(|name| name[1..].parse().unwrap()).collect();
        assert_eq!(known.len(), 4);
        todo.extend(
            known.into_iter().filter(|other| !std::mem::replace(&mut reached[*other], true)),
        );
    }
    assert_eq!(reached, vec![true; 64]);
}
