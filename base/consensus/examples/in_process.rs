//! What a decision costs, without sockets and disks: three replicas in one thread, each wave of records durable at once.
//! `cargo run --release -p consensus --example in_process` prints nanoseconds of processor time a decision, for all three
//! replicas together: once with messages handed over as they are, once with every message and record written as bytes
//! and every message read again. Takes some seconds; `-- toy` a moment.

use std::collections::VecDeque;
use std::time::Duration;

use clock::{CpuTime, Instant};
use consensus::{Config, Effect, Effects, Input, Members, Message, Replica, ReplicaId, Value};

struct Group {
    replicas: Vec<Replica>,
    wire: VecDeque<(usize, ReplicaId, Message)>,
    out: Effects,
    /// Records that each has appended, and how many of them are durable.
    appended: [u64; 3],
    persisted: [u64; 3],
    decided: u64,
    as_bytes: bool,
    buffer: Vec<u8>,
    now: Instant,
}

impl Group {
    fn led(window: u64, as_bytes: bool) -> Self {
        let ids = [ReplicaId(0), ReplicaId(1), ReplicaId(2)];
        let members = Members::new(&ids).expect("three of them");
        let replica = |id| {
            let mut config = Config::new(id, members.clone());
            config.window_max = window;
            config.snapshot_after_bytes = 16 << 20;
            config.retain_bytes = 1 << 20;
            Replica::new(config)
        };
        let mut group = Self {
            replicas: ids.map(replica).into(),
            wire: VecDeque::new(),
            out: Effects::default(),
            appended: [0; 3],
            persisted: [0; 3],
            decided: 0,
            as_bytes,
            buffer: Vec::new(),
            now: Instant::ZERO,
        };
        for replica in 0..3 {
            group.step(replica, Input::Wake);
        }
        group.now = group.now.plus(Duration::from_secs(5));
        group.step(0, Input::Wake);
        group.settle();
        assert!(group.replicas[0].is_leader());
        group
    }

    fn step(&mut self, at: usize, input: Input) {
        let mut is_wanted = false;
        self.replicas[at].step(self.now, input, &mut self.out);
        for effect in self.out.drain() {
            match effect {
                Effect::Send { to, message } => self.wire.push_back((at, to, message)),
                Effect::Append { record, .. } => {
                    self.appended[at] += 1;
                    if self.as_bytes {
                        self.buffer.clear();
                        record.encode(&mut self.buffer);
                        std::hint::black_box(&self.buffer);
                    }
                }
                Effect::Deliver { proposal: Some(_), .. } => self.decided += 1,
                Effect::NeedSnapshot => is_wanted = true,
                _ => {}
            }
        }
        if is_wanted {
            let through = self.replicas[at].delivered();
            self.step(at, Input::SnapshotMade { through });
        }
    }

    /// Lets all messages arrive; when none is left, all that was appended is durable; and so on until nothing moves.
    fn settle(&mut self) {
        loop {
            while let Some((from, to, message)) = self.wire.pop_front() {
                let message = if self.as_bytes {
                    self.buffer.clear();
                    message.encode(&mut self.buffer);
                    Message::decode(&self.buffer).expect("what was written is read")
                } else {
                    message
                };
                let from = self.replicas[from].id();
                self.step(to.0.into(), Input::Received { from, message });
            }
            for at in 0..3 {
                if self.persisted[at] < self.appended[at] {
                    self.persisted[at] = self.appended[at];
                    self.step(at, Input::Persisted { through: self.appended[at] });
                }
            }
            if self.wire.is_empty() && self.persisted == self.appended {
                return;
            }
        }
    }
}

/// Nanoseconds a decision.
pub fn measure(window: u64, bytes: usize, as_bytes: bool, decisions: u64) -> u128 {
    let mut group = Group::led(window, as_bytes);
    let value: Value = Value::from(vec![7; bytes]);
    let before = CpuTime::of_this_thread();
    let mut id = 0;
    while group.decided < decisions {
        for _ in 0..window {
            id += 1;
            group.step(0, Input::Propose { id, value: value.clone() });
        }
        group.settle();
    }
    let took = CpuTime::of_this_thread().since(before);
    assert_eq!(group.decided, id, "everything that was proposed is chosen");
    took.as_nanos() / u128::from(group.decided)
}

fn main() {
    let is_toy = std::env::args().any(|argument| argument == "toy");
    let decisions = if is_toy { 2_000 } else { 1_000_000 };
    for bytes in [16, 1024] {
        for window in [1, 16, 256] {
            let shared = measure(window, bytes, false, decisions);
            let written = measure(window, bytes, true, decisions);
            println!(
                "values of {bytes} bytes, window {window}: {shared} ns a decision, \
                 {written} ns with bytes written and read"
            );
        }
    }
}
