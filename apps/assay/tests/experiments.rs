//! Every experiment file of the repository is resolved, its adapter's options included, as it stands and at toy size.

use std::path::Path;

use crate::harness::{Place, beside_others};

/// The most seconds that an experiment declares at toy size, its settings' starts included.
const TOY_SECONDS_MAX: f64 = 30.0;

/// Claim: `assay check` accepts every experiment file as it stands and at toy size, where none declares more than half a
/// minute.
#[test]
fn every_experiment_resolves() {
    let _machine = beside_others();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut count = 0;
    for system in std::fs::read_dir(&root).expect("there is a folder of experiments").flatten() {
        for file in std::fs::read_dir(system.path()).into_iter().flatten().flatten() {
            let path = file.path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                let file = path.display().to_string();
                Place::new().assay(&["check", &file]).expect_code(0);
                let toy = Place::new().assay(&["check", &file, "--profile", "toy"]);
                let seconds = declared_s(toy.expect_code(0).stdout.as_str());
                assert!(seconds <= TOY_SECONDS_MAX, "{file}: {seconds} s at toy size");
                count += 1;
            }
        }
    }
    assert!(count >= 3, "only {count} experiments were found under {}", root.display());
}

/// The time in the first line of what `assay check` prints: `name · 4 settings · about 1m5s · …`.
fn declared_s(said: &str) -> f64 {
    let first = said.lines().next().unwrap_or_default();
    let about = first.split(" · ").find_map(|part| part.strip_prefix("about "));
    let text = about.unwrap_or_else(|| panic!("no time in `{first}`"));
    let (minutes, seconds) = text.split_once('m').unwrap_or(("0", text));
    let number =
        |text: &str| text.parse::<f64>().unwrap_or_else(|_| panic!("`{text}` in `{first}`"));
    let seconds = seconds.trim_end_matches('s');
    number(minutes) * 60.0 + if seconds.is_empty() { 0.0 } else { number(seconds) }
}
