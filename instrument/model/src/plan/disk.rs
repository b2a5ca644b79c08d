//! The disks under nodes' folders, as planned: how large, how slow, what a cut of the power takes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::is_meant;
use crate::quantity::{duration_text, duration_text_option};

/// Which nodes get a disk of the testbed's own, and what it is like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisksPlan {
    /// Names of nodes, or beginnings with `*` after them.
    pub nodes: Vec<String>,
    /// The disk of each.
    pub disk: DiskPlan,
}

impl DisksPlan {
    /// Whether this node gets one.
    #[must_use]
    pub fn means(&self, node: &str) -> bool {
        self.nodes.iter().any(|pattern| is_meant(pattern, node))
    }
}

/// One disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskPlan {
    /// Bytes that it takes.
    pub size: u64,
    /// When a name (created, renamed, removed) is durable.
    pub names: NamesRule,
    /// Every fsync and fdatasync takes this much longer.
    #[serde(with = "duration_text")]
    pub sync_delay: Duration,
    /// Every read that reaches the disk.
    #[serde(with = "duration_text")]
    pub read_delay: Duration,
    /// Every write.
    #[serde(with = "duration_text")]
    pub write_delay: Duration,
}

/// When a name is durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NamesRule {
    /// As with ext4 and XFS: changes of names are written in the order made, all that came before with the first
    /// sync that needs one of them.
    #[default]
    Journal,
    /// As POSIX promises and no more: a name is durable when its folder was synced.
    Strict,
}

/// The writes that a cut of the power takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PowerLoss {
    /// All that was not synced.
    #[default]
    Drop,
    /// Some of it, sector by sector, as a disk that was writing.
    Tear,
}

/// A disk's temporary defect; a `None` leaves its key as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskChange {
    /// As in the plan of a disk.
    #[serde(with = "duration_text_option", skip_serializing_if = "Option::is_none")]
    pub sync_delay: Option<Duration>,
    /// As in the plan of a disk.
    #[serde(with = "duration_text_option", skip_serializing_if = "Option::is_none")]
    pub read_delay: Option<Duration>,
    /// As in the plan of a disk.
    #[serde(with = "duration_text_option", skip_serializing_if = "Option::is_none")]
    pub write_delay: Option<Duration>,
    /// It is full at so many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_at: Option<u64>,
    /// One in so many syncs fails (EIO); 1: each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_errors: Option<u64>,
    /// One in so many reads that reach the disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_errors: Option<u64>,
    /// One in so many writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_errors: Option<u64>,
}

impl DiskChange {
    /// Whether it changes nothing.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// This, and what it leaves open as in `base`.
    #[must_use]
    pub fn over(self, base: Self) -> Self {
        Self {
            sync_delay: self.sync_delay.or(base.sync_delay),
            read_delay: self.read_delay.or(base.read_delay),
            write_delay: self.write_delay.or(base.write_delay),
            full_at: self.full_at.or(base.full_at),
            sync_errors: self.sync_errors.or(base.sync_errors),
            read_errors: self.read_errors.or(base.read_errors),
            write_errors: self.write_errors.or(base.write_errors),
        }
    }
}
