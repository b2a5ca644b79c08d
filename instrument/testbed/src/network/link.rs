//! One directed link, as a value: given when a packet arrived and how long it is, it says when the packet is to be
//! handed over, or that it never is. It holds no packet, reads no clock and does no I/O.
//!
//! The order is that of a sender with a queue before a wire: cut and loss first, then the queue and the time that
//! the packet's bytes take at the link's bandwidth, then the delay and its jitter. Packets of a link do not
//! overtake each other, but for the share that is to be reordered, which goes at once.

use std::time::Duration;

use clock::Instant;
use model::facts::LinkTraffic;
use model::seed::Rng;

use super::table::Rule;
use crate::lateness::Lateness;

/// The queue before a link of limited bandwidth holds what the link sends in this time …
const QUEUE: Duration = Duration::from_millis(50);
/// … and this much besides, so that a slow link can hold a window of TCP: 64 packets of Ethernet's size.
const QUEUE_BYTES: u64 = 64 * 1_500;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is never handed over; it has been counted.
    Gone,
    /// To be handed over then.
    At(Instant),
}

/// What a link does, and what it has done.
#[derive(Debug)]
pub(crate) struct Link {
    rule: Rule,
    /// Before this no later packet is handed over.
    last: Instant,
    /// When the wire has sent what is in the queue.
    free: Instant,
    /// Packets that the fabric holds for it.
    pub(crate) held: u32,
    pub(crate) traffic: LinkTraffic,
    pub(crate) late: Lateness,
}

impl Link {
    pub(crate) fn new(rule: Rule) -> Self {
        Self {
            rule,
            last: Instant::ZERO,
            free: Instant::ZERO,
            held: 0,
            traffic: LinkTraffic::default(),
            late: Lateness::new(),
        }
    }

    pub(crate) const fn follow(&mut self, rule: Rule) {
        self.rule = rule;
    }

    /// The delay that is asked of it now, nanoseconds.
    pub(crate) fn delay_ns(&self) -> u64 {
        u64::try_from(self.rule.link.delay.as_nanos()).unwrap_or(u64::MAX)
    }

    /// A packet was given to the receiving device, so late; or the device refused it.
    pub(crate) fn handed_over(&mut self, is_taken: bool, late_ns: u64) {
        if is_taken {
            self.late.add(late_ns);
        } else {
            self.traffic.emulator_dropped += 1;
        }
    }

    pub(crate) fn admit(&mut self, arrived: Instant, bytes: usize, rng: &mut Rng) -> Fate {
        let bytes = bytes as u64;
        let asked = self.rule.link;
        self.traffic.packets += 1;
        self.traffic.bytes += bytes;
        if self.rule.is_cut {
            self.traffic.cut += 1;
            return Fate::Gone;
        }
        if asked.loss > 0.0 && rng.unit() < asked.loss {
            self.traffic.lost += 1;
            return Fate::Gone;
        }
        if asked.reorder > 0.0 && rng.unit() < asked.reorder {
            self.traffic.reordered += 1;
            return Fate::At(arrived);
        }
        let Some(left) = self.sent_whole(arrived, bytes, asked.bandwidth) else {
            self.traffic.tail_dropped += 1;
            return Fate::Gone;
        };
        let due = left.plus(jittered(asked.delay, asked.jitter, rng));
        self.last = self.last.max(due);
        Fate::At(self.last)
    }

    /// A piece of a stream: nothing of it is lost or overtakes, and whoever reads it asks first whether there is
    /// [`Link::room`]. Gives when it is to be handed over.
    pub(crate) fn carry(&mut self, arrived: Instant, bytes: usize, rng: &mut Rng) -> Instant {
        let bytes = bytes as u64;
        let asked = self.rule.link;
        self.traffic.packets += 1;
        self.traffic.bytes += bytes;
        self.send(arrived, bytes, asked.bandwidth);
        let left = if asked.bandwidth > 0 { self.free } else { arrived };
        self.last = self.last.max(left.plus(jittered(asked.delay, asked.jitter, rng)));
        self.last
    }

    /// How many bytes a stream should give it at once, a millisecond's; `None`: its queue is full.
    pub(crate) fn room(&self, now: Instant) -> Option<usize> {
        let bandwidth = self.rule.link.bandwidth;
        if bandwidth == 0 {
            return Some(usize::MAX);
        }
        let is_full = self.free.saturating_since(now) > QUEUE;
        (!is_full).then(|| usize::try_from(bandwidth / 1_000).unwrap_or(usize::MAX))
    }

    /// When the last byte has left the sender; `None`: the queue is full.
    fn sent_whole(&mut self, arrived: Instant, bytes: u64, bandwidth: u64) -> Option<Instant> {
        if bandwidth == 0 {
            return Some(arrived);
        }
        let waiting = self.free.saturating_since(arrived);
        if waiting > QUEUE + time_of(QUEUE_BYTES, bandwidth) {
            return None;
        }
        self.send(arrived, bytes, bandwidth);
        Some(self.free)
    }

    /// The wire is busy with these bytes, after those before them.
    fn send(&mut self, arrived: Instant, bytes: u64, bandwidth: u64) {
        if bandwidth > 0 {
            self.free = self.free.max(arrived).plus(time_of(bytes, bandwidth));
        }
    }
}

/// How long so many bytes take at so many bytes a second.
fn time_of(bytes: u64, bandwidth: u64) -> Duration {
    let ns = u128::from(bytes) * 1_000_000_000 / u128::from(bandwidth);
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// The delay, more or less by up to the jitter, evenly; never less than none.
fn jittered(delay: Duration, jitter: Duration, rng: &mut Rng) -> Duration {
    if jitter.is_zero() {
        return delay;
    }
    let width = u64::try_from(jitter.as_nanos()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4);
    let more = Duration::from_nanos(rng.below(2 * width + 1));
    (delay + more).saturating_sub(Duration::from_nanos(width))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clock::Instant;
    use model::Seed;
    use model::plan::LinkPlan;

    use super::{Fate, Link, QUEUE_BYTES};
    use crate::network::table::Rule;

    fn link(link: LinkPlan) -> Link {
        Link::new(Rule { link, is_cut: false })
    }

    const fn at_us(us: i64) -> Instant {
        Instant::from_ns(us * 1_000)
    }

    /// What becomes of packets of 1,000 bytes that arrive every `every_us`, in microseconds.
    fn carry(link: &mut Link, packets: i64, every_us: i64) -> Vec<Option<i64>> {
        let mut rng = Seed(7).split("links").rng();
        let fate = |n| match link.admit(at_us(n * every_us), 1_000, &mut rng) {
            Fate::Gone => None,
            Fate::At(at) => Some(at.as_ns() / 1_000),
        };
        (0..packets).map(fate).collect()
    }

    /// Claim: a delay is added exactly; with none and no limit, packets go when they arrive.
    #[test]
    fn delays() {
        assert_eq!(carry(&mut link(LinkPlan::default()), 2, 10), [Some(0), Some(10)]);
        let delay = Duration::from_millis(20);
        let mut late = link(LinkPlan { delay, ..LinkPlan::default() });
        assert_eq!(carry(&mut late, 2, 10), [Some(20_000), Some(20_010)]);
    }

    /// Claim: jitter stays within its bounds, uses them, and lets no packet overtake another.
    #[test]
    fn jitter_keeps_the_order() {
        let (delay, jitter) = (Duration::from_millis(10), Duration::from_millis(4));
        let mut link = link(LinkPlan { delay, jitter, ..LinkPlan::default() });
        let at: Vec<i64> = carry(&mut link, 5_000, 1_000).into_iter().flatten().collect();
        assert_eq!(at.len(), 5_000);
        assert!(at.is_sorted());
        let took: Vec<i64> = (0..).zip(&at).map(|(n, at)| at - n * 1_000).collect();
        let (least, most) = (took.iter().min().unwrap(), took.iter().max().unwrap());
        assert!((6_000..6_500).contains(least) && (13_500..=14_000).contains(most), "{took:?}");
    }

    /// Claim: at 1 MB/s packets of 1,000 bytes leave a millisecond apart, the delay behind it; what comes when
    /// 50 ms and 64 packets of 1,500 bytes wait is dropped at the tail, and nothing else is.
    #[test]
    fn bandwidth_and_its_queue() {
        let delay = Duration::from_millis(5);
        let mut link = link(LinkPlan { bandwidth: 1_000_000, delay, ..LinkPlan::default() });
        let at = carry(&mut link, 1_000, 0);
        assert_eq!(at[..3], [Some(6_000), Some(7_000), Some(8_000)]);
        let taken = at.iter().flatten().count();
        assert!(at[..taken].iter().all(Option::is_some), "the tail is dropped, not the head");
        let bound = 50 + usize::try_from(QUEUE_BYTES / 1_000).unwrap();
        assert!((bound..=bound + 1).contains(&taken), "{taken}");
        assert_eq!(link.traffic.tail_dropped, 1_000 - taken as u64);
        assert_eq!(link.traffic.packets, 1_000);
    }

    /// Claim: pieces of a stream take their time at the bandwidth and are never dropped; there is room until 50 ms wait.
    #[test]
    fn streams() {
        let delay = Duration::from_millis(5);
        let mut link = link(LinkPlan { bandwidth: 1_000_000, delay, ..LinkPlan::default() });
        let mut rng = Seed(1).rng();
        for piece in 1..=100 {
            let has_room = piece <= 51;
            assert_eq!(link.room(at_us(0)), has_room.then_some(1_000), "{piece}");
            assert_eq!(link.carry(at_us(0), 1_000, &mut rng), at_us(5_000 + piece * 1_000));
        }
        assert_eq!((link.traffic.packets, link.traffic.tail_dropped), (100, 0));
        assert_eq!(link.room(at_us(50_000)), Some(1_000));
    }

    /// Claim: a share of 10 % is lost, within five standard deviations; a share of 20 % goes at once, and only it
    /// overtakes.
    #[test]
    fn shares() {
        let mut lossy = link(LinkPlan { loss: 0.1, ..LinkPlan::default() });
        let gone = carry(&mut lossy, 10_000, 1).iter().filter(|fate| fate.is_none()).count();
        assert!((850..=1_150).contains(&gone), "{gone}");
        assert_eq!(lossy.traffic.lost, gone as u64);
        let delay = Duration::from_millis(1);
        let mut link = link(LinkPlan { reorder: 0.2, delay, ..LinkPlan::default() });
        let at: Vec<i64> = carry(&mut link, 10_000, 10).into_iter().flatten().collect();
        let took = |n: usize| at[n] - i64::try_from(n).unwrap() * 10;
        let at_once = (0..10_000).filter(|n| took(*n) == 0).count();
        assert!((1_800..=2_200).contains(&at_once), "{at_once}");
        assert!((0..10_000).all(|n| [0, 1_000].contains(&took(n))));
        assert_eq!(link.traffic.reordered, at_once as u64);
    }

    /// Claim: nothing passes a cut, and when it is joined again packets pass as before; a delay that is taken away
    /// lets later packets wait for those underway.
    #[test]
    fn cut_and_change() {
        let delay = Duration::from_millis(100);
        let rule = Rule { link: LinkPlan { delay, ..LinkPlan::default() }, is_cut: false };
        let mut rng = Seed(1).rng();
        let mut link = Link::new(Rule { is_cut: true, ..rule });
        assert_eq!(link.admit(at_us(0), 100, &mut rng), Fate::Gone);
        assert_eq!(link.traffic.cut, 1);
        link.follow(rule);
        assert_eq!(link.admit(at_us(10), 100, &mut rng), Fate::At(at_us(100_010)));
        link.follow(Rule::default());
        assert_eq!(link.admit(at_us(20), 100, &mut rng), Fate::At(at_us(100_010)));
        assert_eq!(link.admit(at_us(200_000), 100, &mut rng), Fate::At(at_us(200_000)));
    }
}
