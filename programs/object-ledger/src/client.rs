//! `submit`, `verify`, `length`, `check`, `watchdog`, `ledger` and what is done beside them: the ledger as its users have it.

mod keeping;

use std::borrow::Cow;
use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use clock::Clock;
use process::shell::Words;

use crate::asking::Service;
use crate::audit::line_of;
use crate::config::Config;
use crate::data::{hex, transaction_id};
use crate::lifecycle::runtime;
use crate::protocol::kind;
use crate::reading::Reading;
use crate::storage::Storage;
use crate::verify::weak;
use crate::watch::Found;

const HELP: &str = "\
All take --ledger FILE, the ledger's file.

All that read the buckets also take --keep FOLDER: what was verified is kept there and not read again.
A transaction is TEXT, or the bytes of --file FILE.

submit [TEXT]              submit a transaction, or each line of standard input; prints the queue's number of each
verify [--weak] TEXT       is a transaction on the main chain? Strong: everything is read from the buckets, and nobody is
                           believed but for two signatures. Weak: --watcher ADDRESS is asked, and believed that the block is
                           on the main chain. With --within TIME it waits so long for it
length                     how long the main chain is, read from the buckets; with --watcher ADDRESS that is asked
check NUMBER               is the block with this sequence number on the main chain?
watchdog [--within TIME]   fails when the main chain, read from the buckets, has not grown for so long (10s);
                           with --for TIME it ends well after that
ledger                     every transaction on the main chain as a line of JSON, read from the buckets alone and verified
repair                     write missing pieces of everything that the buckets hold; nothing is overwritten
checkpoint                 the sequencer's signed checkpoint (c2sp.org/tlog-checkpoint), if the buckets hold what it signs;
                           --witness ADDRESS (once for each) asks a witness to cosign it
prove TEXT                 a proof as a file, under a checkpoint, that anybody verifies without the ledger; --witness as above
proof FILE                 verify such a file: --timestamp KEY --sequencer KEY [--witness NAME=KEY]; nothing else is needed
rotate                     a new key in a service's folder, and the lines of the ledger's file that hand over to it:
                           --data FOLDER --name LEDGER --of timestamp|sequencer --from NUMBER
resume                     for a sequencer that lost its disk and not its key: --data FOLDER, from which it goes on after the
                           numbers of the buckets; --gap N numbers after these are void (1000)
";

/// How long a service may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often something that is not there yet is looked for again.
const AGAIN: Duration = Duration::from_millis(100);

struct Command {
    ledger: Option<PathBuf>,
    watcher: Option<String>,
    within: Option<Duration>,
    lasts: Option<Duration>,
    is_weak: bool,
    file: Option<PathBuf>,
    keep: Option<PathBuf>,
    data: Option<PathBuf>,
    gap: Option<usize>,
    witnesses: Vec<String>,
    word: Option<String>,
}

/// Does what one of the commands says.
pub(crate) fn run(name: &str, words: &[String]) -> Result<(), String> {
    let known = [
        "submit",
        "verify",
        "length",
        "check",
        "watchdog",
        "ledger",
        "repair",
        "checkpoint",
        "prove",
        "proof",
        "rotate",
        "resume",
    ];
    if !words.iter().any(|it| it == "--help") {
        match name {
            "proof" => return keeping::proof(words),
            "rotate" => return keeping::rotate(words),
            _ => {}
        }
    }
    if !known.contains(&name) {
        return Err(format!(
            "there is no command `{name}`; there are: serve, {}, audit, probe",
            known.join(", ")
        ));
    }
    let Some(command) = parse(words)? else {
        print!("{HELP}");
        return Ok(());
    };
    let file = command.ledger.as_deref().ok_or("the ledger's file is needed: --ledger FILE")?;
    let config = Config::read(file)?;
    runtime()?.block_on(async {
        match name {
            "submit" => submit(&config, &command).await,
            "verify" if command.is_weak => verify_weakly(&config, &command).await,
            "verify" => verify(&config, &command).await,
            "length" => length(&config, &command).await,
            "check" => check(&config, &command).await,
            "watchdog" => watchdog(&config, &command).await,
            "repair" => keeping::repair(&config, &command).await,
            "checkpoint" => keeping::checkpoint(&config, &command).await,
            "prove" => keeping::prove(&config, &command).await,
            "resume" => keeping::resume(&config, &command).await,
            _ => ledger(&config, &command).await,
        }
    })
}

fn parse(words: &[String]) -> Result<Option<Command>, String> {
    let mut command = Command {
        ledger: None,
        watcher: None,
        within: None,
        lasts: None,
        is_weak: false,
        file: None,
        keep: None,
        data: None,
        gap: None,
        witnesses: Vec::new(),
        word: None,
    };
    let mut words = Words::new(words);
    while let Some(name) = words.next_word() {
        match name.as_str() {
            "--help" => return Ok(None),
            "--ledger" => command.ledger = Some(words.text()?.into()),
            "--watcher" => command.watcher = Some(words.text()?),
            "--within" => command.within = Some(words.duration()?),
            "--for" => command.lasts = Some(words.duration()?),
            "--weak" => command.is_weak = true,
            "--file" => command.file = Some(words.text()?.into()),
            "--keep" => command.keep = Some(words.text()?.into()),
            "--data" => command.data = Some(words.text()?.into()),
            "--gap" => command.gap = Some(words.number()?),
            "--witness" => command.witnesses.push(words.text()?),
            word if !word.starts_with("--") && command.word.is_none() => {
                command.word = Some(word.to_owned());
            }
            _ => return Err(words.unknown()),
        }
    }
    Ok(Some(command))
}

/// Reads the buckets, and keeps what was verified where that was asked.
fn reading(config: &Config, command: &Command) -> Result<Reading, String> {
    let reading = Reading::new(Storage::open(config, Clock::start())?, config.trust()?);
    match &command.keep {
        Some(folder) => reading.keeping(folder),
        None => Ok(reading),
    }
}

fn said(line: &str) -> Result<(), String> {
    writeln!(std::io::stdout(), "{line}").map_err(|error| format!("writing: {error}"))
}

async fn submit(config: &Config, command: &Command) -> Result<(), String> {
    let queue = Service::at(&Config::address("queue", config.queue.as_ref())?);
    let one = async |transaction: &[u8]| {
        let asked = queue.ask_for(kind::ACCEPTED, kind::SUBMIT, transaction.to_vec(), PATIENCE);
        let number = asked.await.map_err(|error| format!("submitting: {error}"))?;
        let number = <[u8; 8]>::try_from(&number[..]).map_err(|_| queue.garbled().to_string())?;
        said(&format!("accepted {}", u64::from_be_bytes(number)))
    };
    if command.word.is_some() || command.file.is_some() {
        return one(&transaction(command)?).await;
    }
    for line in std::io::stdin().lock().split(b'\n') {
        one(&line.map_err(|error| format!("reading: {error}"))?).await?;
    }
    Ok(())
}

fn transaction(command: &Command) -> Result<Cow<'_, [u8]>, String> {
    match (&command.word, &command.file) {
        (Some(text), None) => Ok(text.as_bytes().into()),
        (None, Some(file)) => {
            let read = std::fs::read(file);
            Ok(read.map_err(|error| format!("reading {}: {error}", file.display()))?.into())
        }
        _ => Err("which transaction? See --help".to_owned()),
    }
}

async fn verify(config: &Config, command: &Command) -> Result<(), String> {
    let transaction = transaction(command)?;
    let clock = Clock::start();
    let until = clock.now().plus(command.within.unwrap_or_default());
    let mut reading = reading(config, command)?;
    loop {
        let read = reading.go_on().await;
        if let Some((it, _)) = reading.find(&transaction).await? {
            return said(&format!(
                "verified number={} height={} place={} batch={} timestamp={}",
                it.number,
                it.height,
                it.index,
                hex(&it.batch),
                clock::WallTime::from_unix_ns(it.issued_unix_ns).rfc3339_ns()
            ));
        }
        if clock.now() >= until {
            read?;
            let (height, next) = (reading.height(), reading.next());
            return Err(format!(
                "the transaction is not on the main chain of {height} blocks (numbers below {next})"
            ));
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn verify_weakly(config: &Config, command: &Command) -> Result<(), String> {
    let transaction = transaction(command)?;
    let address =
        command.watcher.as_deref().ok_or("weak verification asks one: --watcher ADDRESS")?;
    let within = command.within.unwrap_or_default();
    let wait = u32::try_from(within.as_millis()).unwrap_or(u32::MAX).to_be_bytes();
    let payload = [&transaction_id(&transaction)[..], &wait].concat();
    let asked = Service::at(address).ask(kind::LOCATE, payload, within + PATIENCE).await;
    let (kind, payload) = asked.map_err(|error| format!("asking the watcher: {error}"))?;
    if kind != kind::FOUND {
        return Err("the watcher does not know the transaction".to_owned());
    }
    let it = Found::parse(&payload).map_err(|why| format!("the watcher's answer: {why}"))?;
    let verified = weak(&config.trust()?, &transaction, &it.proof, &it.attestation, &it.proposal)
        .map_err(|refusal| format!("refused: {refusal}"))?;
    said(&format!("verified weakly number={} place={}", verified.number, verified.index))
}

async fn length(config: &Config, command: &Command) -> Result<(), String> {
    if let Some(address) = &command.watcher {
        let ask = Service::at(address);
        let answer = ask.ask_for(kind::CHAIN, kind::LENGTH, Vec::new(), PATIENCE).await;
        let answer = answer.map_err(|error| format!("asking the watcher: {error}"))?;
        let height = answer.first_chunk().ok_or_else(|| ask.garbled().to_string())?;
        return said(&u64::from_be_bytes(*height).to_string());
    }
    let mut reading = reading(config, command)?;
    reading.go_on().await?;
    say_uncertain(&reading);
    said(&reading.height().to_string())
}

/// Buckets that are away may have more than what was read.
fn say_uncertain(reading: &Reading) {
    if let Some(why) = reading.uncertain() {
        eprintln!("more may follow, in buckets that are away: {why}");
    }
}

async fn check(config: &Config, command: &Command) -> Result<(), String> {
    let number = command.word.as_deref().and_then(|word| word.parse().ok());
    let number: u64 = number.ok_or("which block? A sequence number from 1 on")?;
    let mut reading = reading(config, command)?;
    reading.go_on().await?;
    match reading.verifier().height_of(number) {
        Some(height) => said(&format!("on the main chain at height {height}")),
        None if number >= reading.next() => Err(format!(
            "number {number} is not in the buckets; the last one is {}",
            reading.next() - 1
        )),
        None => Err(format!("the block with number {number} is not on the main chain")),
    }
}

async fn watchdog(config: &Config, command: &Command) -> Result<(), String> {
    let within = command.within.unwrap_or(Duration::from_secs(10));
    let clock = Clock::start();
    let mut reading = reading(config, command)?;
    let (mut height, mut grown, from) = (0, clock.now(), clock.now());
    loop {
        // What cannot be read now may be at the next look; that is what `within` is for.
        let read = reading.go_on().await;
        let now = clock.now();
        if reading.height() > height {
            height = reading.height();
            grown = now;
            said(&format!("length {height}"))?;
        }
        if now.saturating_since(grown) > within {
            let why = read.err().map(|why| format!(": {why}")).unwrap_or_default();
            let seconds = within.as_secs_f64();
            return Err(format!(
                "the main chain has {height} blocks and has not grown for {seconds} s{why}"
            ));
        }
        if command.lasts.is_some_and(|lasts| now.saturating_since(from) > lasts) {
            return Ok(());
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn ledger(config: &Config, command: &Command) -> Result<(), String> {
    let mut reading = reading(config, command)?;
    reading.go_on().await?;
    say_uncertain(&reading);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let each = reading.each(|it, transaction| {
        let line = line_of(it, transaction);
        writeln!(out, "{line}").map_err(|error| format!("writing: {error}"))
    });
    each.await?;
    out.flush().map_err(|error| format!("writing: {error}"))
}
