//! Services, buckets and strangers that do harm: what each of the outside check's programs did, and what comes of it now.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use object_ledger_node::data::{Attestation, genesis, hex, names};
use object_ledger_node::keys::Key;
use object_ledger_node::pieces::{Code, Piece, split};

use crate::STORAGE;
use crate::programs::{BUCKETS, Ledger, transactions};

fn settled(ledger: &Ledger, count: usize) {
    ledger.wait_for_metric("queue", &format!("ledger_done_total {count}"));
    let clock = clock::Clock::start();
    let is_whole = || {
        let mut all = ["sequence", "proposal", "batch"].iter();
        all.all(|it| {
            let counts: Vec<usize> = (0..BUCKETS).map(|b| ledger.objects(b, it).len()).collect();
            counts[0] > 0 && counts.iter().all(|count| *count == counts[0])
        })
    };
    while !is_whole() {
        assert!(clock.now().as_ns() < 60_000_000_000, "pieces are missing");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Claim (D1): a timestamp service that comes back with another key gets nothing stored: the pipeline says why it is stalled,
/// everything before it verifies, and with the right key again it goes on and nothing is lost.
#[test]
fn another_key() {
    let mut ledger = Ledger::start(STORAGE);
    let before = transactions("before", 2);
    ledger.submit(&before);
    ledger.wait_for(&before);
    ledger.kill("timestamp");
    let secret = ledger.path("timestamp/key.secret");
    let kept = fs::read(&secret).unwrap();
    fs::remove_file(&secret).unwrap();
    ledger.start_again("timestamp");
    ledger.kill("pipeline1");
    let after = transactions("after", 2);
    ledger.submit(&after);
    ledger.wait_for_metric("pipeline0", "ledger_stalled{what=\"token\"} 1");
    assert!(ledger.said(&["verify", "before-0"]).starts_with("verified"));
    ledger.complains(&["verify", "after-0"]);
    // A pipeline that starts looks at the keys before it does anything.
    ledger.start_again("pipeline1");
    ledger.wait_for_metric("pipeline1", "ledger_stalled{what=\"services\"} 1");
    assert!(ledger.metrics("pipeline1").contains("the timestamp service signs with the key"));
    ledger.kill("timestamp");
    fs::write(&secret, kept).unwrap();
    ledger.start_again("timestamp");
    let all = [before, after].concat();
    assert!(ledger.wait_for(&all).values().all(|count| *count == 1));
}

/// Claim (D2): a sequencer that lost its numbers and not its key destroys nothing: pipelines refuse it before it has signed
/// anything twice; after `resume` it goes on after voids, and all of it verifies.
#[test]
fn sequencer_that_started_over() {
    let mut ledger = Ledger::start(STORAGE);
    let before = transactions("old", 4);
    for it in &before {
        ledger.submit(std::slice::from_ref(it));
        ledger.wait_for(std::slice::from_ref(it));
    }
    ledger.wait_for_metric("queue", "ledger_done_total 4");
    for name in ["pipeline0", "pipeline1", "sequencer"] {
        ledger.kill(name);
    }
    let data = ledger.path("sequencer");
    for entry in fs::read_dir(&data).unwrap().flatten() {
        if !entry.file_name().to_string_lossy().starts_with("key.") {
            let path = entry.path();
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        }
    }
    ledger.start_again("sequencer");
    ledger.start_again("pipeline0");
    let after = transactions("new", 2);
    ledger.submit(&after);
    ledger.wait_for_metric("pipeline0", "ledger_stalled{what=\"services\"} 1");
    assert!(ledger.metrics("pipeline0").contains("it has started over"));
    assert!(ledger.said(&["verify", "old-3"]).starts_with("verified"));
    ledger.kill("sequencer");
    let said = ledger.said(&["resume", "--data", &data, "--gap", "5"]);
    assert!(said.contains("void=5"), "{said}");
    ledger.start_again("sequencer");
    let found = ledger.wait_for(&[before, after].concat());
    assert!(found.values().all(|count| *count == 1), "{found:?}");
    let (code, said) = ledger.runs(&["audit", "--ledger", &ledger.file(), "--margin", "0"]);
    assert!(code == 0 && said.contains("new-1"), "{said}");
}

fn asks(address: &str, kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("it answers");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("it answers");
    let length = u32::try_from(9 + payload.len()).expect("it answers").to_be_bytes();
    let frame = [&length[..], &[kind], &1_u64.to_be_bytes(), payload].concat();
    stream.write_all(&frame).expect("it answers");
    let mut head = [0; 4];
    stream.read_exact(&mut head).expect("it answers");
    let mut body = vec![0; usize::try_from(u32::from_be_bytes(head)).expect("it answers")];
    stream.read_exact(&mut body).expect("it answers");
    body
}

/// Claim (D7): a stranger gets neither a number, a token nor a batch, and does no batch; a client with another secret does not
/// either.
#[test]
fn strangers() {
    let ledger = Ledger::start(STORAGE);
    let all = transactions("s", 3);
    ledger.submit(&all);
    ledger.wait_for(&all);
    let pop = [1_u32, 60_000, 0].map(u32::to_be_bytes).concat();
    for (service, kind, payload) in [
        ("sequencer", 0x06, vec![7; 32]),
        ("sequencer", 0x06, vec![7; 196]),
        ("timestamp", 0x05, vec![7; 32]),
        ("queue", 0x02, pop),
        ("queue", 0x03, vec![7; 16]),
        ("queue", 0x0A, vec![7; 32]),
    ] {
        let answer = asks(&ledger.at(service, "requests"), kind, &payload);
        assert_eq!((answer[0], &answer[9..]), (0xFF, &[5][..]), "{service} {kind:#x}");
        assert!(!ledger.metrics(service).contains("ledger_strangers_total 0"), "{service}");
    }
    let more = transactions("t", 3);
    ledger.submit(&more);
    ledger.wait_for(&more);
}

/// Claim: a stranger who asks for numbers from the last one on that can be written gets none, and the sequencer goes on.
#[test]
fn numbers_without_end() {
    let mut ledger = Ledger::empty();
    let (data, stamp) = (ledger.path("sequencer"), format!("--timestamp={}", "ab".repeat(32)));
    ledger.also("sequencer", &["serve", "sequencer", "--data", &data, "--name=served", &stamp]);
    let address = ledger.at("sequencer", "requests");
    for (from, count) in [(u64::MAX, 1_u32), (u64::MAX, u32::MAX), (1, 0), (1, 256)] {
        let payload = [&from.to_be_bytes()[..], &count.to_be_bytes()].concat();
        let answer = asks(&address, 0x07, &payload);
        assert_eq!((answer[0], answer.len()), (0x87, 9), "{from} {count}");
    }
    let key = asks(&address, 0x08, &[]);
    assert_eq!((key[0], hex(&key[9..])), (0x88, ledger.at("sequencer", "key")));
}

fn rewrite(ledger: &Ledger, bucket: usize, with: impl Fn(&[u8]) -> Vec<u8>) {
    for kind in ["sequence", "proposal", "batch"] {
        for path in ledger.objects(bucket, kind) {
            let bytes = with(&fs::read(&path).expect("the folder is ours"));
            fs::write(path, bytes).expect("the folder is ours");
        }
    }
}

/// Claim (D5): one bucket, and even three, that have made-up pieces under every name stop no reader and mislead none; the audit
/// names them.
#[test]
fn buckets_that_make_pieces_up() {
    let ledger = Ledger::start(STORAGE);
    let all = transactions("m", 3);
    ledger.submit(&all);
    ledger.wait_for(&all);
    settled(&ledger, 3);
    for liars in [0..1, 1..3] {
        for bucket in liars {
            rewrite(&ledger, bucket, Piece::made_up);
        }
        for _ in 0..10 {
            assert!(ledger.said(&["verify", "m-1"]).starts_with("verified"));
        }
        let (code, said) = ledger.runs(&["audit", "--ledger", &ledger.file()]);
        assert!(code != 0 && said.contains("0-aws has something else than its piece"), "{said}");
        assert!(said.contains("m-2"), "{said}");
    }
}

/// Claim (D4): a number that the sequencer signed twice, with both attestations whole in the buckets, is refused by every
/// reading, with both as evidence; what stands before it verifies.
#[test]
fn fork() {
    let mut ledger = Ledger::start(STORAGE);
    let all = transactions("f", 3);
    for it in &all {
        ledger.submit(std::slice::from_ref(it));
        ledger.wait_for(std::slice::from_ref(it));
    }
    settled(&ledger, 3);
    ledger.kill("pipeline0");
    ledger.kill("pipeline1");
    let key = Key::in_folder(ledger.path("sequencer").as_ref()).unwrap();
    let last = u64::try_from(ledger.objects(0, "sequence").len()).unwrap();
    let other = key.attestation(&genesis("served"), last, [7; 32]).encoded();
    let name = names::attestation(last);
    for (bucket, piece) in split(Code::THREE_OF_SIX, &name, &other).iter().enumerate().take(3) {
        fs::write(ledger.path(&format!("bucket{bucket}/b{bucket}/{name}")), piece).unwrap();
    }
    // With three pieces of each, which is read first is a matter of luck: both are shown.
    for _ in 0..5 {
        let why = ledger.complains(&["length"]);
        assert!(why.contains("a fork") && why.contains(&hex(&other)), "{why}");
    }
    assert!(ledger.said(&["verify", "f-0"]).starts_with("verified"));
    let (code, why) = ledger.runs(&["audit", "--ledger", &ledger.file()]);
    assert!(code != 0 && why.contains("a fork") && why.contains(&hex(&other)), "{why}");
    assert!(Attestation::parse(&other).is_ok());
}

/// Claim (D3): pieces that three buckets missed while they were away are written when they are back, so that any other three
/// may go; `audit` says so before and after.
#[test]
fn repair() {
    let mut ledger =
        Ledger::start("required_piece_count = 3\nretry_max = 1\nattempt_ms_max = 1000");
    let before = transactions("before", 2);
    ledger.submit(&before);
    ledger.wait_for(&before);
    settled(&ledger, 2);
    let away = ["bucket0", "bucket2", "bucket4"];
    away.iter().for_each(|it| ledger.kill(it));
    let during = transactions("during", 3);
    ledger.submit(&during);
    ledger.wait_for(&during);
    let file = ledger.file();
    let (code, said) = ledger.runs(&["audit", "--ledger", &file]);
    assert!(code != 0 && said.contains("has 3 of 6 pieces, and 4 are wanted"), "{said}");
    away.iter().for_each(|it| ledger.start_again(it));
    settled(&ledger, 5);
    let (code, said) = ledger.runs(&["audit", "--ledger", &file, "--margin", "3"]);
    assert!(code == 0 && said.contains("6 of 6: "), "{said}");
    ["bucket1", "bucket3", "bucket5"].iter().for_each(|it| ledger.kill(it));
    for it in before.iter().chain(&during) {
        assert!(ledger.said(&["verify", it]).starts_with("verified"), "{it}");
    }
    // Pieces that are gone for good are written by a command.
    ["bucket1", "bucket3", "bucket5"].iter().for_each(|it| ledger.start_again(it));
    for path in ledger.objects(1, "batch") {
        fs::remove_file(path).unwrap();
    }
    let said = ledger.said(&["repair"]);
    assert!(said.contains("incomplete=0") && !said.contains("written=0"), "{said}");
    let (code, said) = ledger.runs(&["audit", "--ledger", &file, "--margin", "3"]);
    assert_eq!(code, 0, "{said}");
}

/// Claim (D11): where four buckets have to acknowledge, each piece is read back: a bucket that says that it keeps and keeps
/// nothing does not count.
#[test]
fn acknowledged_and_dropped() {
    let mut ledger = Ledger::start(
        "required_piece_count = 3\nacknowledge = 4\nretry_max = 1\nattempt_ms_max = 1000",
    );
    ledger.kill("bucket0");
    let data = ledger.path("bucket0");
    let listen = format!("--listen={}", ledger.at("bucket0", "requests"));
    ledger.also("bucket0", &["serve", "bucket", "--data", &data, &listen, "--fault", "forgets@0"]);
    ["bucket1", "bucket2"].iter().for_each(|it| ledger.kill(it));
    ledger.kill("pipeline1");
    ledger.submit(&transactions("d", 2));
    ledger.wait_for_metric("pipeline0", "ledger_stalled{what=\"store\"} 1");
    assert!(ledger.metrics("queue").contains("ledger_done_total 0"));
    ledger.start_again("bucket1");
    ledger.wait_for(&transactions("d", 2));
}

/// Answers every request with a body that never ends; gives the address.
fn endless() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || pour(stream));
        }
    });
    address
}

fn pour(mut stream: TcpStream) {
    // It takes the first request for the only one: whoever reads its body to the end never asks again.
    let _ = stream.read(&mut [0; 4096]);
    let head = b"HTTP/1.1 200 OK\r\netag: \"x\"\r\nlast-modified: Tue, 24 Nov 2026 00:00:00 GMT\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = [b"100000\r\n".to_vec(), vec![b'x'; 1 << 20], b"\r\n".to_vec()].concat();
    let mut written = stream.write_all(head);
    while written.is_ok() {
        written = stream.write_all(&chunk);
    }
}

/// Claim (D10): three buckets whose answers never end neither stop a reader nor fill its memory: it verifies from the other
/// three, with about a quarter of the 1.1 GB that one of them took before.
#[test]
fn endless_answers() {
    let mut ledger = Ledger::start(STORAGE);
    let some = transactions("e", 3);
    ledger.submit(&some);
    ledger.wait_for(&some);
    ledger.wait_for_metric("queue", "ledger_done_total 3");
    settled(&ledger, 3);
    let file = fs::read_to_string(ledger.file()).unwrap();
    let text = (0..3).fold(file, |text, bucket| {
        text.replace(&ledger.at(&format!("bucket{bucket}"), "requests"), &endless())
    });
    fs::write(ledger.file(), text).unwrap();
    assert!(ledger.said(&["verify", "e-1", "--within", "60s"]).starts_with("verified"));
    // One that goes on reading: a watcher.
    let words = ["serve", "watcher", "--ledger", &ledger.file(), "--bucket-to-queue=20ms"];
    ledger.also("reader", &words);
    ledger.wait_for_metric("reader", &height_of(&ledger));
    for _ in 0..20 {
        let bytes = ledger.most_bytes("reader");
        assert!(bytes < 280 << 20, "{bytes}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The line of metrics with the height of the main chain, as a reader without those buckets has it.
fn height_of(ledger: &Ledger) -> String {
    let text = ledger.metrics("watcher");
    text.lines().find(|it| it.starts_with("ledger_height ")).unwrap().to_owned()
}
