//! Facts of the testbed's own network.

use serde::{Deserialize, Serialize};

/// The work of the testbed's own network on packets, and how exactly it kept the plan.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkFacts {
    /// `switch` or `forwarders`.
    pub through: String,
    /// Names of the nodes on it, in the order added.
    pub nodes: Vec<String>,
    /// All links together.
    pub total: LinkTraffic,
    /// Packets that devices of the network dropped before the emulator could read them. They are on no link, since
    /// nobody has read where they were going.
    pub device_dropped: u64,
    /// Packets that were for no end of the network, or not IPv4: without a receiver.
    pub not_carried: u64,
    /// The smallest delay that was asked of a link, other than none, nanoseconds; 0 = none asked for any.
    pub delay_ns_min: u64,
    /// Processor time of the emulator, nanoseconds.
    pub cpu_ns: u64,
    /// Why a part of the network ended before the trial did, in words; empty = none did.
    pub failed: String,
    /// Directed links that carried something. All of them, or of a large network the worst.
    pub links: Vec<LinkFacts>,
    /// Links that carried something and are not listed.
    pub links_left_out: u64,
}

/// One directed link.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkFacts {
    /// The sending end; `client` is the instrument.
    pub from: String,
    /// The receiving end.
    pub to: String,
    /// Packets that passed.
    pub traffic: LinkTraffic,
}

/// Packets of one link, or of all. With forwarders, pieces of a TCP stream.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkTraffic {
    /// Sent into the link.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: u64,
    /// Lost, as the plan asks.
    pub lost: u64,
    /// Lost because the link was cut.
    pub cut: u64,
    /// Dropped because the queue before a link of limited bandwidth was full, as in a router.
    pub tail_dropped: u64,
    /// Sent ahead of others, as the plan asks.
    pub reordered: u64,
    /// Dropped by the emulator itself, for want of memory or because the receiving device refused them.
    pub emulator_dropped: u64,
    /// How much later than asked packets were handed over, median, nanoseconds.
    pub late_p50_ns: u64,
    /// The same, p99.
    pub late_p99_ns: u64,
    /// The same, the most.
    pub late_max_ns: u64,
}
