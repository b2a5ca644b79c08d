//! Each promise of SECURITY.md names a test, and there is such a test.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::walk;

/// The promises whose test there is not.
pub(super) fn check(root: &Path) -> Result<Vec<String>, String> {
    let text = fs::read_to_string(root.join("SECURITY.md"))
        .map_err(|error| format!("reading SECURITY.md: {error}"))?;
    let mut crates = BTreeMap::new();
    walk(root, &mut |path| {
        let read = || fs::read_to_string(path).unwrap_or_default();
        if path.ends_with("Cargo.toml")
            && let Some(name) = read().lines().find_map(|line| line.strip_prefix("name = \""))
        {
            let folder = path.parent().unwrap_or(root).to_owned();
            crates.insert(name.trim_end_matches('"').to_owned(), folder);
        }
    });
    Ok(promises(&text).filter_map(|(promise, cell)| missing(promise, cell, &crates)).collect())
}

/// Rows of the tables of promises, as promise and tests.
fn promises(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut is_in = false;
    text.lines().filter_map(move |line| {
        is_in = line == "| promise | test |" || is_in && line.starts_with('|');
        let (promise, tests) = line.trim_matches(['|', ' ']).rsplit_once(" | ")?;
        (is_in && promise != "promise" && !promise.starts_with("---")).then_some((promise, tests))
    })
}

fn missing(promise: &str, cell: &str, crates: &BTreeMap<String, PathBuf>) -> Option<String> {
    let start: String = promise.chars().take(50).collect();
    let named: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
    if named.is_empty() {
        return Some(format!("SECURITY.md: `{start}` names no test"));
    }
    let is_command = |test: &str| test.starts_with("cargo xtask ") || test.contains("cargo test ");
    named.into_iter().filter(|test| !is_command(test) && !test.ends_with('/')).find_map(|test| {
        let (name, wanted) = test.split_once(' ').unwrap_or((test, ""));
        let has = crates.get(name).is_some_and(|folder| has_test(folder, wanted));
        (!has).then(|| format!("SECURITY.md: expected a test `{test}` of `{start}`, got none"))
    })
}

/// Whether a crate has a test whose path has these words, or a program of tests of this name.
fn has_test(folder: &Path, wanted: &str) -> bool {
    let mut has = false;
    walk(folder, &mut |path| {
        let place = path.strip_prefix(folder).unwrap_or(path).with_extension("");
        let place = place.to_string_lossy().replace('/', "::");
        let text = fs::read_to_string(path).unwrap_or_default();
        has |= path.extension().is_some_and(|it| it == "rs")
            && (place == format!("tests::{wanted}")
                || tests(&text).any(|test| format!("{place}::{test}").contains(wanted)));
    });
    has
}

/// Names of the functions that follow `#[test]`.
fn tests(text: &str) -> impl Iterator<Item = &str> {
    text.split("#[test]").skip(1).filter_map(|after| {
        let (_, name) = after.split_once("fn ")?;
        name.split('(').next()
    })
}

#[cfg(test)]
mod tests_of_promises {
    use super::*;

    /// Claim: a promise without a test, with one that is not there, and with one of no crate are found; what stands is not.
    #[test]
    fn promises_have_tests() {
        let root = crate::workspace_root();
        assert_eq!(check(&root), Ok(Vec::new()));
        let crates = BTreeMap::from([("xtask".to_owned(), root.join("xtask"))]);
        let of = |cell: &str| missing("a promise", cell, &crates);
        assert_eq!(of("`xtask tidy::promises::promises_have_tests`"), None);
        assert!(of("`xtask no_such_\u{74}est`").is_some() && of("`ytask x`").is_some());
        assert!(of("by looking").is_some());
        let table = "| what | trust |\n| a | b |\n\n| promise | test |\n| --- | --- |\n| c | `d e` |\n\n| f | g |";
        assert_eq!(promises(table).collect::<Vec<_>>(), [("c", "`d e`")]);
    }
}
