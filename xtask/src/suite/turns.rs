//! Parts that guard what seldom breaks take turns: a run has the time for a few, and the commit draws which. A fresh clone
//! draws like any other checkout, and the next commit draws others; `cargo xtask test --all` runs all of them.

use std::path::Path;
use std::process::Command;

use super::stamps::digest;

/// The commit that draws; empty outside a repository.
pub fn commit(root: &Path) -> String {
    let said = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root).output();
    said.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned()).unwrap_or_default()
}

/// Names in the order that this commit draws.
pub fn in_order<'a>(commit: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_by_key(|name| (digest([commit.as_bytes(), name.as_bytes()]), *name));
    names
}

/// The parts that this commit draws, each a name with its seconds: the first of its order always, so that none is too long to
/// ever have a turn, and then each that still fits into the budget.
pub fn drawn<'a>(commit: &str, parts: &[(&'a str, u32)], budget_seconds: u32) -> Vec<&'a str> {
    let mut left = budget_seconds;
    let mut drawn = Vec::new();
    for name in in_order(commit, parts.iter().map(|(name, _)| *name)) {
        let seconds = parts.iter().find(|part| part.0 == name).map_or(0, |part| part.1);
        if drawn.is_empty() || seconds <= left {
            left = left.saturating_sub(seconds);
            drawn.push(name);
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: [(&str, u32); 5] = [("a", 60), ("b", 60), ("c", 60), ("long", 400), ("d", 30)];

    /// Claim: a commit always draws the same parts, within the budget unless the first is longer than it; over some commits
    /// each part has its turn.
    #[test]
    fn commits_draw() {
        let mut had = std::collections::BTreeMap::new();
        for number in 0..200 {
            let commit = format!("{number:040x}");
            let drawn = drawn(&commit, &PARTS, 150);
            assert_eq!(drawn, super::drawn(&commit, &PARTS, 150));
            let seconds = |name: &str| PARTS.iter().find(|part| part.0 == name).unwrap().1;
            let whole: u32 = drawn.iter().map(|name| seconds(name)).sum();
            assert!(drawn == ["long"] || whole <= 150, "{drawn:?}");
            for name in drawn {
                *had.entry(name).or_insert(0) += 1;
            }
        }
        assert_eq!(had.len(), PARTS.len(), "{had:?}");
        assert!(had.values().all(|times| *times >= 20), "{had:?}");
    }
}
