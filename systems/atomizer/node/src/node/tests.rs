//! An atomizer alone, in dialogue.

use std::time::Duration;

use process::host::Store;

use super::*;
use crate::intake;
use crate::protocol::block::{Block, read_block};
use crate::protocol::errors::{Why, read_errors};
use crate::protocol::request::{self, Standing, read_standing};
use crate::protocol::transaction::Transaction;
use crate::protocol::{Hash, Malformed, next_frame};
use crate::spent::Secret;

const INTERVAL: Duration = Duration::from_millis(250);
const LINGER: Duration = Duration::from_millis(2);

fn options() -> Options {
    Options {
        rules: Rules { inputs: 64, ..Rules::published(Secret::new(1)) },
        rung: Rung::Block,
        block_interval: INTERVAL,
        linger: LINGER,
        batch_idle: None,
        bounds: intake::Bounds { queue_max: 100, partial_max: 10, entry_bytes: 1 << 16 },
        refuses_early: true,
        unarchived_bytes_max: 1 << 20,
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

    /// The blocks that were sent: height, and the first byte of each transaction's name.
    fn blocks(&mut self) -> Vec<(u64, Vec<u8>)> {
        let (bytes, _) = self.said(1);
        let (mut blocks, mut used) = (Vec::new(), 0);
        while let Some(frame) = next_frame(&bytes[used..], 1 << 20).unwrap() {
            used += frame.used;
            let block: Block<'_> = read_block(frame.payload).unwrap();
            blocks.push((block.height, block.transactions().map(|it| it.id[0]).collect()));
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
/// interval, empty ones, too; one that is asked for is sent once more, until it is pruned.
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
    request::write_get_block(&mut bytes, 2);
    request::write_prune(&mut bytes, 3);
    scene.send(1, &bytes);
    assert_eq!(scene.blocks(), [(2, vec![1, 2])]);
    scene.send(1, &bytes);
    assert_eq!(scene.blocks(), []);
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
        bounds: intake::Bounds { queue_max: 2, partial_max: 10, entry_bytes: 1 << 16 },
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
    request::write_prune(&mut bytes, 3);
    scene.send(1, &bytes);
    scene.notify(0, 6, 2, &[6]);
    scene.wait(INTERVAL);
    assert_eq!(scene.blocks(), [(2, vec![1, 2]), (3, vec![6])]);
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
    assert_eq!(read_standing(frame.payload), Ok(Standing { replica: 0, leader: 0, height: 1 }));
}
