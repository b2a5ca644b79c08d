//! The messages, byte by byte.

use super::block::{
    HEAD_BYTES, Hashing, Head, Part, Stream, read_block, read_pruned, write_block_head,
    write_pruned,
};
use super::entry::{self, Entry, read_entry};
use super::errors::{Error, Why, read_errors, write_errors};
use super::request::{self, Request, Standing, all_inputs, read_request, read_standing};
use super::status::{self, Answer, Question, Status, read_answer, read_question};
use super::transaction::{INPUTS_MAX, OUTPUTS_MAX, Transaction};
use super::{Hash, Malformed, REQUEST_BYTES_MAX, Refusals, fuzz_messages, next_frame};

const ID: Hash = [1; 32];
const INPUTS: [Hash; 2] = [[2; 32], [3; 32]];
const OUTPUTS: [Hash; 2] = [[4; 32], [5; 32]];
const TWO: Transaction<'static> = Transaction { id: &ID, inputs: &INPUTS, outputs: &OUTPUTS };

fn notify() -> Vec<u8> {
    let mut out = Vec::new();
    request::write_notify(&mut out, 77, &TWO, &[0, 1]);
    out
}

fn block(height: u64, count: u64) -> Vec<u8> {
    let (mut out, mut list) = (Vec::new(), Vec::new());
    (0..count).for_each(|_| TWO.write(&mut list));
    let mut hashing = Hashing::default();
    hashing.add(&list);
    let head = Head { height, ledger: 5, previous: [6; 32], hash: [0; 32], count };
    let head = Head { hash: hashing.end(&head), ..head };
    write_block_head(&mut out, &head, list.len() as u64);
    out.extend_from_slice(&list);
    out
}

fn errors() -> Vec<u8> {
    let whys =
        [Why::NotTaken, Why::Unknown(&INPUTS), Why::Range, Why::Incomplete, Why::Spent(&OUTPUTS)];
    let (mut list, mut out) = (Vec::new(), Vec::new());
    whys.iter().for_each(|why| Error { id: &ID, why: *why }.write(&mut list));
    write_errors(&mut out, 5, &list);
    out
}

fn question() -> Vec<u8> {
    let mut out = Vec::new();
    let asked: [(&Hash, &[Hash]); 2] = [(&ID, &OUTPUTS), (&[9; 32], &[])];
    status::write_status_question(&mut out, asked.into_iter());
    out
}

fn payload(frame: &[u8]) -> &[u8] {
    let found = next_frame(frame, REQUEST_BYTES_MAX).unwrap().unwrap();
    assert_eq!(found.used, frame.len());
    found.payload
}

/// Claim: a transaction with two inputs and two outputs takes the bytes of the published system: 176 alone, 209 with its
/// height and two attestations, 217 in its frame, 184 in the log, and 176 in a block. Only a block's head is longer.
#[test]
fn published_sizes() {
    assert_eq!(TWO.bytes(), 176);
    let frame = notify();
    assert_eq!((frame.len(), payload(&frame).len()), (217, 209));
    assert_eq!(frame[request::HEIGHT_AT..][..8], 77_u64.to_le_bytes());
    let mut log = Vec::new();
    entry::begin_transactions(&mut log);
    for height in 0..3 {
        entry::push_transaction(&mut log, height, &TWO);
    }
    entry::set_count(&mut log, 3);
    assert_eq!(log.len(), 1 + 8 + 3 * 184);
    assert_eq!(block(1, 5).len(), 8 + HEAD_BYTES + 5 * 176);
}

/// Claim: what is written is read: each request, entry, block, list of errors, question and answer.
#[test]
fn there_and_back() {
    let frame = notify();
    let Ok(Request::Notify(it)) = read_request(payload(&frame)) else { panic!("it is one") };
    assert_eq!((it.height, it.transaction, it.attested()), (77, TWO, all_inputs(2)));
    let mut out = Vec::new();
    request::write_prune(&mut out, 5);
    assert_eq!(read_request(payload(&out)), Ok(Request::Prune(5)));
    out.clear();
    request::write_archiver(&mut out, 3, &[9; 32]);
    assert_eq!(read_request(payload(&out)), Ok(Request::Archiver(3, &[9; 32])));
    out.clear();
    request::write_alive(&mut out);
    assert_eq!(read_request(payload(&out)), Ok(Request::Alive));
    out.clear();
    request::write_get_block(&mut out, 6);
    assert_eq!(read_request(payload(&out)), Ok(Request::GetBlock(6)));
    out.clear();
    request::write_standing_request(&mut out);
    assert_eq!(read_request(payload(&out)), Ok(Request::Standing));
    out.clear();
    let standing = Standing { replica: 1, leader: 2, height: 3, chain: 4, has_vote: true };
    request::write_standing(&mut out, &standing);
    assert_eq!(out.len(), request::STANDING_BYTES);
    assert_eq!(read_standing(payload(&out)), Ok(standing));

    let mut log = Vec::new();
    entry::begin_transactions(&mut log);
    entry::push_transaction(&mut log, 8, &TWO);
    entry::set_count(&mut log, 1);
    let Ok(Entry::Transactions(batch)) = read_entry(&log) else { panic!("it is one") };
    let complete: Vec<_> = batch.iter().map(|it| (it.height, it.transaction, it.at)).collect();
    assert_eq!(complete, [(8, TWO, 17)]);
    assert!(matches!(read_entry(&entry::make_block()), Ok(Entry::MakeBlock)));
    assert!(matches!(read_entry(&entry::prune(4)), Ok(Entry::Prune(4))));
    assert!(matches!(read_entry(&entry::ledger(9)), Ok(Entry::Ledger(9))));

    let frame = block(9, 3);
    let read = read_block(payload(&frame)).unwrap();
    assert_eq!((read.head.height, read.head.count, read.transactions().count()), (9, 3, 3));
    assert!(read.is_as_hashed());
    assert!(read.transactions().all(|it| it == TWO));

    let frame = errors();
    let whys: Vec<_> = read_errors(payload(&frame)).unwrap().iter().map(|it| it.why).collect();
    assert_eq!(whys.len(), 5);
    assert_eq!((whys[1], whys[4]), (Why::Unknown(&INPUTS), Why::Spent(&OUTPUTS)));
}

/// Claim: a block's hash is of the order of its transactions, of each byte of them, and of all that its head says.
#[test]
fn hashes() {
    let other = Transaction { id: &[8; 32], ..TWO };
    let of = |list: &[Transaction<'_>], head: Head| {
        let (mut bytes, mut hashing) = (Vec::new(), Hashing::default());
        list.iter().for_each(|it| it.write(&mut bytes));
        hashing.add(&bytes);
        hashing.end(&head)
    };
    let head = Head { height: 2, ledger: 5, previous: [6; 32], hash: [0; 32], count: 2 };
    let all = [
        of(&[TWO, other], head),
        of(&[other, TWO], head),
        of(&[TWO, TWO], head),
        of(&[TWO, other], Head { height: 3, ..head }),
        of(&[TWO, other], Head { ledger: 6, ..head }),
        of(&[TWO, other], Head { previous: [7; 32], ..head }),
        of(&[TWO, other], Head { count: 1, ..head }),
    ];
    for (place, hash) in all.iter().enumerate() {
        assert!(!all[..place].contains(hash), "{place}");
    }
    assert_eq!(of(&[TWO, other], Head { hash: all[0], ..head }), all[0], "its own is not in it");
    let first = Head { height: 1, previous: [0; 32], hash: [6; 32], ..head };
    assert!(first.follows(None) && head.follows(Some(&first)) && !head.follows(None));
    assert!(!Head { ledger: 0, ..first }.follows(None));
    for other in [
        Head { hash: [7; 32], ..first },
        Head { ledger: 6, ..first },
        Head { height: 2, ..first },
        Head { height: u64::MAX, ..first },
    ] {
        assert!(!head.follows(Some(&other)), "{other:?}");
    }
}

/// Claim: what a watchtower is asked it answers output by output, in the order asked.
#[test]
fn questions_and_answers() {
    let frame = question();
    let Ok(Question::Status(asked)) = read_question(payload(&frame)) else { panic!("it is one") };
    let mut out = Vec::new();
    status::write_status_answer(&mut out, &asked, |id, output| {
        assert_eq!(*id, ID);
        if *output == OUTPUTS[0] { (Status::Unspent, 3) } else { (Status::InvalidInput, 4) }
    });
    let Ok(Answer::Status(answered)) = read_answer(payload(&out)) else { panic!("it is one") };
    let known: Vec<(Hash, Vec<_>)> = answered
        .iter()
        .map(|(id, known)| (*id, known.map(|it| (it.status, it.height, it.output)).collect()))
        .collect();
    let first = vec![(Status::Unspent, 3, OUTPUTS[0]), (Status::InvalidInput, 4, OUTPUTS[1])];
    assert_eq!(known, [(ID, first), ([9; 32], vec![])]);
    let mut out = Vec::new();
    status::write_best_height_question(&mut out);
    assert!(matches!(read_question(payload(&out)), Ok(Question::BestHeight)));
    out.clear();
    status::write_best_height(&mut out, 12);
    assert!(matches!(read_answer(payload(&out)), Ok(Answer::BestHeight(12))));
}

/// Claim: each kind of bad input is refused for a reason of its own, which is counted; a length of 4 GiB at once.
#[test]
fn reasons() {
    let frame = notify();
    let good = payload(&frame);
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.to_vec();
        change(&mut bytes);
        read_request(&bytes).unwrap_err()
    };
    let found = [
        refused(&|it| it.truncate(100)),
        refused(&|it| it[41] = 200),
        refused(&|it| it[41..49].fill(0xff)),
        refused(&|it| it[0] = 9),
        refused(&|it| it.push(0)),
        refused(&|it| it[193] = 2),
        next_frame(&(4_u64 << 30).to_le_bytes(), REQUEST_BYTES_MAX).unwrap_err(),
    ];
    use Malformed::{Count, Input, Length, Rest, Tag, Truncated};
    assert_eq!(found, [Truncated, Count, Count, Tag, Rest, Input, Length]);
    let mut refusals = Refusals::default();
    found.into_iter().for_each(|why| refusals.count(why));
    assert_eq!((refusals.of(Count), refusals.of(Tag), refusals.total()), (2, 1, 7));
    for cut in 0..good.len() {
        assert_eq!(read_request(&good[..cut]), Err(Truncated), "{cut}");
    }
    const { assert!(32 * (INPUTS_MAX + OUTPUTS_MAX + 100) < REQUEST_BYTES_MAX) };
}

/// Claim: blocks that come bit by bit say the same as those that come whole; one that has bytes behind its transactions,
/// or fewer than it says, is refused.
#[test]
fn streams() {
    let mut pruned = Vec::new();
    write_pruned(&mut pruned, 4);
    assert_eq!(read_pruned(payload(&pruned)), Some(4));
    let bytes = [block(1, 2), block(2, 0), pruned, block(3, 1)].concat();
    for piece in 1..bytes.len() {
        let (mut stream, mut said, mut used) = (Stream::default(), Vec::new(), 0);
        let mut end = 0;
        while end < bytes.len() {
            end = bytes.len().min(end + piece);
            used += stream
                .read(&bytes[used..end], |part| match part {
                    Part::Begin { height, count } => said.push((height, count)),
                    Part::Transaction(it) => assert_eq!(it, TWO),
                    Part::End { height } => said.push((height, u64::MAX)),
                    Part::Pruned { below } => said.push((0, below)),
                })
                .unwrap();
        }
        assert_eq!(used, bytes.len());
        let end = u64::MAX;
        assert_eq!(said, [(1, 2), (1, end), (2, 0), (2, end), (0, 4), (3, 1), (3, end)]);
    }
    let mut long = block(1, 2);
    let count_at = 8 + HEAD_BYTES - 8;
    long[count_at] = 1;
    assert_eq!(Stream::default().read(&long, |_| {}), Err(Malformed::Rest));
    long[count_at] = 3;
    assert_eq!(Stream::default().read(&long, |_| {}), Err(Malformed::Truncated));
    long[count_at] = 200;
    assert_eq!(Stream::default().read(&long, |_| {}), Err(Malformed::Count));
}

fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut log = Vec::new();
    entry::begin_transactions(&mut log);
    entry::push_transaction(&mut log, 8, &TWO);
    entry::set_count(&mut log, 1);
    let mut answer = Vec::new();
    let question = question();
    if let Ok(Question::Status(asked)) = read_question(payload(&question)) {
        status::write_status_answer(&mut answer, &asked, |_, _| (Status::Spent, 1));
    }
    vec![
        ("notify", notify()),
        ("entry", log),
        ("blocks", [block(1, 2), block(2, 0)].concat()),
        ("errors", errors()),
        ("question", question),
        ("answer", answer),
    ]
}

/// Claim: of the fuzz target's seeds, whole and with any one byte changed, none breaks what the target asserts; and they are
/// of this form. `ASSAY_TEST_BLESS=1` writes them.
#[test]
fn near_the_fuzz_seeds() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../fuzz/seeds/atomizer_messages");
    for (name, seed) in seeds() {
        let path = folder.join(name);
        if std::env::var_os("ASSAY_TEST_BLESS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &seed).unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), seed, "{name}");
        fuzz_messages(&seed);
        for at in 0..seed.len() {
            for change in [1, 0x80, 0xff] {
                let mut near = seed.clone();
                near[at] ^= change;
                fuzz_messages(&near);
            }
        }
    }
}

/// Claim: a block's hash is BLAKE3 of its transactions and what it says of itself, in whatever pieces they were added, and the
/// next block's begins anew.
#[test]
fn a_hash_is_of_all_bytes() {
    let bytes: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
    let head = Head { height: 3, ledger: 7, previous: [9; 32], hash: [0; 32], count: 500 };
    let mut whole = bytes.clone();
    for number in [head.ledger, head.height, head.count] {
        whole.extend_from_slice(&number.to_le_bytes());
    }
    whole.extend_from_slice(&head.previous);
    let expected: Hash = blake3::hash(&whole).into();
    let mut hashing = Hashing::default();
    for piece in [100_000, 1, 176, 1000, 16_384, 20_000] {
        bytes.chunks(piece).for_each(|piece| hashing.add(piece));
        assert_eq!(hashing.end(&head), expected, "{piece}");
    }
}
