//! The key-value database as users meet it.

use std::path::Path;

use crate::harness::{Place, beside_others, number};

/// Claim: with every workload, size and number of clients of the experiment each acknowledged transaction stands once in
/// the ledger, and what left together left as batches.
#[test]
fn batches_are_executed_once() {
    let _beside = beside_others();
    let place = Place::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/kv/batching.toml");
    let file = file.display().to_string();
    let quietly = ["--profile=toy", "--json", "--progress=none", "--no-calibration"];
    let document = place.assay(&[&["run", file.as_str()], &quietly[..]].concat()).json();
    let settings = document["settings"].as_array().into_iter().flatten();
    let mut count = 0;
    for setting in settings {
        let trial = &setting["trials"][0];
        let (key, fates) = (&setting["key"], &trial["fates"]);
        for fate in ["lost", "duplicate", "phantom", "refused_yet_present", "reordered"] {
            assert_eq!(number(&fates[fate]), 0, "{key}: {fate}: {fates}");
        }
        assert!(number(&fates["once"]) > 100, "{key}: {fates}");
        count += 1;
    }
    assert_eq!(count, 6);
}
