//! What the testbed samples itself, of the host and of processes: declared as adapters declare theirs.
//!
//! It must name every series that the sampler can give; a test looks.

use model::series::{SeriesFacts, SeriesUnit};

/// A series, whose it is (the host's, this process's, a node's), and whether every reader looks at it.
struct Own {
    name: &'static str,
    label: &'static str,
    unit: fn() -> SeriesUnit,
    of: &'static [Of],
    is_foremost: bool,
    adds_up: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Host,
    Generator,
    Node,
}

use Of::{Generator, Host, Node};

/// In the order in which a reader asks "was it the tool?": its processor, what the host was deprived of, what waited for a
/// processor, memory.
const OWN: [Own; 11] = [
    own("cpu_cores", "processor", || SeriesUnit::of("cores"), &[Generator, Host, Node]).adding_up(),
    own("steal_share", "share stolen by the hypervisor", || SeriesUnit::Share, &[Host]),
    own("steal_cores", "cores stolen by the hypervisor", || SeriesUnit::of("cores"), &[Host]),
    own("run_queue", "run queue", || SeriesUnit::of("threads"), &[Host]),
    own("memory_available_bytes", "memory available", || SeriesUnit::Bytes, &[Host]),
    own("rss_bytes", "memory in use", || SeriesUnit::Bytes, &[Generator, Node]).adding_up(),
    own("load1", "load average, one minute", || SeriesUnit::Number, &[Host]),
    own("cpu_mhz", "processor clock", || SeriesUnit::of("MHz"), &[Host]),
    own("threads", "threads", || SeriesUnit::Number, &[Generator]).aside(),
    own("tcp_retransmits_per_second", "TCP retransmits", || SeriesUnit::PerSecond, &[Host]).aside(),
    own("listen_drops_per_second", "listen drops", || SeriesUnit::PerSecond, &[Host]).aside(),
];

const fn own(
    name: &'static str,
    label: &'static str,
    unit: fn() -> SeriesUnit,
    of: &'static [Of],
) -> Own {
    Own { name, label, unit, of, is_foremost: true, adds_up: false }
}

impl Own {
    const fn adding_up(self) -> Self {
        Self { adds_up: true, ..self }
    }

    const fn aside(self) -> Self {
        Self { is_foremost: false, ..self }
    }

    fn facts(&self) -> SeriesFacts {
        let mut facts = SeriesFacts::of_host(self.name, self.label, (self.unit)());
        facts.is_foremost = self.is_foremost;
        if self.adds_up { facts.adding_up() } else { facts }
    }
}

/// The series that the testbed samples itself, in the order in which they are shown.
#[must_use]
pub fn own_series() -> Vec<SeriesFacts> {
    OWN.iter().map(Own::facts).collect()
}

/// The sources whose series are all known before a run, and the names of these.
#[must_use]
pub fn known_sources() -> Vec<(&'static str, Vec<&'static str>)> {
    [("generator", Generator), ("host", Host)]
        .map(|(source, of)| {
            (source, OWN.iter().filter(|it| it.of.contains(&of)).map(|it| it.name).collect())
        })
        .to_vec()
}

/// Whether a node may have it from the sampler.
#[cfg(test)]
pub(crate) fn is_of_a_node(name: &str) -> bool {
    OWN.iter().any(|it| it.name == name && it.of.contains(&Node))
}
