//! Lock files: each is what its manifests ask for, and `assay` drags in neither an async runtime nor a library that brings
//! one, which belong to a node that is a program of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::supply::MANIFESTS;

/// Async runtimes, and the libraries that do not come without one.
const HEAVY: [&str; 7] = ["tokio", "hyper", "axum", "tonic", "object_store", "async-std", "smol"];

/// Lock files that cargo would change, each with the command that does.
pub(super) fn stale(root: &Path) -> impl Iterator<Item = String> {
    MANIFESTS.into_iter().filter(|manifest| !is_current(&root.join(manifest))).map(|manifest| {
        format!(
            "the lock file of {manifest} differs from its manifests; run: cargo metadata --format-version 1 --manifest-path {manifest}"
        )
    })
}

/// Whether cargo takes the lock file of a manifest as it is.
fn is_current(manifest: &Path) -> bool {
    Command::new("cargo")
        .args(["metadata", "--locked", "--format-version", "1", "--manifest-path"])
        .arg(manifest)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Heavy packages in the dependency tree of `assay`, each with the way to it.
pub(super) fn heavy(root: &Path) -> Result<Vec<String>, String> {
    let text = fs::read_to_string(root.join("Cargo.lock"))
        .map_err(|error| format!("reading Cargo.lock: {error}"))?;
    Ok(heavy_in(&dependencies(&text)?))
}

fn heavy_in(packages: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    let mut ways = vec![vec!["assay".to_owned()]];
    while let Some(way) = ways.pop() {
        let name = way.last().expect("a way begins somewhere");
        if HEAVY.contains(&name.as_str()) {
            findings.push(format!(
                "`assay` drags in `{name}` ({}): what needs it belongs to a node that is a program of its own",
                way.join(" → ")
            ));
            continue;
        }
        for used in packages.get(name).into_iter().flatten() {
            if seen.insert(used.clone()) {
                let mut longer = way.clone();
                longer.push(used.clone());
                ways.push(longer);
            }
        }
    }
    findings.sort();
    findings
}

/// Names by name; of a package in several versions all dependencies together, which finds rather too much than too little.
fn dependencies(text: &str) -> Result<BTreeMap<String, Vec<String>>, String> {
    let table: toml::Table =
        text.parse().map_err(|error| format!("parsing Cargo.lock: {error}"))?;
    let mut packages: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in table.get("package").and_then(|list| list.as_array()).into_iter().flatten() {
        let Some(name) = package.get("name").and_then(|name| name.as_str()) else { continue };
        let used = package.get("dependencies").and_then(|list| list.as_array());
        let used = used.into_iter().flatten().filter_map(|entry| entry.as_str());
        // `name`, or `name version` where there are several.
        let used = used.filter_map(|entry| entry.split(' ').next()).map(str::to_owned);
        packages.entry(name.to_owned()).or_default().extend(used);
    }
    Ok(packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: an async runtime is found wherever in the tree of `assay` it is, with the way to it, and none that only
    /// another program uses.
    #[test]
    fn runtimes_are_found() {
        let lock = |adapter: &str| {
            format!(
                "[[package]]\nname = \"assay\"\ndependencies = [\"kv-adapter\"]\n\
                 [[package]]\nname = \"kv-adapter\"\ndependencies = [{adapter}]\n\
                 [[package]]\nname = \"client\"\ndependencies = [\"tokio 1.2.3\"]\n\
                 [[package]]\nname = \"tokio\"\n\
                 [[package]]\nname = \"kv-node\"\ndependencies = [\"tokio 1.2.3\"]\n"
            )
        };
        let found = |adapter: &str| heavy_in(&dependencies(&lock(adapter)).unwrap());
        assert_eq!(found(""), Vec::<String>::new());
        let findings = found("\"client\"");
        assert_eq!(findings.len(), 1);
        assert!(
            findings[0].contains("`tokio` (assay → kv-adapter → client → tokio)"),
            "{findings:?}"
        );
    }
}
