//! One sender that keeps so many transactions outstanding, and those who follow blocks and errors.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use atomizer_node::protocol::block::{Part, Stream};
use atomizer_node::protocol::errors::read_errors;
use atomizer_node::protocol::request::{HEIGHT_AT, write_notify};
use atomizer_node::protocol::transaction::Transaction;
use atomizer_node::protocol::{Hash, next_frame};
use clock::{Clock, Instant};

/// Transactions written at a time.
const BATCH: u64 = 256;

/// What all share.
pub struct Shared {
    pub clock: Clock,
    pub sent: AtomicU64,
    pub done: AtomicU64,
    pub discarded: AtomicU64,
    pub height: AtomicU64,
    pub stops: AtomicBool,
    pub outstanding: AtomicU64,
    /// When the last block had come.
    pub block_at_ns: AtomicU64,
    /// What was seen, where that is kept.
    pub seen: Option<Mutex<Seen>>,
}

/// What was seen in blocks.
#[derive(Default)]
pub struct Seen {
    /// By number: whether it is in a block.
    pub numbers: Vec<bool>,
    /// By height: how many transactions, and what their names come to.
    pub blocks: BTreeMap<u64, (u64, u64)>,
    pub wrong: Vec<String>,
}

impl Shared {
    pub fn new(clock: Clock, outstanding: u64, keeps: bool) -> Self {
        Self {
            clock,
            sent: AtomicU64::new(0),
            done: AtomicU64::new(0),
            discarded: AtomicU64::new(0),
            height: AtomicU64::new(0),
            stops: AtomicBool::new(false),
            outstanding: AtomicU64::new(outstanding),
            block_at_ns: AtomicU64::new(0),
            seen: keeps.then(Mutex::default),
        }
    }

    fn stops(&self) -> bool {
        self.stops.load(Ordering::Relaxed)
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.clock.now().ns_since(Instant::ZERO)).unwrap_or(0)
    }
}

fn name(kind: u8, number: u64) -> Hash {
    let mut name = [kind; 32];
    name[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    name[8..16].copy_from_slice(&number.to_le_bytes());
    name
}

/// The number of a transaction.
pub fn number_of(id: &Hash) -> u64 {
    u64::from_le_bytes(*id[8..].first_chunk().expect("eight bytes"))
}

/// What a transaction's name adds to a block's.
pub fn mix(sum: u64, id: &Hash) -> u64 {
    (sum ^ number_of(id)).wrapping_mul(0x100_0000_01b3)
}

fn write(out: &mut Vec<u8>, number: u64, height: u64) {
    let id = name(1, number);
    let it = Transaction {
        id: &id,
        inputs: &[name(2, number), name(3, number)],
        outputs: &[name(4, number), name(5, number)],
    };
    let start = out.len();
    write_notify(out, 0, &it, &[0, 1]);
    out[start + HEIGHT_AT..][..8].copy_from_slice(&height.to_le_bytes());
}

/// Sends one number after another to whom `to` says, until the connection ends or all stop.
pub fn send(to: SocketAddr, shared: &Shared) {
    let Ok(mut stream) = TcpStream::connect(to) else { return };
    let mut bytes = Vec::new();
    while !shared.stops() {
        let done = shared.done.load(Ordering::Relaxed) + shared.discarded.load(Ordering::Relaxed);
        let first = shared.sent.load(Ordering::Relaxed);
        if first.saturating_sub(done) >= shared.outstanding.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_micros(300));
            continue;
        }
        bytes.clear();
        let height = shared.height.load(Ordering::Relaxed);
        (first..first + BATCH).for_each(|number| write(&mut bytes, number, height));
        shared.sent.store(first + BATCH, Ordering::Relaxed);
        if stream.write_all(&bytes).is_err() {
            return;
        }
    }
}

/// Sends these once more.
pub fn send_again(to: SocketAddr, numbers: &[u64], shared: &Shared) -> bool {
    let Ok(mut stream) = TcpStream::connect(to) else { return false };
    let height = shared.height.load(Ordering::Relaxed);
    let mut bytes = Vec::new();
    numbers.iter().for_each(|number| write(&mut bytes, *number, height));
    let is_sent = stream.write_all(&bytes).is_ok();
    // Until they are in a block: the connection's end would take what is not read yet.
    std::thread::sleep(Duration::from_millis(400));
    is_sent
}

/// Follows an atomizer's blocks, again when it comes back.
pub fn follow(blocks: SocketAddr, shared: &Shared) {
    while !shared.stops() {
        if let Ok(stream) = TcpStream::connect(blocks) {
            follow_one(stream, shared);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn follow_one(mut stream: TcpStream, shared: &Shared) {
    let (mut reader, mut kept, mut buffer) = (Stream::default(), Vec::new(), vec![0; 256 << 10]);
    let mut block = Vec::new();
    while !shared.stops() {
        let Ok(count @ 1..) = stream.read(&mut buffer) else { return };
        kept.extend_from_slice(&buffer[..count]);
        let mut seen = 0;
        let used = reader.read(&kept, |part| match part {
            Part::Transaction(it) if shared.seen.is_none() => {
                seen += u64::from(it.id[31] == 1);
            }
            Part::Transaction(it) => block.push(*it.id),
            Part::End { height } => {
                shared.block_at_ns.store(shared.now_ns(), Ordering::Relaxed);
                shared.height.fetch_max(height, Ordering::Relaxed);
                if let Some(all) = &shared.seen {
                    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                    shared.done.fetch_add(all.block(height, &block), Ordering::Relaxed);
                    block.clear();
                }
            }
            Part::Begin { .. } => block.clear(),
            Part::Pruned { .. } => {}
        });
        kept.drain(..used.expect("blocks"));
        shared.done.fetch_add(seen, Ordering::Relaxed);
    }
}

impl Seen {
    /// Gives how many were not seen before.
    fn block(&mut self, height: u64, ids: &[Hash]) -> u64 {
        let sum = ids.iter().fold(height, mix);
        let said = (ids.len() as u64, sum);
        if let Some(before) = self.blocks.insert(height, said) {
            if before != said {
                self.wrong.push(format!("block {height} was said in two ways"));
            }
            return 0;
        }
        for id in ids {
            let number = usize::try_from(number_of(id)).expect("a number of ours");
            if self.numbers.len() <= number {
                self.numbers.resize(number + 1, false);
            }
            if std::mem::replace(&mut self.numbers[number], true) {
                self.wrong
                    .push(format!("transaction {number} is in two blocks, the second {height}"));
            }
        }
        ids.len() as u64
    }
}

/// Follows what an atomizer discards, again when it comes back.
pub fn hear_errors(errors: SocketAddr, shared: &Shared) {
    while !shared.stops() {
        if let Ok(stream) = TcpStream::connect(errors) {
            hear_one(stream, shared);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn hear_one(mut stream: TcpStream, shared: &Shared) {
    let (mut kept, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    while !shared.stops() {
        let Ok(count @ 1..) = stream.read(&mut buffer) else { return };
        kept.extend_from_slice(&buffer[..count]);
        let mut used = 0;
        while let Ok(Some(frame)) = next_frame(&kept[used..], 64 << 20) {
            used += frame.used;
            let count = read_errors(frame.payload).expect("errors").count();
            shared.discarded.fetch_add(count, Ordering::Relaxed);
        }
        kept.drain(..used);
    }
}
