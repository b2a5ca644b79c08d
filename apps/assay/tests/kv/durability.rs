//! Nothing is cheaper than it is: what was acknowledged had been synced by a majority, and the kernel is the witness.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use crate::harness::{
    self, Place, Running, Server, await_that, beside_others, number, processes_of, signal, trial,
};

/// How long a replica may take to listen, traced and beside other tests.
const START_LIMIT: Duration = Duration::from_secs(20);

/// The work of one replica, by its own account and by the kernel's.
#[derive(Debug)]
struct Account {
    /// Entries of the log that it carried out.
    entries: u64,
    /// Syncs of its log, as it counts them.
    syncs: u64,
    /// Calls of fdatasync, as the kernel saw them.
    calls: u64,
}

/// Two replicas of a group of three, whose third is never there, so that a majority is both of them; each traced. Loads
/// them from so many clients and gives how many transactions were acknowledged, and what each did. `None`, said by name:
/// nothing can be traced here.
fn two_of_three(place: &Place, clients: u32, more: &[&str]) -> Option<(u64, [Account; 2])> {
    if !can_trace(place) {
        harness::say("SKIPPED durability of kv: it takes strace, and to be allowed to trace");
        return None;
    }
    found(place);
    let at = [(); 3].map(|()| Server::free_address());
    let front = [(); 2].map(|()| Server::free_address());
    let replicas = [0, 1].map(|own| {
        let mut words = vec![
            "serve".to_owned(),
            "kv".to_owned(),
            format!("--replica={own}"),
            format!("--listen={}", front[own]),
            format!("--peers={}", at[own]),
            format!("--data=kv/replica{own}"),
            "--tls=kv/tls".to_owned(),
            "--segment-bytes=8388608".to_owned(),
            // The first leads.
            format!("--election-timeout-ms={}", if own == 0 { 300 } else { 30_000 }),
        ];
        words.extend((own == 0).then(|| "--ledger=kv/ledger".to_owned()));
        let others = (0..3).filter(|other| *other != own);
        words.extend(others.map(|other| format!("--peer={other}={}", at[other])));
        words.extend(more.iter().map(|word| (*word).to_owned()));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let counts = format!("counts{own}");
        Running::start(&mut place.started_by(&[&STRACE[..], &["-o", &counts]].concat(), &words))
    });
    for address in front {
        await_that(START_LIMIT, &format!("a replica listens at {address}"), || {
            std::net::TcpStream::connect(address).is_ok()
        });
    }
    let (said, document) = place.experiment(&format!(
        r#"
        system.kind = "kv"
        load = {{ model = "closed", clients = {clients}, connections = 4, warmup = "0s", duration = "3s" }}
        workload = {{ kind = "put" }}
        [system.deploy]
        attach = "{}"
        identity = "kv/tls"
        "#,
        front[0]
    ));
    let fates = &trial(&document)["fates"];
    let once = number(&fates["once"]);
    assert_eq!(number(&fates["lost"]) + number(&fates["duplicate"]), 0, "{fates}");
    // Traced, beside others, on a starved machine.
    assert!(once > 5, "{once} transactions: {}", said.stderr);
    for process in processes_of(place.path()) {
        if !process.command.starts_with("strace ") {
            signal(process.id, Signal::TERM);
        }
    }
    let mut own = 0;
    let accounts = replicas.map(|replica| {
        let words = replica.finish().stderr;
        let before = |what: &str| -> u64 {
            let words: Vec<&str> = words.split_whitespace().collect();
            let place = words.iter().position(|word| word.trim_end_matches(',') == what);
            let number = place.and_then(|place| words.get(place.checked_sub(1)?)?.parse().ok());
            number.unwrap_or_else(|| panic!("the replica did not say how many {what}: {words:?}"))
        };
        let calls = counted(&place.path().join(format!("counts{own}")));
        own += 1;
        Account { entries: before("entries"), syncs: before("syncs"), calls }
    });
    Some((once, accounts))
}

/// Founds the group of three, for which all of them are needed: it ends with its standard input, and its folders and
/// certificates stay.
fn found(place: &Place) {
    let mut command = place.started_by(&[], &["serve", "kv", "--replicas=3", "--data=kv"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut group = command.spawn().expect("it was built");
    let said = BufReader::new(group.stderr.take().expect("it is piped"));
    let mut lines = said.lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("leads now")), "the group was not founded");
    drop(group.stdin.take());
    assert_eq!(lines.filter(|line| line.starts_with("ended by")).count(), 3);
    assert!(group.wait().expect("it was started").success());
}

/// Counts calls and follows threads.
const STRACE: [&str; 6] = ["strace", "-f", "-qq", "-c", "-e", "trace=fdatasync"];

fn can_trace(place: &Place) -> bool {
    harness::program("strace").is_some()
        && harness::finish(&mut place.started_by(&STRACE, &["--version"])).code == 0
}

/// The calls of fdatasync in a table of strace's.
fn counted(path: &Path) -> u64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find(|line| line.split_whitespace().any(|word| word == "fdatasync"));
    let calls = line.and_then(|line| line.split_whitespace().nth(3)?.parse().ok());
    calls.unwrap_or(0)
}

/// Claim: where a majority is two replicas, and no batch is proposed before the one before it is acknowledged, each of the two
/// has called fdatasync at least once for each batch: with one client, each of whose transactions is a batch, as the database is when nothing is
/// said of it; and with many, whose transactions share batches.
#[test]
fn a_majority_syncs_each_batch() {
    let _beside = beside_others();
    for (clients, more) in [(1, &[][..]), (64, &["--window=1"][..])] {
        let place = Place::new();
        let Some((once, accounts)) = two_of_three(&place, clients, more) else { return };
        let batches = accounts[0].entries;
        // All of one client's, beside what a leader begins with; and of many clients several share one.
        let shared = if clients == 1 { once..=once + 2 } else { 1..=once / 2 };
        assert!(shared.contains(&batches), "{once} transactions: {accounts:?}");
        for account in &accounts {
            assert!(account.syncs >= batches, "{batches} batches: {accounts:?}");
            // What it says of itself is true.
            assert!(account.calls >= account.syncs, "{accounts:?}");
        }
    }
}

/// Calls of fdatasync that a replica may need to open its folder and to end, whatever it is asked for in between.
const START_AND_END_CALLS: u64 = 80;

/// Claim: the witness sees the difference: a group that was told not to sync acknowledges batches for which the kernel has
/// seen no call, only those of its start and its end.
#[test]
fn a_group_that_does_not_sync_is_seen() {
    let _beside = beside_others();
    let place = Place::new();
    let Some((_, accounts)) = two_of_three(&place, 1, &["--sync=none"]) else { return };
    for account in &accounts {
        assert!(account.entries > 5 && account.syncs == 0, "{accounts:?}");
        assert!(account.calls < START_AND_END_CALLS, "{accounts:?}");
    }
}
