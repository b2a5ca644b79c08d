//! Every experiment file of the repository is resolved, its adapter's options included.

use std::path::Path;

use crate::harness::{Place, beside_others};

/// Claim: `assay check` accepts every experiment file and every template as it stands.
#[test]
fn every_experiment_resolves() {
    let _machine = beside_others();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut count = 0;
    for system in std::fs::read_dir(&root).expect("there is a folder of experiments").flatten() {
        for file in std::fs::read_dir(system.path()).into_iter().flatten().flatten() {
            let path = file.path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                Place::new().assay(&["check", &path.display().to_string()]).expect_code(0);
                count += 1;
            }
        }
    }
    assert!(count >= 3, "only {count} experiments were found under {}", root.display());
}
