//! A node's config.toml: changed where it is asked for and nowhere else.

use model::options::Value;

use crate::config_file::{Setting, changed, value_of};

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
