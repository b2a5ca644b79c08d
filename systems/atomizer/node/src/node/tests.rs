//! An atomizer alone, in dialogue.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use process::host::Store;

use super::*;
use crate::intake;
use crate::protocol::block::{Block, read_block, read_pruned};
use crate::protocol::errors::{Why, read_errors};
use crate::protocol::request::{self, Standing, read_standing};
use crate::protocol::transaction::Transaction;
use crate::protocol::{Hash, Malformed, next_frame};
use crate::spent::Secret;
use crate::stamps::{Stage, Stamps};

const INTERVAL: Duration = Duration::from_millis(250);
const LINGER: Duration = Duration::from_millis(2);

const BOUNDS: intake::Bounds = intake::Bounds {
    queue_max: 100,
    queue_bytes_max: 1 << 20,
    partial_max: 10,
    partial_bytes_max: 1 << 20,
    entry_bytes: 1 << 16,
};

fn options() -> Options {
    Options {
        rules: Rules { inputs: 64, ..Rules::published(Secret::new(1)) },
        ledger: 77,
        rung: Rung::Block,
        block_interval: INTERVAL,
        linger: LINGER,
        batch_idle: None,
        bounds: BOUNDS,
        ignores_height_zero: false,
        refuses_early: true,
        archivers: 1,
        unarchived_bytes_max: 1 << 20,
        archiver_key: [0; 32],
        broadcasts_to_all: false,
        is_silent: false,
    }
}

/// An atomizer and what it has said on each connection: place 0 is a client, 1 listens to blocks, 2 to errors, 3 is a client.
struct Scene {
    node: Atomizer,
    out: Outputs,
    now: Instant,
}

fn connection(place: u32) -> Connection {
    Connection::new(place, 1)
}

impl Scene {
    fn new(options: Options) -> Self {
        let node = Atomizer::new(0, options);
        let mut scene = Self { node, out: Outputs::default(), now: Instant::ZERO };
        scene.step(Input::Wake);
        for (place, listener) in
            [CLIENTS_LISTENER, BLOCKS_LISTENER, ERRORS_LISTENER, CLIENTS_LISTENER]
                .iter()
                .enumerate()
        {
            let connection = connection(u32::try_from(place).unwrap());
            scene.out.open(connection);
            scene.step(Input::Opened { connection, listener: *listener });
        }
        scene
    }

    fn step(&mut self, input: Input<'_>) {
        self.node.step(self.now, input, &mut self.out);
        let (mut stores, mut records) = (Vec::<Store>::new(), Vec::new());
        self.out.take_stores(&mut stores, &mut records);
        assert!(stores.is_empty(), "it keeps nothing");
    }

    /// Gives how many bytes were read.
    fn send(&mut self, place: u32, bytes: &[u8]) -> usize {
        self.step(Input::Bytes(connection(place), bytes));
        self.out.take_used()
    }

    fn notify(&mut self, place: u32, id: u8, height: u64, inputs: &[u8]) {
        let (id, inputs) = ([id; 32], inputs.iter().map(|it| [*it; 32]).collect::<Vec<Hash>>());
        let attested: Vec<u64> = (0..inputs.len() as u64).collect();
        let mut bytes = Vec::new();
        let it = Transaction { id: &id, inputs: &inputs, outputs: &[[9; 32]] };
        request::write_notify(&mut bytes, height, &it, &attested);
        assert_eq!(self.send(place, &bytes), bytes.len());
    }

    fn wait(&mut self, time: Duration) {
        let end = self.now.plus(time);
        while let Some(at) = self.out.wake().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.out.take_wake();
            self.step(Input::Wake);
        }
        self.now = end;
    }

    fn said(&mut self, place: u32) -> (Vec<u8>, bool) {
        let (bytes, closes) = self.out.pending(connection(place)).unwrap();
        (std::mem::take(bytes), closes)
    }

    /// The blocks that were sent: height, and the first byte of each transaction's name. A height of 0: one is forgotten.
    fn blocks(&mut self) -> Vec<(u64, Vec<u8>)> {
        let (bytes, _) = self.said(1);
        let (mut blocks, mut used) = (Vec::new(), 0);
        while let Some(frame) = next_frame(&bytes[used..], 1 << 20).unwrap() {
            used += frame.used;
            if read_pruned(frame.payload).is_some() {
                blocks.push((0, vec![]));
                continue;
            }
            let block: Block<'_> = read_block(frame.payload).unwrap();
            blocks.push((block.head.height, block.transactions().map(|it| it.id[0]).collect()));
        }
        assert_eq!(used, bytes.len());
        blocks
    }

    fn errors(&mut self) -> Vec<(u8, String)> {
        let (bytes, _) = self.said(2);
        let (mut errors, mut used) = (Vec::new(), 0);
        while let Some(frame) = next_frame(&bytes[used..], 1 << 20).unwrap() {
            used += frame.used;
            let word = |why: Why<'_>| format!("{why:?}").split('(').next().unwrap().to_owned();
            let list = read_errors(frame.payload).unwrap();
            errors.extend(list.iter().map(|it| (it.id[0], word(it.why))));
        }
        errors
    }
}

/// Claim: what was notified is in the next block, in order; what spends the same comes back as an error; blocks come at each
/// interval, empty ones, too; one that is asked for is sent once more, until it is pruned, which is said.
#[test]
fn blocks_and_errors() {
    let mut scene = Scene::new(options());
    scene.wait(Duration::from_millis(10));
    // The first was made before anybody listened.
    assert_eq!((scene.blocks(), scene.node.machine().height()), (vec![], 1));
    scene.notify(0, 1, 1, &[11, 12]);
    scene.notify(3, 2, 1, &[13]);
    scene.notify(0, 3, 0, &[12, 14]);
    scene.notify(0, 4, 7, &[15]);
    scene.wait(INTERVAL);
    assert_eq!(scene.blocks(), [(2, vec![1, 2])]);
    let (range, spent) = ((4, "Range".to_owned()), (3, "Spent".to_owned()));
    assert_eq!(scene.errors(), [range, spent]);
    scene.wait(2 * INTERVAL);
    assert_eq!(scene.blocks(), [(3, vec![]), (4, vec![])]);
    let mut bytes = Vec::new();
    request::write_archiver(&mut bytes, 0, &[0; 32]);
    request::write_get_block(&mut bytes, 2);
    request::write_prune(&mut bytes, 3);
    scene.send(1, &bytes);
    assert_eq!(scene.blocks(), [(2, vec![1, 2])]);
    scene.send(1, &bytes);
    assert_eq!(scene.blocks(), [(0, vec![])]);
    let counts = scene.node.counts();
    assert_eq!((counts.received, counts.complete, counts.early, counts.proposed), (4, 3, 1, 3));
}

/// Claim: bytes that are no message end their connection with a counted reason, and disturb nobody else: what came before
/// them there, and what comes on other connections, is in the block.
#[test]
fn bad_bytes() {
    let mut good = Vec::new();
    let it = Transaction { id: &[5; 32], inputs: &[[1; 32]], outputs: &[] };
    request::write_notify(&mut good, 1, &it, &[0]);
    let change = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    let bad = [
        (Malformed::Length, (4_u64 << 30).to_le_bytes().to_vec()),
        (Malformed::Tag, change(8, 77)),
        (Malformed::Count, change(8 + 1 + 8 + 32, 255)),
        (Malformed::Truncated, change(0, 60)),
        (Malformed::Input, change(good.len() - 8, 3)),
        (
            Malformed::Rest,
            change(0, u8::try_from(good.len() - 8 + 4).unwrap())
                .into_iter()
                .chain([0; 4])
                .collect(),
        ),
    ];
    for (why, bytes) in bad {
        let mut scene = Scene::new(options());
        scene.wait(Duration::from_millis(10));
        scene.blocks();
        scene.notify(3, 1, 1, &[21]);
        scene.notify(0, 2, 1, &[22]);
        assert_eq!(scene.send(3, &bytes), bytes.len());
        assert!(scene.said(3).1, "{why:?}");
        let refusals = scene.node.counts().refusals;
        assert_eq!((refusals.of(why), refusals.total()), (1, 1), "{why:?}");
        scene.notify(0, 3, 1, &[23]);
        scene.wait(INTERVAL);
        assert_eq!(scene.blocks(), [(2, vec![1, 2, 3])], "{why:?}");
    }
    // Half a message is waited for.
    let mut scene = Scene::new(options());
    assert_eq!(scene.send(0, &good[..40]), 0);
    assert!(!scene.said(0).1);
}

/// Claim: more than the queue takes is refused at once, and so is everything while too much is stored nowhere: nothing of it
/// ever gets into a block.
#[test]
fn too_much() {
    let mut scene = Scene::new(Options {
        bounds: intake::Bounds { queue_max: 2, ..BOUNDS },
        unarchived_bytes_max: 200,
        ..options()
    });
    scene.wait(Duration::from_millis(10));
    for id in 1..=4 {
        scene.notify(0, id, 1, &[id]);
    }
    let not_taken = |id| (id, "NotTaken".to_owned());
    assert_eq!(scene.errors(), [not_taken(3), not_taken(4)]);
    scene.wait(INTERVAL);
    scene.notify(0, 5, 2, &[5]);
    assert_eq!(scene.errors(), [not_taken(5)]);
    let mut bytes = Vec::new();
    request::write_archiver(&mut bytes, 0, &[0; 32]);
    request::write_prune(&mut bytes, 3);
    scene.send(1, &bytes);
    scene.notify(0, 6, 2, &[6]);
    scene.wait(INTERVAL);
    assert_eq!(scene.blocks(), [(2, vec![1, 2]), (3, vec![6])]);
}

/// Claim: whoever says that it is an archiver and does not know the archivers' key loses its connection and prunes nothing.
#[test]
fn archivers_show_their_key() {
    for (key, kept) in [([7; 32], 0), ([8; 32], 3), ([0; 32], 3)] {
        let mut scene = Scene::new(Options { archiver_key: [7; 32], ..options() });
        scene.wait(3 * INTERVAL - Duration::from_millis(1));
        let mut bytes = Vec::new();
        request::write_archiver(&mut bytes, 0, &key);
        request::write_prune(&mut bytes, 4);
        scene.send(1, &bytes);
        assert_eq!(scene.node.machine().kept().iter().len(), kept, "{key:?}");
    }
}

/// Claim: blocks are forgotten on the word of archivers alone, once all of them have said it, and none that is not made yet:
/// whoever else says so loses its connection, and an archiver that says too much takes nothing of the blocks to come along.
#[test]
fn only_archivers_prune() {
    let says = |number: Option<u8>, below: u64| {
        let mut bytes = Vec::new();
        number.iter().for_each(|it| request::write_archiver(&mut bytes, *it, &[0; 32]));
        request::write_prune(&mut bytes, below);
        bytes
    };
    let kept = |scene: &Scene| {
        let blocks = scene.node.machine().kept().iter();
        blocks.map(|block| block.height).collect::<Vec<_>>()
    };
    for (place, number) in [(0, None), (0, Some(0)), (1, None), (1, Some(2)), (2, Some(0))] {
        let mut scene = Scene::new(Options { archivers: 2, ..options() });
        scene.wait(3 * INTERVAL - Duration::from_millis(1));
        assert_eq!(kept(&scene), [1, 2, 3]);
        scene.send(place, &says(number, 1 << 63));
        scene.wait(INTERVAL);
        assert!(scene.said(place).1, "{place} {number:?}: its connection ends");
        assert_eq!(kept(&scene), [1, 2, 3, 4], "{place} {number:?}");
    }
    let mut scene = Scene::new(Options { archivers: 2, ..options() });
    let second = connection(4);
    scene.out.open(second);
    scene.step(Input::Opened { connection: second, listener: BLOCKS_LISTENER });
    scene.wait(3 * INTERVAL - Duration::from_millis(1));
    scene.send(1, &says(Some(0), 1 << 63));
    assert_eq!(kept(&scene), [1, 2, 3], "the other archiver has said nothing");
    scene.send(4, &says(Some(1), 3));
    assert_eq!(kept(&scene), [3]);
    scene.send(4, &says(Some(1), 1 << 63));
    scene.wait(2 * INTERVAL);
    assert_eq!(kept(&scene), [4, 5], "those that were made since");
}

/// Claim: with the published system's pause an entry leaves at each of its looks and not before, and what is too old is
/// written into the log and discarded there.
#[test]
fn as_published() {
    let mut scene = Scene::new(Options {
        batch_idle: Some(Duration::from_millis(20)),
        refuses_early: false,
        rules: Rules { copies_blocks: true, ..options().rules },
        broadcasts_to_all: true,
        ..options()
    });
    scene.wait(Duration::from_millis(15));
    scene.notify(0, 1, 1, &[1]);
    scene.notify(0, 2, 9, &[2]);
    scene.wait(Duration::from_millis(4));
    assert_eq!(scene.node.counts().batches, 0);
    scene.wait(Duration::from_millis(2));
    assert_eq!((scene.node.counts().batches, scene.node.counts().proposed), (1, 2));
    assert_eq!(scene.node.machine().fates().expired, 1);
    scene.wait(INTERVAL);
    assert_eq!(scene.blocks(), [(2, vec![1])]);
    assert!(!scene.said(0).0.is_empty(), "clients hear blocks, too");
}

/// Claim: a rung of the ladder ends where it says: what is behind it does nothing.
#[test]
fn rungs() {
    let found =
        [Rung::Receive, Rung::Accumulate, Rung::Log, Rung::Apply, Rung::Block].map(|rung| {
            let mut scene = Scene::new(Options { rung, ..options() });
            scene.wait(Duration::from_millis(10));
            let height = scene.node.machine().height();
            scene.notify(0, 1, height, &[1]);
            scene.wait(INTERVAL);
            let (counts, fates) = (scene.node.counts(), scene.node.machine().fates());
            let sent = scene.blocks().iter().map(|(_, ids)| ids.len() as u64).sum::<u64>();
            [counts.received, counts.complete, counts.applied, fates.in_blocks, sent]
        });
    assert_eq!(found, [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1; 5]]);
}

/// What was stamped: by stage how many.
#[derive(Clone, Default)]
struct Stamped(Arc<Mutex<BTreeMap<Stage, u64>>>);

impl Stamps for Stamped {
    fn now_ns(&mut self) -> u64 {
        0
    }

    fn stage(&mut self, stage: Stage, _since_ns: u64, count: u64) {
        *self.0.lock().unwrap().entry(stage).or_default() += count;
    }

    fn trace(&mut self, _stage: Stage, _id: &Hash, _since_ns: u64) {}

    fn follows(&self, _id: &Hash) -> bool {
        false
    }
}

/// Claim: sums by stage come out to the last one: notifications leave a transaction waiting, complete it or have it refused;
/// complete ones go into the log or become too old in the queue; and what is applied is admitted, expired or spent.
#[test]
fn sums_by_stage() {
    let stamped = Stamped::default();
    let mut scene = Scene::new(options());
    scene.node = Atomizer::new(0, options()).stamping(Box::new(stamped.clone()));
    scene.step(Input::Wake);
    for (place, listener) in [(0, CLIENTS_LISTENER), (2, ERRORS_LISTENER)] {
        scene.step(Input::Opened { connection: connection(place), listener });
    }
    scene.wait(Duration::from_millis(10));
    let mut bytes = Vec::new();
    // Two that are vouched for by halves, one of which never is as a whole; one too new; one that spends what another does.
    for (id, height, inputs, attested) in [
        (1, 1, [11, 12], &[0][..]),
        (2, 1, [21, 22], &[0]),
        (1, 1, [11, 12], &[1]),
        (3, 9, [31, 32], &[0, 1]),
        (4, 1, [11, 42], &[0, 1]),
        (5, 1, [51, 52], &[0, 1]),
    ] {
        let (id, inputs) = ([id; 32], inputs.map(|it| [it; 32]));
        let it = Transaction { id: &id, inputs: &inputs, outputs: &[] };
        request::write_notify(&mut bytes, height, &it, attested);
    }
    assert_eq!(scene.send(0, &bytes), bytes.len());
    scene.wait(INTERVAL);
    let of = |stage: Stage| stamped.0.lock().unwrap().get(&stage).copied().unwrap_or(0);
    let [receive, partial, refuse] = [Stage::Receive, Stage::Partial, Stage::Refuse].map(of);
    assert_eq!((receive, partial, of(Stage::Accumulate), refuse), (6, 2, 3, 1));
    assert_eq!((of(Stage::Log), of(Stage::Stale), of(Stage::Apply)), (3, 0, 3));
    assert_eq!([Stage::Admit, Stage::Expire, Stage::Spent, Stage::Block].map(of), [2, 0, 1, 2]);
    // Where they wait for the log until they are too old they are given up before it.
    let stamped = Stamped::default();
    let slow = Options { linger: 4 * INTERVAL, ..options() };
    scene.node = Atomizer::new(0, slow).stamping(Box::new(stamped.clone()));
    scene.step(Input::Opened { connection: connection(0), listener: CLIENTS_LISTENER });
    scene.wait(Duration::from_millis(10));
    let height = scene.node.machine().height();
    scene.notify(0, 6, height, &[61]);
    scene.wait(6 * INTERVAL);
    let of = |stage: Stage| stamped.0.lock().unwrap().get(&stage).copied().unwrap_or(0);
    assert_eq!([Stage::Accumulate, Stage::Log, Stage::Stale].map(of), [1, 0, 1]);
}

/// Claim: whoever asks is told who leads.
#[test]
fn standing() {
    let mut scene = Scene::new(options());
    scene.wait(Duration::from_millis(10));
    let mut bytes = Vec::new();
    request::write_standing_request(&mut bytes);
    scene.send(0, &bytes);
    let (said, _) = scene.said(0);
    let frame = next_frame(&said, 64).unwrap().unwrap();
    let chain = scene.node.machine().chain();
    let standing = Standing { replica: 0, leader: 0, height: 1, chain, has_vote: true };
    assert_eq!((read_standing(frame.payload), chain != 0), (Ok(standing), true));
}
