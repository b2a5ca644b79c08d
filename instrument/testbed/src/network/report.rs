//! What the switch did, as facts for the trial's record.

use std::fs;

use model::facts::{LinkFacts, LinkTraffic, NetworkFacts};

use super::fabric::Fabric;
use super::lateness::Lateness;
use super::link::Link;

/// Of a network of more nodes than this only the worst links are listed …
const NODES_LISTED_MAX: usize = 16;
/// … which are so many.
const WORST: usize = 64;

/// `ends` are names by place, the instrument's first.
pub(super) fn facts(fabric: &Fabric, ends: &[String]) -> NetworkFacts {
    let mut total = LinkTraffic::default();
    let mut late = Lateness::new();
    let mut links = Vec::new();
    for (from, to, link) in fabric.links() {
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
        through: "switch".to_owned(),
        nodes: ends.iter().skip(1).cloned().collect(),
        total: with_lateness(total, &late),
        not_carried: fabric.not_carried,
        delay_ns_min: fabric.delay_ns_min,
        cpu_ns: cpu_ns(fabric),
        links_left_out: (carried - links.len()) as u64,
        links,
        failed: fabric.failed.clone(),
        ..NetworkFacts::default()
    }
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
