//! Limits that keep the README and the book's main path short, and README's two commands the ones that `.ci/run` runs.
//! It reads files and starts nothing.

use std::path::Path;

/// Longer than this, nobody reads a README to its end.
const README_LINES_MAX: usize = 120;
/// In characters: a wide terminal, or half a screen of a forge.
const README_LINE_MAX: usize = 160;
/// Words of the pages for somebody with a job to do: an hour of reading at 250 words a minute.
const MAIN_PATH_WORDS_MAX: usize = 15_000;
/// The heading in SUMMARY.md under which these pages are listed.
const MAIN_PATH: &str = "# A job to do";

/// Findings about README.md and the book's main path.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let read = |name: &str| {
        std::fs::read_to_string(root.join(name)).map_err(|error| format!("reading {name}: {error}"))
    };
    let mut findings = readme(&read("README.md")?, &read(".ci/run")?);
    let mut words = 0;
    for page in main_path(&read("docs/SUMMARY.md")?) {
        words += read(&format!("docs/{page}"))?.split_whitespace().count();
    }
    if words > MAIN_PATH_WORDS_MAX {
        findings.push(format!(
            "docs: the main path has {words} words, and {MAIN_PATH_WORDS_MAX} are allowed: move what is reference"
        ));
    }
    Ok(findings)
}

fn readme(text: &str, ci: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if lines > README_LINES_MAX {
        findings.push(format!("README.md: {lines} lines, and {README_LINES_MAX} are allowed"));
    }
    for (index, line) in text.lines().enumerate() {
        let length = line.chars().count();
        if length > README_LINE_MAX {
            let number = index + 1;
            findings.push(format!(
                "README.md:{number}: {length} characters, and {README_LINE_MAX} are allowed"
            ));
        }
    }
    let run: Vec<&str> = ci.lines().filter(|line| line.starts_with("cargo ")).collect();
    if commands(text) != run {
        findings.push(format!(
            "README.md: expected the commands of .ci/run in its first code block ({}), got {}",
            run.join("; "),
            commands(text).join("; ")
        ));
    }
    findings
}

/// Lines of the first code block, without their comments.
fn commands(text: &str) -> Vec<&str> {
    let block = text.split("```").nth(1).unwrap_or_default();
    let lines = block.lines().map(|line| line.split(" #").next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty()).collect()
}

/// Pages of the main path, in order, as SUMMARY.md names them.
fn main_path(summary: &str) -> Vec<&str> {
    let section = summary.lines().skip_while(|line| *line != MAIN_PATH).skip(1);
    let listed = section.take_while(|line| !line.starts_with("# "));
    listed.filter_map(|line| line.split("](").nth(1)?.strip_suffix(')')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a README that is too long, too wide or names other commands than CI runs is found; one that is none of these
    /// is not.
    #[test]
    fn readme_limits() {
        let ci = "set -e\ncargo a\ncargo b\n";
        let good = "# x\n```\ncargo a   # first\ncargo b\n```\n";
        assert_eq!(readme(good, ci), Vec::<String>::new());
        assert_eq!(readme(&good.replace("cargo b", "cargo c"), ci).len(), 1);
        let wide = format!("{good}{}\n", "ä".repeat(README_LINE_MAX + 1));
        assert_eq!(readme(&wide, ci), ["README.md:6: 161 characters, and 160 are allowed"]);
        let long = format!("{good}{}", "\n".repeat(README_LINES_MAX));
        assert_eq!(readme(&long, ci), ["README.md: 125 lines, and 120 are allowed"]);
    }

    /// Claim: the main path is the pages of its section, and of no other.
    #[test]
    fn main_path_is_one_section() {
        let summary = "[A](a.md)\n# A job to do\n\n- [B](b.md)\n  - [C](c/d.md)\n\n# Reference\n- [E](e.md)\n";
        assert_eq!(main_path(summary), ["b.md", "c/d.md"]);
    }

    /// Claim: this checkout keeps the limits.
    #[test]
    fn this_checkout_is_short() {
        let findings = check(&crate::workspace_root()).expect("the files can be read");
        assert!(findings.is_empty(), "{findings:#?}");
    }
}
