//! The ledger as real processes: what it promises holds when they crash, when buckets are away, and when what they hold is
//! broken.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod driven;
mod hostile;
mod hour;
mod kept;
mod programs;

use std::fs;

use programs::{BUCKETS, Ledger, transactions};

const STORAGE: &str = "required_piece_count = 3\nretry_max = 3\nattempt_ms_max = 2000";

fn once(found: &std::collections::BTreeMap<String, u32>) -> bool {
    found.values().all(|count| *count == 1)
}

/// Claim: what is submitted is on the main chain once, is verified strongly and weakly, by two pipelines, and every command
/// says what is so.
#[test]
fn the_whole_way() {
    let ledger = Ledger::start(STORAGE);
    let all = transactions("a", 40);
    assert_eq!(ledger.submit(&all[..20]).len(), 20);
    assert_eq!(ledger.submit(&all[20..]).len(), 20);
    let found = ledger.wait_for(&all);
    assert!(once(&found) && found.len() == all.len(), "{found:?}");
    for transaction in [&all[0], &all[39]] {
        let said = ledger.said(&["verify", transaction]);
        assert!(said.starts_with("verified number="), "{said}");
        let watcher = ledger.at("watcher", "requests");
        let words = ["verify", "--weak", "--watcher", &watcher, "--within=60s", transaction];
        assert!(ledger.said(&words).starts_with("verified weakly number="));
    }
    let why = ledger.complains(&["verify", "never submitted"]);
    assert!(why.contains("is not on the main chain"), "{why}");
    let length: u64 = ledger.said(&["length"]).trim().parse().unwrap();
    assert!(length >= 1);
    assert!(ledger.said(&["check", "1"]).contains("height 1"));
    let why = ledger.complains(&["check", "9999"]);
    assert!(why.contains("number 9999 is not in the buckets"), "{why}");
    let why = ledger.complains(&["watchdog", "--within=300ms"]);
    assert!(why.contains("has not grown for 0.3 s"), "{why}");
    let done = format!("ledger_done_total {}", all.len());
    ledger.wait_for_metric("queue", &done);
    for service in ["queue", "timestamp", "sequencer", "bucket0", "pipeline0", "watcher"] {
        assert!(ledger.metrics(service).contains("# TYPE ledger_"), "{service}");
    }
    assert!(
        ledger.metrics("pipeline0").contains("ledger_bucket_put_seconds_count{bucket=\"5-aws\"}")
    );
}

/// Claim: each service may crash at any time, the queue in the middle of submissions, and nothing that was acknowledged is
/// lost, nor is anything there twice.
#[test]
fn crashes_lose_nothing() {
    let mut ledger = Ledger::start(STORAGE);
    let names = ["queue", "timestamp", "sequencer", "pipeline0", "bucket2", "pipeline1", "watcher"];
    let mut acknowledged = Vec::new();
    for (round, name) in names.into_iter().enumerate() {
        let some = transactions(&format!("r{round}"), 12);
        acknowledged.extend_from_slice(ledger.submit(&some));
        ledger.kill(name);
        // While it is down: acknowledged or not, that is the queue's to say.
        let more = transactions(&format!("d{round}"), 3);
        acknowledged.extend_from_slice(ledger.submit(&more));
        ledger.start_again(name);
    }
    assert!(acknowledged.len() >= names.len() * 12, "{}", acknowledged.len());
    let found = ledger.wait_for(&acknowledged);
    assert!(once(&found), "{found:?}");
    // The audit reads the same from the folders, in whatever order they are named. What was submitted and not acknowledged
    // may still be on its way.
    let clock = clock::Clock::start();
    while ledger.audited(&[5, 4, 3, 2, 1, 0]) != ledger.said(&["ledger"]) {
        assert!(clock.now().as_ns() < 60_000_000_000, "the audit reads something else");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Claim: with three buckets away everything goes on and nothing is lost; with four the pipelines say that they are stalled,
/// and why; when one is back they go on, and what was accepted meanwhile is there.
#[test]
fn buckets_away() {
    let mut ledger = Ledger::start(STORAGE);
    let before = transactions("before", 5);
    assert_eq!(ledger.submit(&before).len(), 5);
    ledger.wait_for(&before);
    for bucket in ["bucket0", "bucket2", "bucket4"] {
        ledger.kill(bucket);
    }
    let three = transactions("three", 5);
    assert_eq!(ledger.submit(&three).len(), 5);
    ledger.wait_for(&three);
    ledger.kill("bucket5");
    let four = transactions("four", 5);
    assert_eq!(ledger.submit(&four).len(), 5, "the queue takes them all the same");
    // Which pipeline has the batch is not known, so the other one is made to go.
    ledger.kill("pipeline1");
    ledger.wait_for_metric("pipeline0", "ledger_stalled{what=\"store\"} 1");
    let why = ledger.complains(&["verify", "four-0"]);
    assert!(why.contains("2 of 6 buckets, and 3 are needed"), "{why}");
    ledger.start_again("bucket5");
    let all = [before, three, four].concat();
    assert!(once(&ledger.wait_for(&all)));
    ledger.wait_for_metric("pipeline0", "ledger_stalled{what=\"store\"} 0");
}

/// Claim: pieces that were changed in three buckets are noticed and not used; in four, verification says what is wrong.
#[test]
fn corrupted_pieces() {
    let mut ledger = Ledger::start(STORAGE);
    let some = transactions("c", 3);
    assert_eq!(ledger.submit(&some).len(), 3);
    ledger.wait_for(&some);
    ledger.wait_for_metric("queue", "ledger_done_total 3");
    // The last pieces are written in the background: nobody writes any more when the pipelines are gone, so until all are
    // there they must not be.
    let clock = clock::Clock::start();
    let is_whole = |bucket| {
        ["sequence", "proposal", "batch"].iter().all(|it| !ledger.objects(bucket, it).is_empty())
    };
    while !(0..BUCKETS).all(is_whole) {
        assert!(clock.now().as_ns() < 60_000_000_000, "pieces are missing");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    ledger.kill("pipeline0");
    ledger.kill("pipeline1");
    let corrupt = |bucket: usize| {
        for path in ledger.objects(bucket, "batch") {
            let mut bytes = fs::read(&path).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(&path, bytes).unwrap();
        }
    };
    (0..3).for_each(corrupt);
    assert!(ledger.said(&["verify", "c-1"]).starts_with("verified"));
    corrupt(3);
    let why = ledger.complains(&["verify", "c-1"]);
    assert!(why.contains("the piece is corrupted"), "{why}");
}

/// Claim: mistakes of users are answered with what to do.
#[test]
fn mistakes() {
    let ledger = Ledger::start(STORAGE);
    let file = fs::read_to_string(ledger.file()).unwrap();
    let with = |from: &str, to: &str| {
        fs::write(ledger.file(), file.replace(from, to)).unwrap();
        ledger.complains(&["length"])
    };
    let required = "required_piece_count = 3";
    for (from, to, part) in [
        (required, "required_piece_count = 7", "cannot be with 6 buckets"),
        (required, "required_pieces = 3", "unknown field"),
        (
            "provider = \"aws\"\nbucket = \"b0\"",
            "provider = \"aws\"\nbucket = \"b0\"\ncredentials = \"nobody\"",
            "OBJECT_LEDGER_NOBODY_ID",
        ),
        ("[keys]\ntimestamp = \"", "[keys]\ntimestamp = \"x", "keys.timestamp is no public key"),
    ] {
        let why = with(from, to);
        assert!(why.contains(part), "{why}");
    }
    fs::write(ledger.file(), &file).unwrap();
    assert!(ledger.complains(&["verify"]).contains("which transaction?"));
    assert!(ledger.complains(&["submit", ""]).contains("1 to 65,536 bytes"));
    assert!(ledger.complains(&["lenght"]).contains("there is no command `lenght`"));
}
