//! The nodes as processes, without the instrument: atomizers, an archiver and a watchtower, one sender that keeps so many
//! transactions outstanding, and one who follows the blocks.
//!
//! `real peak [--seconds S] [--atomizers N] [--outstanding N] [--folder F] [-- OPTIONS OF ATOMIZERS]`: how much they get
//! through. It prints transactions a second in blocks and the processor time of each process for one of them.
//!
//! `real kill [--times N] [--whom leader|archiver] …`: kills it under load, starts it again, sends once more what no block
//! has, and reads the archive from its disk at the end: every block that was seen is there, and nothing is in two.
//!
//! The example `serve` is to be built beside it. Names of transactions are numbers and not SHA-256: what making them costs is
//! the workload's.

mod load;
mod nodes;

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use atomizer_node::archiver::disk::read_archive;
use clock::{Clock, CpuTime};
use load::Shared;
use nodes::Node;

struct Command {
    seconds: u64,
    atomizers: usize,
    outstanding: u64,
    times: u64,
    kills_archiver: bool,
    folder: String,
    more: Vec<String>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let split = words.iter().position(|it| it == "--").unwrap_or(words.len());
    let (own, more) = (&words[..split], words.get(split + 1..).unwrap_or(&[]));
    let value = |name: &str| {
        let at = own.iter().position(|word| word == name)?;
        own.get(at + 1).cloned()
    };
    let number =
        |name: &str, other: u64| value(name).map_or(other, |it| it.parse().expect("a number"));
    let kills = own.first().is_some_and(|it| it == "kill");
    let command = Command {
        seconds: number("--seconds", 10),
        atomizers: usize::try_from(number("--atomizers", if kills { 3 } else { 1 })).expect("few"),
        outstanding: number("--outstanding", 60_000),
        times: number("--times", 10),
        kills_archiver: value("--whom").is_some_and(|it| it == "archiver"),
        folder: value("--folder").unwrap_or_else(|| ".".to_owned()),
        more: more.to_vec(),
    };
    let folder = tempfile::tempdir_in(&command.folder).expect("a folder");
    if kills { kill(&command, folder.path()) } else { peak(&command, folder.path()) }
}

fn spawn(shared: &Arc<Shared>, run: impl FnOnce(&Shared) + Send + 'static) {
    let shared = Arc::clone(shared);
    std::thread::spawn(move || run(&shared));
}

/// Follows blocks and errors of all, and sends to the one that leads, whoever that is.
fn begin(atomizers: &[Node], shared: &Arc<Shared>) {
    for node in atomizers {
        let (blocks, errors) = (node.address("blocks"), node.address("errors"));
        spawn(shared, move |shared| load::follow(blocks, shared));
        spawn(shared, move |shared| load::hear_errors(errors, shared));
    }
}

fn peak(command: &Command, folder: &Path) -> ExitCode {
    let (atomizers, others) = nodes::start(folder, command.atomizers, &command.more);
    let clock = Clock::start();
    let shared = Arc::new(Shared::new(clock, command.outstanding, false));
    let clients = atomizers[nodes::leader(&atomizers)].address("clients");
    begin(&atomizers, &shared);
    spawn(&shared, move |shared| load::send(clients, shared));
    clock.sleep_until(clock.now().plus(Duration::from_secs(2)));
    let mut nodes: Vec<Node> = atomizers.into_iter().chain(others).collect();
    nodes.iter_mut().for_each(|node| node.cpu_ms_before = node.cpu_ms());
    let of = || (shared.done.load(Ordering::Relaxed), shared.discarded.load(Ordering::Relaxed));
    let (before, began, own_cpu) = (of(), clock.now(), CpuTime::of_this_process());
    for node in &nodes {
        println!("{}: process {}", node.name, node.pid());
    }
    clock.sleep_until(began.plus(Duration::from_secs(command.seconds)));
    let (done, discarded) = (of().0 - before.0, of().1 - before.1);
    let took_s = clock.now().ns_since(began) as f64 / 1e9;
    println!("{:.0} transactions/s in blocks, {discarded} discarded", done as f64 / took_s);
    let mut total = 0.0;
    let mut say = |name: &str, ms: u64| {
        let us = ms as f64 * 1000.0 / done.max(1) as f64;
        total += us;
        println!("{name}: {us:.2} us a transaction, {:.2} processors", ms as f64 / 1000.0 / took_s);
    };
    nodes.iter().for_each(|node| say(&node.name, node.cpu_ms() - node.cpu_ms_before));
    let own = CpuTime::of_this_process().since(own_cpu).as_millis();
    say("sender and follower", u64::try_from(own).expect("not for ever"));
    println!("together: {total:.2} us a transaction");
    shared.stops.store(true, Ordering::Relaxed);
    ExitCode::SUCCESS
}

fn kill(command: &Command, folder: &Path) -> ExitCode {
    let (mut atomizers, mut others) = nodes::start(folder, command.atomizers, &command.more);
    let clock = Clock::start();
    let shared = Arc::new(Shared::new(clock, command.outstanding, true));
    begin(&atomizers, &shared);
    let sleep = |ms| clock.sleep_until(clock.now().plus(Duration::from_millis(ms)));
    for round in 1..=command.times {
        let leads = nodes::leader(&atomizers);
        if round == 1 || !command.kills_archiver {
            // The one before has ended with its connection.
            let clients = atomizers[leads].address("clients");
            spawn(&shared, move |shared| load::send(clients, shared));
        }
        sleep(2500);
        let (killed_at, rate_from) = (clock.now(), shared.done.load(Ordering::Relaxed));
        let killed = if command.kills_archiver { &mut others[0] } else { &mut atomizers[leads] };
        killed.kill();
        let (sent, done) = (shared.sent.load(Ordering::Relaxed), rate_from);
        let height = shared.height.load(Ordering::Relaxed);
        if command.kills_archiver {
            sleep(1000);
            others[0].start_again();
        }
        while shared.height.load(Ordering::Relaxed) <= height + 1 {
            sleep(1);
            assert!(clock.now().ns_since(killed_at) < 20_000_000_000, "no block in 20 s");
        }
        let next_ms = clock.now().ns_since(killed_at) / 1_000_000;
        if !command.kills_archiver {
            atomizers[leads].start_again();
        }
        let again = send_what_is_missing(&atomizers, &shared, sent);
        println!(
            "{round}: {} outstanding when it was killed, the second block after it {next_ms} ms later, {} in blocks without being \
             sent again, {again} sent again",
            sent - done,
            sent - done - again.min(sent - done),
        );
    }
    shared.stops.store(true, Ordering::Relaxed);
    sleep(1000);
    drop(atomizers);
    drop(others);
    audit(folder, &shared)
}

/// Waits for two more blocks, and sends once more what none has. Gives how many those were.
fn send_what_is_missing(atomizers: &[Node], shared: &Shared, sent: u64) -> u64 {
    let mut again = 0;
    for attempt in 0..20 {
        let height = shared.height.load(Ordering::Relaxed);
        while shared.height.load(Ordering::Relaxed) < height + 2 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let missing: Vec<u64> = {
            let seen = shared.seen.as_ref().expect("it is kept").lock();
            let seen = seen.unwrap_or_else(PoisonError::into_inner);
            let is_seen = |it: &u64| seen.numbers.get(*it as usize) == Some(&true);
            (0..sent).filter(|it| !is_seen(it)).take(20_000).collect()
        };
        if missing.is_empty() {
            return again;
        }
        if attempt == 0 {
            again = missing.len() as u64;
        }
        let leads = nodes::leader(atomizers);
        load::send_again(atomizers[leads].address("clients"), &missing, shared);
    }
    panic!("what was sent 20 times is in no block")
}

/// What is on the archiver's disk: every block that was seen, and nothing twice.
fn audit(folder: &Path, shared: &Shared) -> ExitCode {
    let seen = shared.seen.as_ref().expect("it is kept").lock();
    let mut seen = seen.unwrap_or_else(PoisonError::into_inner);
    let (mut stored, mut numbers) = (0_u64, vec![false; seen.numbers.len() + 1_000_000]);
    let mut wrong = std::mem::take(&mut seen.wrong);
    let read = read_archive(&nodes::archive(folder), |archived| {
        let (block, head) = (archived.block, archived.block.head);
        if !archived.follows {
            wrong.push(format!("block {} does not follow the one before", head.height));
        }
        let sum = block.transactions().fold(head.height, |sum, it| load::mix(sum, it.id));
        let known = seen.blocks.remove(&head.height);
        if known.is_some_and(|known| known != (head.count, sum)) {
            wrong.push(format!("block {} is another one than was seen", head.height));
        }
        for it in block.transactions() {
            stored += 1;
            let number = usize::try_from(load::number_of(it.id)).expect("a number of ours");
            if std::mem::replace(&mut numbers[number], true) {
                wrong.push(format!("the inputs of transaction {number} are spent twice"));
            }
        }
    });
    match read {
        Ok(height) => {
            println!("the archive: {height} blocks, {stored} transactions");
            // The last one may have been sent as the archiver was told to end.
            let lost = seen.blocks.keys().filter(|it| **it + 1 < height).count();
            if lost > 0 || seen.blocks.len() > 2 {
                wrong.push(format!("{} blocks were seen and are not stored", seen.blocks.len()));
            }
        }
        Err(error) => wrong.push(error.to_string()),
    }
    wrong.iter().take(10).for_each(|it| println!("WRONG: {it}"));
    println!(
        "{}",
        if wrong.is_empty() {
            "nothing is lost, and nothing is spent twice"
        } else {
            "it does not hold"
        }
    );
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
