//! The lines: what may come, and what is said.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::parts;
use crate::watch::Waits;

/// A question on the control channel.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Asked {
    Describe { versions: Vec<u32> },
    Deploy(Deploy),
    Ledger,
    Stop,
}

#[derive(Debug, Deserialize)]
pub(super) struct Deploy {
    pub(super) options: Options,
}

/// What an experiment may set.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {
    pub(super) ledger: PathBuf,
    #[serde(default)]
    pub(super) listen: Option<String>,
    #[serde(default = "hundred")]
    bucket_to_queue_ms: u64,
    #[serde(default = "hundred")]
    queue_to_cache_ms: u64,
    #[serde(default = "fifty")]
    omc_ms: u64,
    #[serde(default)]
    push: bool,
    #[serde(default = "half_a_minute")]
    pub(super) give_up_ms: u64,
}

const fn hundred() -> u64 {
    100
}

const fn fifty() -> u64 {
    50
}

const fn half_a_minute() -> u64 {
    30_000
}

impl Options {
    pub(super) const fn waits(&self) -> Waits {
        Waits {
            bucket_to_queue: Duration::from_millis(self.bucket_to_queue_ms),
            queue_to_cache: Duration::from_millis(self.queue_to_cache_ms),
            omc: Duration::from_millis(self.omc_ms),
            push: self.push,
        }
    }
}

/// A line on a load channel.
#[derive(Debug, Deserialize)]
pub(super) struct Submitted {
    #[serde(rename = "tx")]
    pub(super) transactions: Vec<Transaction>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Transaction {
    pub(super) id: u64,
    #[serde(default)]
    payload: String,
    /// The payload where it is no text.
    #[serde(default)]
    payload_base64: Option<String>,
}

impl Transaction {
    /// The payload's bytes.
    pub(super) fn bytes(self) -> Result<Vec<u8>, String> {
        match self.payload_base64 {
            None => Ok(self.payload.into_bytes()),
            Some(text) => crate::note::from_base64(&text)
                .ok_or_else(|| format!("payload_base64 of transaction {} is no base64", self.id)),
        }
    }
}

/// The ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Accepted,
    Durable,
    OnMainChain,
    Verified,
}

impl Stage {
    const ALL: [Self; 4] = [Self::Accepted, Self::Durable, Self::OnMainChain, Self::Verified];

    const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Durable => "durable",
            Self::OnMainChain => "on_main_chain",
            Self::Verified => "verified",
        }
    }
}

/// How a transaction ended that was not verified.
#[derive(Debug)]
pub(super) struct End {
    pub(super) class: &'static str,
    pub(super) text: String,
}

impl End {
    pub(super) fn line(&self, id: u64) -> Vec<u8> {
        line(&json!({"observed": [{"id": id, "ended": self.class, "text": self.text}]}))
    }
}

fn line(value: &serde_json::Value) -> Vec<u8> {
    let mut text = value.to_string().into_bytes();
    text.push(b'\n');
    text
}

pub(super) fn description(versions: &[u32]) -> Vec<u8> {
    if !versions.contains(&1) {
        return failed("this probe speaks version 1");
    }
    line(&json!({
        "did": "describe",
        "version": 1,
        "name": concat!("object-ledger ", env!("CARGO_PKG_VERSION")),
        "stages": Stage::ALL.map(Stage::name),
        "kinds": ["probe"],
        "steps": parts::NAMES,
        "ledger": false,
    }))
}

pub(super) fn did(what: &str) -> Vec<u8> {
    line(&json!({"did": what}))
}

pub(super) fn failed(why: &str) -> Vec<u8> {
    line(&json!({"failed": why}))
}

pub(super) mod entries {
    use super::{Stage, json, line, parts};

    /// That a transaction has reached a stage.
    pub(in super::super) fn reached(
        id: u64,
        stage: Stage,
        steps: Option<&[parts::Part]>,
    ) -> Vec<u8> {
        let mut observed = json!({"id": id, "reached": stage.name()});
        if let Some(steps) = steps {
            observed["steps"] = json!(steps);
        }
        line(&json!({"observed": [observed]}))
    }
}
