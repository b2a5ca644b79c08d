//! Constructions that STYLE.md advises against, counted in comments and Markdown. The counts stand in xtask/prose.toml and
//! may only fall: more is a finding, and fewer must be written down (`cargo xtask tidy --write`), so that they stay away.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::walk;

/// The file with the counts.
const KEPT: &str = "xtask/prose.toml";

/// Measurements are logs and are not reworded; licences and vendored texts are others' prose.
const NOT_OURS: [&str; 3] = ["results/", "web/vendor/", "web/dist/"];

/// A line that opens with one of these has no noun as its subject.
const OPENINGS: [&str; 5] = ["What ", "Whose ", "Of it", "Of whom", "Which is "];

/// A construction, by its name in the file, and how often a line of prose has it.
type Construction = (&'static str, fn(&str) -> usize);

const CONSTRUCTIONS: [Construction; 3] = [
    ("relative_openings", opens_with_a_relative),
    ("behind", |line| words(line, &["behind"])),
    ("nobody_somebody", |line| words(line, &["nobody", "somebody"])),
];

/// Compares the counts with those kept; with `write`, lower ones are written down.
pub(super) fn check(root: &Path, write: bool) -> Result<Vec<String>, String> {
    let path = root.join(KEPT);
    let text = fs::read_to_string(&path).map_err(|error| format!("reading {KEPT}: {error}"))?;
    let kept: toml::Table = text.parse().map_err(|error| format!("parsing {KEPT}: {error}"))?;
    let mut findings = Vec::new();
    let mut lower = text.clone();
    for (name, count) in counts(root)? {
        let before = kept.get(name).and_then(toml::Value::as_integer).unwrap_or(0);
        let count = i64::try_from(count).expect("lines of a checkout fit");
        match count.cmp(&before) {
            std::cmp::Ordering::Greater => findings.push(format!(
                "prose: expected at most {before} of `{name}` (see xtask/src/tidy/prose.rs), got {count}; reword the new ones"
            )),
            std::cmp::Ordering::Less if !write => findings.push(format!(
                "prose: {count} of `{name}`, fewer than the {before} in {KEPT}; write it down with `cargo xtask tidy --write`"
            )),
            std::cmp::Ordering::Less => {
                lower = lower.replace(&format!("{name} = {before}"), &format!("{name} = {count}"));
            }
            std::cmp::Ordering::Equal => {}
        }
    }
    if lower != text {
        fs::write(&path, lower).map_err(|error| format!("writing {KEPT}: {error}"))?;
    }
    Ok(findings)
}

/// Each construction's count over the checkout.
fn counts(root: &Path) -> Result<BTreeMap<&'static str, usize>, String> {
    let mut files = Vec::new();
    walk(root, &mut |path| {
        let shown = path.strip_prefix(root).unwrap_or(path).display().to_string();
        let is_prose = path.extension().is_some_and(|it| it == "rs" || it == "md");
        if is_prose && !NOT_OURS.iter().any(|folder| shown.starts_with(folder)) {
            files.push(path.to_path_buf());
        }
    });
    let mut counts: BTreeMap<_, _> = CONSTRUCTIONS.iter().map(|(name, _)| (*name, 0)).collect();
    for path in files {
        let text = fs::read_to_string(&path);
        let text = text.map_err(|error| format!("reading {}: {error}", path.display()))?;
        let is_code = path.extension().is_some_and(|it| it == "rs");
        for line in text.lines() {
            let Some(line) = prose(line, is_code) else { continue };
            for (name, count) in CONSTRUCTIONS {
                *counts.entry(name).or_default() += count(line);
            }
        }
    }
    Ok(counts)
}

/// The prose of a line: of Rust its doc comment or comment, of Markdown what follows bullets and headings.
fn prose(line: &str, is_code: bool) -> Option<&str> {
    if is_code {
        let (_, comment) = line.split_once("//")?;
        return Some(comment.trim_start_matches(['/', '!']).trim_start());
    }
    Some(line.trim_start_matches(['*', '-', '#', '>', '|', ' ']))
}

fn opens_with_a_relative(line: &str) -> usize {
    // A question is one, and opens so by right.
    let is_opened = OPENINGS.iter().any(|opening| line.starts_with(opening));
    usize::from(is_opened && !line.contains('?'))
}

/// How often whole words stand in a line, in any case.
fn words(line: &str, wanted: &[&str]) -> usize {
    let found = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    found.filter(|word| wanted.iter().any(|wanted| word.eq_ignore_ascii_case(wanted))).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: prose is found in comments and Markdown and not in code; each construction is counted there, and a question is
    /// left alone.
    #[test]
    fn constructions_are_counted() {
        assert_eq!(prose("    /// What it does.", true), Some("What it does."));
        assert_eq!(prose("let behind = 1;", true), None);
        assert_eq!(prose("* **Bold** text", false), Some("Bold** text"));
        assert_eq!(opens_with_a_relative("What it does."), 1);
        assert_eq!(opens_with_a_relative("What does it do?"), 0);
        assert_eq!(opens_with_a_relative("The name. What it does."), 0);
        assert_eq!(words("Nobody looks behind; left_behind is a name", &["behind"]), 1);
        assert_eq!(words("Nobody, somebody", &["nobody", "somebody"]), 2);
    }
}
