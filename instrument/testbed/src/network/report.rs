//! What the switch did, as facts for the trial's record.

use std::fs;

use model::facts::{LinkFacts, LinkTraffic, NetworkFacts};

use super::fabric::Fabric;
use super::forwarders::Forwarders;
use super::link::Link;
use crate::lateness::Lateness;

/// Of a network of more nodes than this only the worst links are listed …
const NODES_LISTED_MAX: usize = 16;
/// … which are so many.
const WORST: usize = 64;

/// What the links did. `ends` are names by place, the instrument's first.
pub(super) fn facts<'a>(
    through: &str,
    ends: &[String],
    carried: impl Iterator<Item = (usize, usize, &'a Link)>,
) -> NetworkFacts {
    let mut total = LinkTraffic::default();
    let mut late = Lateness::new();
    let mut links = Vec::new();
    for (from, to, link) in carried {
        late.merge(&link.late);
        add(&mut total, &link.traffic);
        let traffic = of_link(link);
        let name = |place: usize| ends.get(place).cloned().unwrap_or_default();
        links.push(LinkFacts { from: name(from), to: name(to), traffic });
    }
    let carried = links.len();
    if ends.len() > NODES_LISTED_MAX + 1 {
        let badness = |link: &LinkFacts| (link.traffic.emulator_dropped, link.traffic.late_p99_ns);
        links.sort_by_key(|link| std::cmp::Reverse(badness(link)));
        links.truncate(WORST);
    }
    NetworkFacts {
        through: through.to_owned(),
        nodes: ends.iter().skip(1).cloned().collect(),
        total: with_lateness(total, &late),
        links_left_out: (carried - links.len()) as u64,
        links,
        ..NetworkFacts::default()
    }
}

/// With what the switch knows beside its links.
pub(super) fn of_switch(fabric: &Fabric, ends: &[String]) -> NetworkFacts {
    NetworkFacts {
        not_carried: fabric.not_carried,
        delay_ns_min: fabric.delay_ns_min,
        cpu_ns: cpu_ns(fabric),
        failed: fabric.failed.clone(),
        ..facts("switch", ends, fabric.links())
    }
}

/// With what forwarders know beside their links.
pub(super) fn of_forwarders(forwarders: &Forwarders, ends: &[String]) -> NetworkFacts {
    let (facts, delay_ns_min) = forwarders.links(|links| {
        let delays = links.iter().map(|(_, _, link)| link.delay_ns()).filter(|ns| *ns > 0);
        let delay_ns_min = delays.min().unwrap_or(0);
        let links = links.iter().map(|(from, to, link)| (*from, *to, &**link));
        (facts("forwarders", ends, links), delay_ns_min)
    });
    NetworkFacts { delay_ns_min, cpu_ns: forwarders.cpu_ns(), ..facts }
}

fn of_link(link: &Link) -> LinkTraffic {
    with_lateness(link.traffic.clone(), &link.late)
}

fn with_lateness(traffic: LinkTraffic, late: &Lateness) -> LinkTraffic {
    LinkTraffic {
        late_p50_ns: late.quantile(500),
        late_p99_ns: late.quantile(990),
        late_max_ns: late.most(),
        ..traffic
    }
}

fn add(total: &mut LinkTraffic, link: &LinkTraffic) {
    total.packets += link.packets;
    total.bytes += link.bytes;
    total.lost += link.lost;
    total.cut += link.cut;
    total.tail_dropped += link.tail_dropped;
    total.reordered += link.reordered;
    total.emulator_dropped += link.emulator_dropped;
}

/// What the switch's thread has used, nanoseconds; 0 before it runs, once it has ended, or where the kernel does not
/// say.
pub(super) fn cpu_ns(fabric: &Fabric) -> u64 {
    let Some(thread) = fabric.thread else { return 0 };
    let path = format!("/proc/self/task/{}/schedstat", thread.as_raw_nonzero());
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}
