//! That nobody but a system knows its series: the names that adapters declare stand in no code of the instrument, the app
//! or the page's script. What they are is read from their declarations.

use std::path::{Path, PathBuf};
use std::{collections::BTreeSet, fs};

/// Where series are known by what was declared of them. Tests may name any.
const BLIND: [&str; 7] = [
    "instrument/analysis/src",
    "instrument/load/src",
    "instrument/model/src",
    "instrument/record/src",
    "instrument/report/src",
    "apps/assay/src",
    "web/src",
];

/// Every place in blind code that writes a declared name.
pub(super) fn check(root: &Path) -> Vec<String> {
    let mut adapters = Vec::new();
    super::walk(&root.join("systems"), &mut |path| adapters.push(path.to_path_buf()));
    let names: BTreeSet<String> = adapters
        .iter()
        .filter(|path| path.extension().is_some_and(|it| it == "rs"))
        .filter_map(|path| fs::read_to_string(path).ok())
        .filter(|text| text.contains("SeriesFacts"))
        .flat_map(|text| declared(&text))
        .collect();
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in BLIND {
        super::walk(&root.join(folder), &mut |path| files.push(path.to_path_buf()));
    }
    files.sort();
    let mut findings = Vec::new();
    for path in files {
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if let Ok(text) = fs::read_to_string(&path) {
            findings.extend(written(&shown, &text, &names));
        }
    }
    findings
}

/// Names that an adapter's file declares: `of("NAME", …)`.
fn declared(text: &str) -> BTreeSet<String> {
    let code = code_of(text);
    let calls = ["of(", "of_node("].map(|call| code.split(call).skip(1)).into_iter().flatten();
    let name =
        |rest: &str| rest.trim_start().strip_prefix('"')?.split('"').next().map(str::to_owned);
    // One word says nothing: `peers` or `served` may mean anything.
    calls.filter_map(name).filter(|name| name.contains('_')).collect()
}

/// Everything before the tests.
fn code_of(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod ").next().unwrap_or_default()
}

fn written(shown: &str, text: &str, names: &BTreeSet<String>) -> Vec<String> {
    if shown.contains("/tests") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, line) in code_of(text).lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let of_a_system =
            code.split('"').skip(1).step_by(2).find(|literal| names.contains(*literal));
        if let Some(name) = of_a_system {
            findings.push(format!(
                "{shown}:{}: `{name}` is a system's series; read what is declared of it",
                index + 1
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a name that an adapter declares is found in the instrument's code, and neither in its tests nor in comments.
    #[test]
    fn names_of_systems() {
        let adapter = "use model::series::SeriesFacts;\nlet a = of(\n    \"desk_slips\", \"slips\", Number);\nof(\"peers\", 1);";
        let names = declared(adapter);
        assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), ["desk_slips"]);
        let text = "//! x\nif name == \"desk_slips\" {}\n// \"desk_slips\"\n#[cfg(test)]\nmod tests { \"desk_slips\" }";
        assert_eq!(
            written("instrument/report/src/x.rs", text, &names),
            [
                "instrument/report/src/x.rs:2: `desk_slips` is a system's series; read what is declared of it"
            ]
        );
        assert!(written("instrument/report/src/x/tests.rs", text, &names).is_empty());
    }

    /// Claim: adapters of this checkout declare series, so that the rule has something to look for.
    #[test]
    fn there_are_names() {
        let root = crate::workspace_root();
        let text = fs::read_to_string(root.join("systems/cometbft/adapter/src/metrics.rs"));
        let names = declared(&text.expect("an adapter's declarations"));
        assert!(names.len() >= 15 && names.contains("mempool_transactions"), "{names:?}");
        assert_eq!(check(&root), Vec::<String>::new());
    }
}
