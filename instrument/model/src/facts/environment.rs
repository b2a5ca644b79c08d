//! The host, the tool and the command: `environment.json`.

use serde::{Deserialize, Serialize};

/// `environment.json`: the host, the tool and the command.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// `assay.environment/1`.
    pub schema: String,
    /// Assay's version and commit.
    pub assay: String,
    /// The command line, secrets redacted.
    pub command: Vec<String>,
    /// RFC 3339.
    pub started: String,
    /// Kernel release.
    pub kernel: String,
    /// Operating system.
    pub os: String,
    /// Processor model.
    pub cpu: String,
    /// Processors that this process may run on.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Scaling governor; empty = the host does not say.
    pub governor: String,
    /// Lowest and highest clock rate of the processors, MHz; zero = the host does not say.
    pub cpu_mhz: (f64, f64),
    /// The most open files (soft limit).
    pub files_max: u64,
    /// Local ports for outgoing connections.
    pub ports: u32,
    /// Clock source of the kernel.
    pub clock_source: String,
    /// One-minute load average before the run.
    pub load_average: f64,
    /// Whether the host is a virtual machine, in words; empty = no sign of it.
    pub virtualisation: String,
    /// Warnings, in words.
    pub warnings: Vec<String>,
}
