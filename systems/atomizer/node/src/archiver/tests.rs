//! An archiver in dialogue with two atomizers.

use process::host;

use super::*;
use crate::protocol::block::{Hashing, write_block_head, write_pruned};
use crate::protocol::request::{Request, read_request};
use crate::protocol::transaction::Transaction;

/// The block behind `last` in its frame, with so many transactions.
fn block(ledger: u64, last: Option<Head>, count: u8) -> (Head, Vec<u8>) {
    let (mut bytes, mut hashing, mut out) = (Vec::new(), Hashing::default(), Vec::new());
    (0..count).for_each(|id| {
        Transaction { id: &[id; 32], inputs: &[], outputs: &[[9; 32]] }.write(&mut bytes);
    });
    hashing.add(&bytes);
    let (height, previous) = last.map_or((1, [0; 32]), |it| (it.height + 1, it.hash));
    let head = Head { height, ledger, previous, hash: [0; 32], count: count.into() };
    let head = Head { hash: hashing.end(&head), ..head };
    write_block_head(&mut out, &head, bytes.len() as u64);
    out.extend_from_slice(&bytes);
    (head, out)
}

/// Blocks of a ledger, each in its frame.
fn chain(ledger: u64, counts: &[u8]) -> Vec<Vec<u8>> {
    let mut last = None;
    let next = |count: &u8| {
        let (head, frame) = block(ledger, last, *count);
        last = Some(head);
        frame
    };
    counts.iter().map(next).collect()
}

fn stored(blocks: &[Vec<u8>]) -> Stored {
    let mut log = process::StoredLog::new(0);
    blocks.iter().for_each(|block| log.push(&block[8..]));
    Stored { logs: vec![log], ..Stored::default() }
}

/// An archiver to which atomizers 0 and 1 are connected.
struct Scene {
    node: Archiver,
    out: Outputs,
    now: Instant,
}

fn of(peer: u32) -> Connection {
    Connection::new(peer, 1)
}

impl Scene {
    fn new(stored: &Stored) -> Self {
        let node = Archiver::new(2, stored).unwrap().numbered(1, [0; 32]);
        let mut scene = Self { node, out: Outputs::default(), now: Instant::ZERO };
        for peer in 0..2 {
            scene.out.open(of(peer));
            scene.step(Input::Dialled { connection: of(peer), peer: peer as usize });
        }
        scene
    }

    fn step(&mut self, input: Input<'_>) {
        self.node.step(self.now, input, &mut self.out);
        let (mut stores, mut records) = (Vec::<host::Store>::new(), Vec::new());
        self.out.take_stores(&mut stores, &mut records);
        let below = self.node.appended;
        self.node.step(self.now, Input::Persisted { log: 0, below }, &mut self.out);
    }

    fn says(&mut self, peer: u32, bytes: &[u8]) {
        self.step(Input::Bytes(of(peer), bytes));
        assert_eq!(self.out.take_used(), bytes.len());
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now.plus(time);
        self.step(Input::Wake);
    }

    /// What an atomizer has been asked for since it was looked at last; the prunes are left out.
    fn asked(&mut self, peer: u32) -> Vec<u64> {
        let bytes = std::mem::take(self.out.pending(of(peer)).unwrap().0);
        let (mut asked, mut used) = (Vec::new(), 0);
        while let Some(frame) = next_frame(&bytes[used..], 100).unwrap() {
            used += frame.used;
            if let Request::GetBlock(height) = read_request(frame.payload).unwrap() {
                asked.push(height);
            }
        }
        asked
    }
}

/// Claim: it says which archiver it is before it says what it has stored.
#[test]
fn says_who_it_is() {
    let blocks = chain(7, &[1, 2]);
    let mut scene = Scene::new(&stored(&blocks));
    let bytes = std::mem::take(scene.out.pending(of(0)).unwrap().0);
    let first = next_frame(&bytes, 100).unwrap().unwrap();
    assert_eq!(read_request(first.payload), Ok(Request::Archiver(1, &[0; 32])));
    let second = next_frame(&bytes[first.used..], 100).unwrap().unwrap();
    assert_eq!(read_request(second.payload), Ok(Request::Prune(3)));
}

/// Claim: a block that is missing is asked for again and again while an atomizer may have it; once each that is there has said
/// that it is forgotten, the archiver says which are missing and stores nothing more.
#[test]
fn what_nobody_has() {
    let blocks = chain(7, &[1, 2, 3, 4, 5]);
    let mut scene = Scene::new(&stored(&blocks[..1]));
    scene.says(0, &blocks[4]);
    assert_eq!((scene.asked(0), scene.asked(1)), (vec![2, 3, 4], vec![2, 3, 4]));
    let mut pruned = Vec::new();
    write_pruned(&mut pruned, 4);
    scene.says(0, &pruned);
    for _ in 0..3 {
        scene.wait(ASK_AGAIN);
        assert_eq!(scene.asked(1), [2, 3, 4]);
        assert_eq!(scene.node.trouble(), None, "the other may have it");
    }
    scene.says(1, &pruned);
    scene.wait(ASK_AGAIN);
    let trouble = scene.node.trouble().expect("nobody has it");
    assert_eq!(*trouble, Trouble::Pruned { first: 2, last: 3 });
    assert!(trouble.to_string().starts_with("blocks 2 to 3 are missing here and pruned"));
    scene.says(1, &blocks[1]);
    assert_eq!(scene.node.durable(), 1);
}

/// Claim: what contradicts the archive is not stored, and is said: a block of another ledger, another block in the place of one
/// that is stored, and one that does not follow; a block that is not what its hash says ends its connection.
#[test]
fn contradictions() {
    let own = chain(7, &[1, 2, 3]);
    let other = chain(7, &[1, 3, 3]);
    let cases = [
        (&chain(8, &[1, 2])[1], Trouble::Ledger { peer: 1, own: 7, ledger: 8 }),
        (&other[1], Trouble::Differs { peer: 1, height: 2 }),
        (&other[2], Trouble::Follows { peer: 1, height: 3 }),
    ];
    for (frame, expected) in cases {
        let mut scene = Scene::new(&stored(&own[..2]));
        scene.says(0, &own[1]);
        assert_eq!((scene.node.trouble(), scene.node.counts().repeated), (None, 1));
        scene.says(1, frame);
        assert_eq!(scene.node.trouble(), Some(&expected));
        assert_eq!(scene.node.durable(), 2, "{expected}");
    }
    let mut scene = Scene::new(&stored(&own[..2]));
    let mut damaged = own[2].clone();
    *damaged.last_mut().unwrap() ^= 1;
    scene.says(0, &damaged);
    assert_eq!(scene.node.counts().refusals.of(Malformed::Hash), 1);
    assert!(scene.out.pending(of(0)).unwrap().1, "its connection ends");
    scene.says(1, &own[2]);
    assert_eq!((scene.node.durable(), scene.node.trouble()), (3, None));
}

/// Claim: an archive in which two transactions of a block were swapped, a block is of another chain, or blocks have no hashes
/// yet is refused at the start with the record.
#[test]
fn a_start_from_what_is_no_chain() {
    let own = chain(7, &[1, 3, 2]);
    let mut swapped = own.clone();
    let at = 8 + crate::protocol::block::HEAD_BYTES;
    swapped[1][at..at + 2 * 80].rotate_left(80);
    let mut strange = own.clone();
    strange[1] = chain(7, &[2, 3])[1].clone();
    let mut old = own.clone();
    old[1] = [&own[1][..16], &own[1][at - 8..]].concat();
    for blocks in [swapped, strange, old] {
        let refused = Archiver::new(1, &stored(&blocks)).err();
        assert_eq!(refused, Some(NoArchive { number: 1, height: 2 }));
    }
    assert!(Archiver::new(1, &stored(&own)).is_ok());
}

/// Claim: whoever asks on and on for a block and does not read is hung up on, with no more than a bound waiting for it.
#[test]
fn one_that_does_not_read() {
    let mut last = None;
    let mut blocks = Vec::new();
    for count in [200, 1] {
        let (head, frame) = block(7, last, count);
        last = Some(head);
        blocks.push(frame);
    }
    let mut scene = Scene::new(&stored(&blocks));
    let client = of(9);
    scene.out.open(client);
    scene.step(Input::Opened { connection: client, listener: 0 });
    let mut question = Vec::new();
    write_frame(&mut question, |out| out.extend_from_slice(&1_u64.to_le_bytes()));
    let asked = 2 * RECENT_BYTES_MAX / blocks[0].len();
    scene.says(9, &question.repeat(asked));
    let (bytes, closes) = scene.out.pending(client).unwrap();
    assert!(closes && (RECENT_BYTES_MAX..RECENT_BYTES_MAX + (1 << 20)).contains(&bytes.len()));
}
