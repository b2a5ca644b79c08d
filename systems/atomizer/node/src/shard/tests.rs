//! A shard in dialogue with an archiver, two atomizers, another shard and a client.

use super::*;
use crate::protocol::block::{Hashing, write_block_head};
use crate::protocol::errors::read_errors;
use crate::protocol::request::read_request;
use crate::protocol::transaction::Transaction;

const DEPTH: u64 = 1;
const ARCHIVE: Connection = Connection::new(0, 1);
const LEADER: Connection = Connection::new(2, 1);
const OTHER_SHARD: Connection = Connection::new(4, 1);
const CLIENT: Connection = Connection::new(5, 1);
const LISTENER: Connection = Connection::new(6, 1);
const HANDED_ON: Connection = Connection::new(7, 1);

/// An input of shard 0 or 1.
fn input(shard: u8, number: u8) -> Hash {
    let mut name = [number; 32];
    name[..8].copy_from_slice(&u64::from(shard).to_le_bytes());
    name
}

struct Scene {
    node: Shard,
    out: Outputs,
    last: Option<Head>,
}

/// A notification that the atomizer got: the transaction, the height and the inputs that are vouched for.
type Told = (Hash, u64, u128);

impl Scene {
    /// Shard 0 of two, with the atomizer of number 1 as the leader.
    fn new(lie: Option<Lie>) -> Self {
        let options = Options {
            number: 0,
            shards: 2,
            atomizers: 2,
            depth: DEPTH,
            spent_max: 100,
            secret: Secret::new(1),
            lie,
        };
        let mut scene = Self { node: Shard::new(options), out: Outputs::default(), last: None };
        for (connection, peer) in
            [(ARCHIVE, 0), (Connection::new(1, 1), 1), (LEADER, 2), (OTHER_SHARD, 4)]
        {
            scene.out.open(connection);
            scene.step(Input::Dialled { connection, peer });
        }
        let accepted =
            [(CLIENT, CLIENTS_LISTENER), (LISTENER, ERRORS_LISTENER), (HANDED_ON, SHARDS_LISTENER)];
        for (connection, listener) in accepted {
            scene.out.open(connection);
            scene.step(Input::Opened { connection, listener });
        }
        let standing = Standing { replica: 1, leader: 1, height: 0, chain: 0, has_vote: true };
        let mut bytes = Vec::new();
        write_standing(&mut bytes, &standing);
        scene.step(Input::Bytes(LEADER, &bytes));
        scene
    }

    fn step(&mut self, input: Input<'_>) {
        self.node.step(Instant::ZERO, input, &mut self.out);
    }

    fn said(&mut self, to: Connection) -> Vec<u8> {
        std::mem::take(self.out.pending(to).unwrap().0)
    }

    /// Asks for a transaction; gives what the atomizer that leads was told then, and what was refused.
    fn ask(&mut self, from: Connection, id: u8, inputs: &[Hash]) -> (Vec<Told>, Vec<u8>) {
        let transaction = Transaction { id: &[id; 32], inputs, outputs: &[[id; 32]] };
        let places: Vec<u64> = (0..inputs.len() as u64).collect();
        let mut bytes = Vec::new();
        write_notify(&mut bytes, 99, &transaction, &places);
        self.step(Input::Bytes(from, &bytes));
        (notified(&self.said(LEADER)), self.refused())
    }

    fn refused(&mut self) -> Vec<u8> {
        let bytes = self.said(LISTENER);
        let Some(frame) = next_frame(&bytes, 1 << 20).unwrap() else { return Vec::new() };
        read_errors(frame.payload).unwrap().iter().map(|error| error.id[0]).collect()
    }

    /// The archiver answers with the next block, in which these are spent.
    fn block(&mut self, inputs: &[Hash]) {
        let (mut bytes, mut hashing) = (Vec::new(), Hashing::default());
        Transaction { id: &[200; 32], inputs, outputs: &[] }.write(&mut bytes);
        hashing.add(&bytes);
        let (height, previous) = self.last.map_or((1, [0; 32]), |it| (it.height + 1, it.hash));
        let head = Head { height, ledger: 7, previous, hash: [0; 32], count: 1 };
        let head = Head { hash: hashing.end(&head), ..head };
        self.last = Some(head);
        let mut block = Vec::new();
        write_block_head(&mut block, &head, bytes.len() as u64);
        block.extend_from_slice(&bytes);
        self.archive(&block[8..]);
    }

    fn archive(&mut self, block: &[u8]) {
        let mut answer = Vec::new();
        write_frame(&mut answer, |out| {
            out.push(1);
            out.extend_from_slice(block);
        });
        self.step(Input::Bytes(ARCHIVE, &answer));
    }
}

fn notified(bytes: &[u8]) -> Vec<Told> {
    let (mut told, mut used) = (Vec::new(), 0);
    while let Some(frame) = next_frame(&bytes[used..], 1 << 20).unwrap() {
        used += frame.used;
        if let Request::Notify(it) = read_request(frame.payload).unwrap() {
            told.push((*it.transaction.id, it.height, it.attested()));
        }
    }
    told
}

/// Claim: an input is vouched for at the height of the last block that the archiver has; one that a block has spent never
/// again, and one that it has vouched for only for the same transaction, until that can be in no block any more.
#[test]
fn it_never_vouches_twice() {
    let mut scene = Scene::new(None);
    let (a, b) = (input(0, 1), input(0, 2));
    assert_eq!(scene.ask(CLIENT, 1, &[a]), (vec![([1; 32], 0, 1)], vec![]));
    assert_eq!(scene.ask(CLIENT, 2, &[a]), (vec![], vec![2]), "it may be in a block of 1");
    scene.block(&[]);
    assert_eq!(scene.ask(CLIENT, 1, &[a]), (vec![([1; 32], 1, 1)], vec![]), "the same again");
    assert_eq!(scene.ask(CLIENT, 3, &[b, a]), (vec![], vec![3]), "none of it is vouched for");
    scene.block(&[]);
    scene.block(&[]);
    let (vouched, refused) = scene.ask(CLIENT, 2, &[a]);
    assert_eq!((vouched, refused), (vec![([2; 32], 3, 1)], vec![]), "1 can be in no block");
    scene.block(&[a]);
    for _ in 0..5 {
        assert_eq!(scene.ask(CLIENT, 2, &[a]), (vec![], vec![2]), "a block has spent it");
        assert_eq!(scene.ask(CLIENT, 4, &[a]), (vec![], vec![4]));
        scene.block(&[]);
    }
    assert_eq!(scene.ask(CLIENT, 5, &[b]).0, [([5; 32], 9, 1)]);
    assert_eq!(scene.node.counts().spent, 12);
}

/// Claim: a vouched height that another transaction has waited for counts from the last time that it was said.
#[test]
fn a_later_word_is_waited_for() {
    let mut scene = Scene::new(None);
    let a = input(0, 1);
    scene.ask(CLIENT, 1, &[a]);
    scene.block(&[]);
    scene.ask(CLIENT, 1, &[a]);
    scene.block(&[]);
    assert_eq!(scene.ask(CLIENT, 2, &[a]).1, [2], "said at 1, it may be in block 3");
    scene.block(&[]);
    assert_eq!(scene.ask(CLIENT, 2, &[a]).1, []);
}

/// Claim: an input of another shard is handed on to it and vouched for there, and what was handed on goes no further.
#[test]
fn shards_divide_the_inputs() {
    let mut scene = Scene::new(None);
    let (own, other) = (input(0, 1), input(1, 2));
    assert_eq!(scene.ask(CLIENT, 1, &[other, own]).0, [([1; 32], 0, 0b10)]);
    assert_eq!(notified(&scene.said(OTHER_SHARD)), [([1; 32], 0, 0b01)]);
    assert_eq!(scene.ask(HANDED_ON, 2, &[other, input(0, 3)]).0, [([2; 32], 0, 0b10)]);
    assert_eq!(notified(&scene.said(OTHER_SHARD)), []);
    scene.step(Input::Closed(OTHER_SHARD));
    assert_eq!(scene.ask(CLIENT, 3, &[other, input(0, 4)]), (vec![], vec![3]), "nobody vouches");
    assert_eq!(scene.ask(CLIENT, 4, &[input(0, 4)]).0.len(), 1, "so it is free");
}

/// Claim: a shard that lies does what its lie says, and an honest one vouches for nothing without a leader, with a memory
/// that is full, or after a block that does not follow.
#[test]
fn lies_and_limits() {
    let mut scene = Scene::new(Some(Lie::VouchesTwice));
    let a = input(0, 1);
    scene.block(&[a]);
    assert_eq!(scene.ask(CLIENT, 1, &[a]).0, [([1; 32], 1, 1)]);
    let mut scene = Scene::new(Some(Lie::SaysTooHigh));
    assert_eq!(scene.ask(CLIENT, 1, &[a]).0, [([1; 32], 1, 1)]);

    let mut scene = Scene::new(None);
    let many: Vec<Hash> = (0..100).map(|number| input(0, number)).collect();
    scene.block(&many);
    assert_eq!(scene.ask(CLIENT, 1, &[input(0, 200)]), (vec![], vec![1]), "its memory is full");
    let mut scene = Scene::new(None);
    scene.step(Input::Closed(LEADER));
    assert_eq!(scene.refused(), []);
    let transaction = Transaction { id: &[1; 32], inputs: &[a], outputs: &[[1; 32]] };
    let mut bytes = Vec::new();
    write_notify(&mut bytes, 0, &transaction, &[0]);
    scene.step(Input::Bytes(CLIENT, &bytes));
    assert_eq!(scene.refused(), [1], "nobody leads");
    let mut scene = Scene::new(None);
    scene.block(&[]);
    scene.last = None;
    scene.block(&[]);
    assert!(scene.node.trouble().is_some());
    assert_eq!(scene.ask(CLIENT, 1, &[a]), (vec![], vec![1]));
}

/// Claim: what it has vouched for counts as what is spent does, until a block says what became of it.
#[test]
fn vouched_is_held() {
    let mut scene = Scene::new(None);
    let told: usize =
        (0..120).map(|number| scene.ask(CLIENT, number, &[input(0, number)]).0.len()).sum();
    assert_eq!((told, scene.node.vouched.len()), (100, 100));
    assert_eq!(scene.ask(CLIENT, 200, &[input(0, 200)]), (vec![], vec![200]));
}
