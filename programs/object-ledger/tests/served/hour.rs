//! A client that verifies an hour of ledger from stores that are slow to answer.

use std::fs;
use std::path::Path;

use clock::Clock;
use object_ledger_node::data::{Batch, Block, Hash, Tree, genesis, hex, names};
use object_ledger_node::keys::Key;
use object_ledger_node::pieces::{Code, split};

use crate::programs::{BUCKETS, Ledger};

const NAME: &str = "hour";

/// So many blocks does the batch-finality experiment make in an hour, at 165 a minute.
const BLOCKS: u64 = 9_900;

/// Transactions of a block.
const OF_EACH: u32 = 8;

/// Writes a ledger of `blocks` blocks into the folders of six buckets; gives the keys of both services.
fn write(blocks: u64, folder: &Path) -> [String; 2] {
    let (timestamp, sequencer) = (Key::of_seed(&[1; 32]), Key::of_seed(&[2; 32]));
    let ledger = genesis(NAME);
    let put = |name: &str, whole: &[u8]| {
        for (bucket, piece) in split(Code::THREE_OF_SIX, name, whole).iter().enumerate() {
            let path = folder.join(format!("bucket{bucket}/b{bucket}/{name}"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, piece).unwrap();
        }
    };
    let mut previous: Hash = ledger;
    for number in 1..=blocks {
        let transactions = (0..OF_EACH).map(|it| format!("{number}-{it}").into_bytes()).collect();
        let batch = Batch { id: u128::from(number).to_be_bytes(), transactions };
        let tree = Tree::of(&batch);
        let block = Block { batch: batch.id, count: tree.count(), root: tree.root(), previous };
        let issued = 1_700_000_000_000_000_000 + number.cast_signed();
        let token = timestamp.token(&ledger, block.link(), issued);
        previous = token.link();
        put(
            &names::attestation(number),
            &sequencer.attestation(&ledger, number, previous).encoded(),
        );
        put(&names::proposal(&previous), &[block.encoded(), token.encoded()].concat());
        put(&names::batch(&batch.id), &batch.encoded());
    }
    [timestamp.public(), sequencer.public()].map(|key| hex(&key))
}

/// Has a client verify the last transaction of `blocks` blocks, each request of which takes 100 ms; gives the seconds that it
/// took, without what it keeps and then with it.
fn verified(blocks: u64) -> [f64; 2] {
    let mut ledger = Ledger::empty();
    let [timestamp, sequencer] = write(blocks, ledger.folder.path());
    let mut text = format!(
        "name = \"{NAME}\"\n[keys]\ntimestamp = \"{timestamp}\"\nsequencer = \"{sequencer}\"\n\
         [storage]\nrequired_piece_count = 3\n"
    );
    for index in 0..BUCKETS {
        let (name, data) = (format!("bucket{index}"), ledger.path(&format!("bucket{index}")));
        ledger.also(&name, &["serve", "bucket", "--data", &data, "--delay", "100ms"]);
        let at = ledger.at(&name, "requests");
        text += &format!(
            "[[bucket]]\nprovider = \"aws\"\nbucket = \"b{index}\"\nendpoint = \"http://{at}\"\n"
        );
    }
    fs::write(ledger.file(), text).unwrap();
    let (last, keep, clock) = (format!("{blocks}-3"), ledger.path("kept"), Clock::start());
    [(); 2].map(|()| {
        let began = clock.now();
        let said = ledger.said(&["verify", &last, "--keep", &keep, "--within", "600s"]);
        assert!(said.starts_with("verified number="), "{said}");
        std::time::Duration::from_nanos(clock.now().ns_since(began).unsigned_abs()).as_secs_f64()
    })
}

/// Claim: numbers are read together: 300, each after three requests of 100 ms, take less than these one after the other, of
/// which no machine makes less than a minute and a half.
#[test]
fn numbers_are_read_together() {
    let [anew, _] = verified(300);
    assert!(anew < 90.0, "{anew} s");
}

/// Prints how long an hour of ledger takes: `cargo test … hour_of_ledger -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement that writes 178,200 files"]
fn hour_of_ledger() {
    let [anew, kept] = verified(BLOCKS);
    println!(
        "{BLOCKS} blocks at 100 ms a request: {anew:.1} s, and {kept:.1} s with what was kept"
    );
}
