//! End-to-end tests: the built binary, started as a user starts it, a module for each thing that users meet. They are one
//! program, because each would link the whole instrument, and because only so can a test have the machine for itself
//! (`harness::alone`) while the others wait.
//!
//! `cargo test --release -p assay --test end_to_end crash::` runs one module.
#![allow(missing_docs, reason = "test code")]

mod agents;
mod atomizer;
mod audits;
mod batches;
mod before_the_load;
mod cometbft;
mod cometbft_report;
mod command_line;
mod compare;
mod connections;
mod control;
mod convert;
mod crash;
mod declared;
mod documents;
mod etcd;
mod eth_gateway;
mod ethereum;
mod exec;
mod expectations;
mod experiments;
mod flows;
mod folder;
mod followed;
mod formats;
mod freeze;
mod grpc;
mod harness;
mod hostile;
mod http2;
mod init;
mod kafka;
mod kv;
mod kv_broken;
mod lies;
mod matrix;
mod nats;
mod nginx;
mod node_events;
mod object_ledger;
mod pipelines;
mod postgres;
mod power;
mod programs;
mod reads;
mod redis;
mod resends;
mod search;
mod secrets;
mod store;
mod stumbles;
mod trusted;
mod watching;
mod websocket;

/// Claim: every file of this folder is a module of this program, so that none is forgotten.
#[test]
fn every_file_is_a_module() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("there is a folder of tests").flatten() {
        let path = entry.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if path.extension().is_some_and(|extension| extension == "rs") && stem != "main" {
            assert!(include_str!("main.rs").contains(&format!("\nmod {stem};\n")), "{stem}.rs");
            count += 1;
        }
    }
    assert!(count >= 15, "only {count} files were found");
}
