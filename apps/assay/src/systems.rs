//! The list of systems: one line each. This is all that the command line knows of them.

use std::process::ExitCode;

use sut::{Adapter, Check};

/// Every adapter, in alphabetical order.
pub const ADAPTERS: &[Adapter] = &[
    atomizer_adapter::ADAPTER,
    cometbft_adapter::ADAPTER,
    echo_adapter::ADAPTER,
    etcd_adapter::ADAPTER,
    eth_gateway_adapter::ADAPTER,
    ethereum_adapter::ADAPTER,
    exec_adapter::ADAPTER,
    grpc_adapter::ADAPTER,
    http_adapter::ADAPTER,
    kafka_adapter::ADAPTER,
    kv_adapter::ADAPTER,
    nats_adapter::ADAPTER,
    object_ledger_adapter::ADAPTER,
    postgres_adapter::ADAPTER,
    redis_adapter::ADAPTER,
    websocket_adapter::ADAPTER,
    // new-system: above this line
];

/// The adapter called `kind`.
pub fn adapter(kind: &str) -> Option<&'static Adapter> {
    ADAPTERS.iter().find(|adapter| adapter.kind == kind)
}

/// Runs a built-in system's node in this process (`assay serve …`).
pub fn serve(words: &[String]) -> ExitCode {
    let Some((kind, words)) = words.split_first() else {
        unreachable!("the command line requires a system");
    };
    if ["--help", "-h", "help"].contains(&kind.as_str()) {
        return help();
    }
    match adapter(kind).and_then(|adapter| adapter.serve) {
        Some(serve) => serve(words),
        None => {
            let built_in = ADAPTERS.iter().filter(|adapter| adapter.serve.is_some());
            let built_in: Vec<&str> = built_in.map(|adapter| adapter.kind).collect();
            eprintln!(
                "assay serve: there is no built-in system `{kind}`; there are: {}",
                built_in.join(", ")
            );
            ExitCode::from(2)
        }
    }
}

/// The systems that can be served, on standard output.
fn help() -> ExitCode {
    let mut text =
        "Run one of the built-in systems for real, on loopback, until it is stopped.\n\n\
                    Usage: assay serve SYSTEM [OPTIONS]\n\nSystems:\n"
            .to_owned();
    for adapter in ADAPTERS.iter().filter(|adapter| adapter.serve.is_some()) {
        text.push_str(&format!("  {:<12} {}\n", adapter.kind, adapter.summary));
    }
    text.push_str("\nOptions of one: assay serve SYSTEM --help\nExample:\n  assay serve echo --http 127.0.0.1:8080 --service 2ms\n");
    match crate::terminal::print(&text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// The checks that the system called `kind` brings.
pub fn checks(kind: &str) -> &'static [Check] {
    adapter(kind).map_or(&[], |adapter| adapter.checks)
}
