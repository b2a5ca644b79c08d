//! The list of everything that is in the program (CycloneDX 1.5), from what cargo resolved for its target; and what the program
//! was built from.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::{Value, json};

use super::{Made, Release, said};

/// Writes the list. Only crates that end up in the program are in it: those of tests and of the build are not.
pub fn write(release: &Release<'_>) -> Result<Made, String> {
    let words =
        ["metadata", "--format-version=1", "--locked", "--filter-platform", &release.target];
    let text = said(Command::new("cargo").args(words).current_dir(release.root))?;
    let metadata: Value =
        serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    let sums = checksums(release)?;
    let components = components(&metadata, &sums)?;
    let count = components.len();
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application", "name": "assay", "version": release.version,
            "licenses": [{ "expression": "Apache-2.0" }],
            "properties": [{ "name": "commit", "value": release.commit }, { "name": "target", "value": release.target }],
        } },
        "components": components,
    });
    let name = format!("assay-{}.cdx.json", release.version);
    let path = release.folder.join(&name);
    std::fs::write(&path, format!("{document:#}\n"))
        .map_err(|error| format!("writing {}: {error}", path.display()))?;
    println!("{name}: {count} crates in the program");
    Ok(Made::File(name))
}

/// The origin of the program: commit, compiler, target, flags, and the lock file's digest.
pub fn provenance(release: &Release<'_>, flags: &str) -> Result<String, String> {
    let lock = said(Command::new("sha256sum").arg("Cargo.lock").current_dir(release.root))?;
    let date =
        said(Command::new("git").args(["log", "-1", "--format=%cI"]).current_dir(release.root))?;
    let document = json!({
        "version": release.version,
        "commit": release.commit,
        "commit_date": date,
        "target": release.target,
        "rustflags": flags,
        "rustc": said(Command::new("rustc").arg("-vV"))?,
        "cargo": said(Command::new("cargo").arg("-V"))?,
        "cargo_lock_sha256": lock.split_whitespace().next().unwrap_or_default(),
        "command": "cargo xtask dist",
    });
    Ok(format!("{document:#}\n"))
}

/// Checksums of Cargo.lock by name and version.
fn checksums(release: &Release<'_>) -> Result<BTreeMap<(String, String), String>, String> {
    let path = release.root.join("Cargo.lock");
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("reading {}: {error}", path.display()))?;
    let lock: toml::Table = text.parse().map_err(|error| format!("{}: {error}", path.display()))?;
    let packages = lock.get("package").and_then(|it| it.as_array()).into_iter().flatten();
    let text = |package: &toml::Value, key: &str| {
        package.get(key).and_then(|it| it.as_str()).unwrap_or_default().to_owned()
    };
    Ok(packages.map(|it| ((text(it, "name"), text(it, "version")), text(it, "checksum"))).collect())
}

fn components(
    metadata: &Value,
    sums: &BTreeMap<(String, String), String>,
) -> Result<Vec<Value>, String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let nodes: BTreeMap<String, Value> = list(&metadata["resolve"]["nodes"])
        .into_iter()
        .map(|node| (node["id"].as_str().unwrap_or_default().to_owned(), node))
        .collect();
    let packages: BTreeMap<String, Value> = list(&metadata["packages"])
        .into_iter()
        .map(|package| (package["id"].as_str().unwrap_or_default().to_owned(), package))
        .collect();
    let first = packages
        .iter()
        .find(|(_, package)| package["name"] == "assay")
        .ok_or("cargo knows no package `assay`")?
        .0;
    let mut seen = BTreeSet::from([first.clone()]);
    let mut left = vec![first.clone()];
    while let Some(id) = left.pop() {
        let Some(node) = nodes.get(&id) else { continue };
        for dependency in list(&node["deps"]) {
            // Dependencies of the build and of tests are not in the program.
            let is_in = list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
            let to = dependency["pkg"].as_str().unwrap_or_default().to_owned();
            if is_in && seen.insert(to.clone()) {
                left.push(to);
            }
        }
    }
    let of = |package: &Value| {
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        let (name, version) = (text("name"), text("version"));
        let is_ours = package["source"].is_null();
        let mut component = json!({
            "type": "library", "name": name, "version": version,
            "licenses": [{ "expression": text("license").replace('/', " OR ") }],
        });
        if !is_ours {
            component["purl"] = json!(format!("pkg:cargo/{name}@{version}"));
        }
        if let Some(sum) = sums.get(&(name, version)).filter(|sum| !sum.is_empty()) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        component
    };
    Ok(packages
        .iter()
        .filter(|(id, _)| seen.contains(*id) && *id != first)
        .map(|(_, it)| of(it))
        .collect())
}
