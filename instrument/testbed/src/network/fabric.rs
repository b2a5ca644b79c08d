//! The switch's state: devices, links, and the packets that wait for their time. One lock holds it all; the
//! switch's thread takes it for one turn at a time, and others only to add a device or to read the counters.
//!
//! Every packet is counted on exactly one link, or as not carried; none may vanish without a counter.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use clock::{Clock, Instant};
use model::Seed;
use model::seed::Rng;
use rustix::io::{Errno, read, write};

use super::device::PACKET_BYTES_MAX;
use super::link::{Fate, Link};
use super::table::Table;

/// The most bytes that wait for their time: a second of delay at 2 Gbit/s, which is what one processor carries.
/// What comes beyond it the emulator drops, and says so.
const HELD_BYTES_MAX: usize = 256 << 20;
/// Packets read from one device before the others have their turn: a quarter of a millisecond's work.
const READ_PACKETS_MAX: usize = 64;
/// Packets wait for others that are due soon after them for so long at most …
const PATIENCE_MAX: Duration = Duration::from_micros(250);
/// … and for this part of the smallest delay: one wake-up hands several over, and costs as much as handing over ten.
const PATIENCE_PER_DELAY: u64 = 500;
/// The first end's address; the others follow.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

/// The address of the end at a place.
pub(super) fn address(place: usize) -> Ipv4Addr {
    let place = u32::try_from(place).expect("places are bounded by the network");
    Ipv4Addr::from_bits(FIRST.to_bits() + place)
}

/// Where the end with this address is.
fn place(address: [u8; 4]) -> Option<usize> {
    let place = u32::from_be_bytes(address).checked_sub(FIRST.to_bits())?;
    usize::try_from(place).ok()
}

/// All that the switch holds.
#[derive(Debug)]
pub(super) struct Fabric {
    clock: Clock,
    table: Arc<Table>,
    /// The table's generation that the links follow.
    followed: u64,
    rng: Rng,
    ports: Vec<Port>,
    /// By source, then target; made with the first packet.
    links: Vec<Vec<Option<Box<Link>>>>,
    waiting: BinaryHeap<Reverse<Held>>,
    held_bytes: usize,
    /// Packets held so far; of two with one release time the earlier goes first.
    sequence: u64,
    /// Buffers of packets that have gone, to be used again.
    spare: Vec<Vec<u8>>,
    pub(super) not_carried: u64,
    /// The smallest delay but none that a link which carried something had.
    pub(super) delay_ns_min: u64,
    /// Why a device is read no more, in words; empty = all are.
    pub(super) failed: String,
    /// The switch's thread.
    pub(super) thread: Option<rustix::thread::Pid>,
}

#[derive(Debug)]
struct Port {
    tun: OwnedFd,
    /// When it was last found empty by reading it.
    emptied: Instant,
    /// Whether the last reading found it empty, and did not leave packets for the next turn.
    is_drained: bool,
}

/// A packet that waits. Ordered by time, then by arrival.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    release: Instant,
    sequence: u64,
    from: usize,
    to: usize,
    /// How long it may have waited in its device before it was read, nanoseconds.
    unseen_ns: u64,
    packet: Vec<u8>,
}

/// What the switch knows of the time before it read: see `Fabric::read`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wake {
    /// When it last looked at all devices: one that has something to be read now and had not then was empty.
    pub(super) looked: Instant,
    /// Whether it has slept since. Then it was woken by what it reads now.
    pub(super) has_slept: bool,
    /// For how long since then it could have run and was not let, nanoseconds.
    pub(super) kept_waiting_ns: u64,
}

impl Fabric {
    pub(super) fn new(clock: Clock, table: Arc<Table>, seed: Seed) -> Self {
        Self {
            clock,
            followed: table.generation(),
            // What a seed repeats is the row of draws; which packet each falls to is a matter of when they come.
            rng: seed.rng(),
            table,
            ports: Vec::new(),
            links: Vec::new(),
            waiting: BinaryHeap::new(),
            held_bytes: 0,
            sequence: 0,
            spare: Vec::new(),
            not_carried: 0,
            delay_ns_min: 0,
            failed: String::new(),
            thread: None,
        }
    }

    /// One more device. Gives its place.
    pub(super) fn add(&mut self, tun: OwnedFd) -> usize {
        self.ports.push(Port { tun, emptied: self.clock.now(), is_drained: true });
        self.links.push(Vec::new());
        self.ports.len() - 1
    }

    pub(super) fn tun(&self, place: usize) -> &OwnedFd {
        &self.ports[place].tun
    }

    /// Closes all devices and forgets what waits.
    pub(super) fn clear(&mut self) {
        self.ports.clear();
        self.waiting.clear();
    }

    /// Directed links that carried something: places of their ends, and what they did.
    pub(super) fn links(&self) -> impl Iterator<Item = (usize, usize, &Link)> {
        self.links.iter().enumerate().flat_map(|(from, row)| {
            let made = row.iter().enumerate();
            made.filter_map(move |(to, link)| Some((from, to, link.as_deref()?)))
        })
    }

    /// Brings the rules up to date.
    pub(super) fn follow(&mut self) {
        let generation = self.table.generation();
        if generation == self.followed {
            return;
        }
        self.followed = generation;
        for (from, row) in self.links.iter_mut().enumerate() {
            for (to, link) in row.iter_mut().enumerate() {
                if let Some(link) = link {
                    link.follow(self.table.rule(from, to));
                }
            }
        }
        let delays: Vec<u64> = self.links().map(|(_, _, link)| link.delay_ns()).collect();
        delays.into_iter().for_each(|ns| self.note_delay(ns));
    }

    /// When the thread is to wake up if nothing else wakes it: when the next packet has been due for as long as the
    /// shortest delay makes harmless. It counts as lateness like any other.
    pub(super) fn next(&self) -> Option<Instant> {
        let patience = Duration::from_nanos(self.delay_ns_min / PATIENCE_PER_DELAY);
        let first = self.waiting.peek();
        first.map(|Reverse(held)| held.release.plus(patience.min(PATIENCE_MAX)))
    }

    /// Hands over what is due.
    pub(super) fn release(&mut self) {
        while let Some(Reverse(first)) = self.waiting.peek() {
            let now = self.clock.now();
            if first.release > now {
                return;
            }
            let Some(Reverse(held)) = self.waiting.pop() else { return };
            let Held { release, from, to, unseen_ns, packet, .. } = held;
            self.held_bytes -= packet.len();
            let taken = self.write(to, &packet);
            let link = self.link(from, to);
            link.held -= 1;
            link.handed_over(taken, late_ns(now, release).saturating_add(unseen_ns));
            self.spare.push(packet);
        }
    }

    /// Reads a device until it is empty or others must have their turn. A packet may have waited in its device before
    /// the switch read it. If the switch was woken by it, it waited for as long as the machine kept the switch from
    /// running: that is known, and made up for. If the switch was busy, it waited at most since the device was last
    /// known to be empty: that is not known, and counted as lateness in full.
    ///
    /// Gives false if the device cannot be read any more.
    pub(super) fn read(&mut self, from: usize, wake: Wake, buffer: &mut [u8]) -> bool {
        let port = &self.ports[from];
        let empty = if port.is_drained { port.emptied.max(wake.looked) } else { port.emptied };
        let most = late_ns(self.clock.now(), empty);
        let (made_up, unseen_ns) = if wake.has_slept && port.is_drained {
            (wake.kept_waiting_ns.min(most), 0)
        } else {
            (0, most)
        };
        let made_up = Duration::from_nanos(made_up);
        let (mut is_readable, mut is_drained) = (true, false);
        for _ in 0..READ_PACKETS_MAX {
            match read(&self.ports[from].tun, &mut *buffer) {
                Ok(bytes) => {
                    let now = self.clock.now();
                    self.take(from, &buffer[..bytes], now.minus(made_up), unseen_ns);
                }
                Err(Errno::AGAIN) => {
                    is_drained = true;
                    break;
                }
                Err(Errno::INTR) => {}
                Err(error) => {
                    self.failed = format!("the device of end {from} cannot be read: {error}");
                    is_readable = false;
                    break;
                }
            }
        }
        let now = self.clock.now();
        let port = &mut self.ports[from];
        port.is_drained = is_drained;
        // What is left has come since the device was empty before, not since now.
        port.emptied = if is_drained { now } else { empty };
        is_readable
    }

    fn take(&mut self, from: usize, packet: &[u8], arrived: Instant, unseen_ns: u64) {
        let Some(to) = target(packet).filter(|to| *to < self.ports.len()) else {
            self.not_carried += 1;
            return;
        };
        self.make(from, to);
        let link = self.links[from][to].as_mut().expect("made above");
        let Fate::At(release) = link.admit(arrived, packet.len(), &mut self.rng) else { return };
        let is_first = link.held == 0;
        let now = self.clock.now();
        if release <= now && is_first {
            let taken = self.write(to, packet);
            let late = late_ns(now, release).saturating_add(unseen_ns);
            self.link(from, to).handed_over(taken, late);
        } else {
            self.hold(
                Held { release, sequence: 0, from, to, unseen_ns, packet: Vec::new() },
                packet,
            );
        }
    }

    fn hold(&mut self, mut held: Held, packet: &[u8]) {
        let link = self.links[held.from][held.to].as_mut().expect("it has admitted this");
        if self.held_bytes + packet.len() > HELD_BYTES_MAX {
            link.traffic.emulator_dropped += 1;
            return;
        }
        link.held += 1;
        self.held_bytes += packet.len();
        self.sequence += 1;
        held.sequence = self.sequence;
        held.packet = self.spare.pop().unwrap_or_default();
        held.packet.clear();
        held.packet.extend_from_slice(packet);
        self.waiting.push(Reverse(held));
    }

    /// Gives whether the device took it.
    fn write(&self, to: usize, packet: &[u8]) -> bool {
        loop {
            match write(&self.ports[to].tun, packet) {
                Err(Errno::INTR) => {}
                written => return written == Ok(packet.len()),
            }
        }
    }

    fn make(&mut self, from: usize, to: usize) {
        let row = &mut self.links[from];
        if row.len() <= to {
            row.resize_with(to + 1, || None);
        }
        if row[to].is_none() {
            let link = Link::new(self.table.rule(from, to));
            let delay_ns = link.delay_ns();
            row[to] = Some(Box::new(link));
            self.note_delay(delay_ns);
        }
    }

    fn link(&mut self, from: usize, to: usize) -> &mut Link {
        self.links[from][to].as_mut().expect("a packet that was taken has its link")
    }

    fn note_delay(&mut self, ns: u64) {
        if ns > 0 && (self.delay_ns_min == 0 || ns < self.delay_ns_min) {
            self.delay_ns_min = ns;
        }
    }
}

/// The place that an IPv4 packet is for.
fn target(packet: &[u8]) -> Option<usize> {
    let is_ipv4 = packet.len() >= 20 && packet[0] >> 4 == 4;
    let address = packet.get(16..20).filter(|_| is_ipv4)?;
    place(address.try_into().expect("four bytes"))
}

fn late_ns(now: Instant, due: Instant) -> u64 {
    u64::try_from(now.ns_since(due)).unwrap_or(0)
}

/// Room for the largest packet.
pub(super) fn buffer() -> Vec<u8> {
    vec![0; usize::from(PACKET_BYTES_MAX)]
}
