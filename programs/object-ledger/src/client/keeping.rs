//! The keeper's commands beside a ledger: repair, checkpoints, proofs, other keys, and a sequencer that lost its disk.

use std::io::Write as _;
use std::path::Path;

use clock::Clock;
use process::shell::Words;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Command, PATIENCE, reading, said, transaction};
use crate::asking::Service;
use crate::config::Config;
use crate::data::{from_hex, genesis, hex};
use crate::keys::Key;
use crate::note::{Checkpoint, LogTree, NOTE_BYTES_MAX, lines_of, origin};
use crate::proof::{Believed, Exported};
use crate::protocol::kind;
use crate::reading::{Reading, Repair};
use crate::sequencer;
use crate::storage::Storage;
use crate::verify::Role;

/// Numbers after the last one of the buckets that are void after a resumption, unless said otherwise: more than a sequencer can
/// have given and no pipeline stored.
const GAP: usize = 1_000;

/// Writes missing pieces of everything that the buckets hold.
pub(super) async fn repair(config: &Config, command: &Command) -> Result<(), String> {
    let mut reading = reading(config, command)?;
    let read = reading.go_on().await;
    let Repair { objects, written, incomplete } = reading.repair().await?;
    said(&format!("objects={objects} written={written} incomplete={incomplete}"))?;
    read?;
    if incomplete > 0 {
        return Err(format!(
            "{incomplete} objects are not in every bucket; try again when all are back"
        ));
    }
    Ok(())
}

/// The sequencer's checkpoint, if what it has signed is what the buckets hold.
async fn checkpoint_of(
    config: &Config,
    reading: &Reading,
) -> Result<(String, u64, LogTree), String> {
    let sequencer = Service::at(&Config::address("sequencer", config.sequencer.as_ref())?);
    let note = sequencer.ask_for(kind::NOTE, kind::CHECKPOINT, Vec::new(), PATIENCE).await;
    let note = note.map_err(|error| format!("asking the sequencer: {error}"))?;
    let note = String::from_utf8_lossy(&note).into_owned();
    let checkpoint = Checkpoint::parse(&note).ok_or_else(|| sequencer.garbled().to_string())?;
    let name = origin(&config.name);
    let trust = reading.verifier().trust();
    if checkpoint.origin != name || !trust.sequencer.all().any(|it| checkpoint.is_signed(&name, it))
    {
        return Err("refused: the sequencer has not signed its checkpoint".to_owned());
    }
    let tree = reading.log_tree();
    if checkpoint.size > tree.size() {
        return Err(format!(
            "the sequencer has given {} numbers and the buckets hold {}; try again in a moment",
            checkpoint.size,
            tree.size()
        ));
    }
    if tree.root(checkpoint.size) != checkpoint.root {
        return Err(format!(
            "refused: the sequencer signs another history of {} numbers than the buckets hold; evidence: {note}",
            checkpoint.size
        ));
    }
    Ok((note, checkpoint.size, tree))
}

/// The checkpoint, cosigned by the witnesses that are named.
async fn cosigned(
    config: &Config,
    command: &Command,
    reading: &Reading,
) -> Result<(String, u64, LogTree), String> {
    let (mut note, size, tree) = checkpoint_of(config, reading).await?;
    let signed = note.clone();
    for witness in &command.witnesses {
        let lines = cosign(witness, &signed, size, &tree).await;
        note.push_str(&lines.map_err(|why| format!("the witness at {witness}: {why}"))?);
    }
    Ok((note, size, tree))
}

/// Asks a witness; where it knows another size it is asked once more from there on.
async fn cosign(address: &str, note: &str, size: u64, tree: &LogTree) -> Result<String, String> {
    let mut old = 0;
    for _ in 0..2 {
        let way = if old == 0 || old > size { Vec::new() } else { tree.consistency(old, size) };
        let body = format!("old {old}\n{}\n{note}", lines_of(&way));
        let (status, said) = post(address, &body).await?;
        match (status, said.trim().parse::<u64>()) {
            (200, _) => return Ok(said),
            (409, Ok(known)) if known != old && known <= size => old = known,
            _ => return Err(format!("refused: {status} {}", said.trim())),
        }
    }
    Err("refused: it does not say from where it goes on".to_owned())
}

/// One request of HTTP/1.1 to the witness's address.
async fn post(address: &str, body: &str) -> Result<(u16, String), String> {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        let head = format!(
            "POST /add-checkpoint HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(2 * NOTE_BYTES_MAX as u64).read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    let answer = timeout(PATIENCE, exchange).await.map_err(|_| "no answer in time".to_owned())?;
    let answer = answer.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&answer);
    let (head, said) = text.split_once("\r\n\r\n").ok_or("it says something that is no answer")?;
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
    Ok((status.ok_or("it says something that is no answer")?, said.to_owned()))
}

pub(super) async fn checkpoint(config: &Config, command: &Command) -> Result<(), String> {
    let mut reading = reading(config, command)?;
    reading.go_on().await?;
    let (note, ..) = cosigned(config, command, &reading).await?;
    said(note.trim_end())
}

/// Prints a proof of a transaction that anybody can verify without the ledger.
pub(super) async fn prove(config: &Config, command: &Command) -> Result<(), String> {
    let transaction = transaction(command)?;
    let mut reading = reading(config, command)?;
    let read = reading.go_on().await;
    let Some((at, batch)) = reading.find(&transaction).await? else {
        read?;
        return Err("the transaction is not on the main chain".to_owned());
    };
    let (note, size, tree) = cosigned(config, command, &reading).await?;
    if at.number > size {
        return Err(
            "the sequencer's checkpoint does not reach the transaction yet; try again".to_owned()
        );
    }
    let (attestation, proposal) = reading.verifier().admitted(at.number).expect("it was verified");
    let proposal = proposal.expect("it was verified");
    let parts = (&batch, &attestation, &proposal);
    let exported = Exported::new(&config.name, &transaction, &at, parts, (&tree, &note), size);
    let text = serde_json::to_string_pretty(&exported).map_err(|error| error.to_string())?;
    said(&text)
}

/// `proof FILE`: verifies a proof without the ledger.
pub(super) fn proof(words: &[String]) -> Result<(), String> {
    let (mut file, mut timestamp, mut sequencer, mut witnesses) = (None, None, None, Vec::new());
    let mut words = Words::new(words);
    let key = |text: &str| {
        from_hex(text).ok_or_else(|| format!("{text} is no public key: 64 digits of 0-9a-f"))
    };
    while let Some(name) = words.next_word() {
        match name.as_str() {
            "--timestamp" => timestamp = Some(key(&words.text()?)?),
            "--sequencer" => sequencer = Some(key(&words.text()?)?),
            "--witness" => {
                let text = words.text()?;
                let (name, text) = text.split_once('=').ok_or("expected --witness NAME=KEY")?;
                witnesses.push((name.to_owned(), key(text)?));
            }
            word if !word.starts_with("--") && file.is_none() => file = Some(word.to_owned()),
            _ => return Err(words.unknown()),
        }
    }
    let usage = "proof FILE --timestamp KEY --sequencer KEY [--witness NAME=KEY]";
    let file = file.ok_or_else(|| format!("expected {usage}"))?;
    let believed = Believed {
        timestamp: timestamp.ok_or_else(|| format!("expected {usage}"))?,
        sequencer: sequencer.ok_or_else(|| format!("expected {usage}"))?,
        witnesses,
    };
    let text =
        std::fs::read_to_string(&file).map_err(|error| format!("reading {file}: {error}"))?;
    let exported: Exported = serde_json::from_str(&text)
        .map_err(|error| format!("refused: {file} is no proof: {error}"))?;
    let (transaction, at) = exported.verify(&believed)?;
    said(&format!(
        "verified number={} height={} place={} timestamp={} bytes={}",
        at.number,
        at.height,
        at.index,
        clock::WallTime::from_unix_ns(at.issued_unix_ns).rfc3339_ns(),
        transaction.len()
    ))
}

/// `rotate`: puts a new key into a service's folder; the lines that it prints hand over to it.
pub(super) fn rotate(words: &[String]) -> Result<(), String> {
    let (mut data, mut name, mut of, mut from) = (None, None, None, None);
    let mut words = Words::new(words);
    while let Some(word) = words.next_word() {
        match word.as_str() {
            "--data" => data = Some(words.text()?),
            "--name" => name = Some(words.text()?),
            "--of" => {
                let roles = [
                    ("timestamp", ("timestamp", Role::Timestamp)),
                    ("sequencer", ("sequencer", Role::Sequencer)),
                ];
                of = Some(words.one_of(&roles)?);
            }
            "--from" => from = Some(words.number::<u64>()?),
            _ => return Err(words.unknown()),
        }
    }
    let (Some(data), Some(name), Some((of, role)), Some(from)) = (data, name, of, from) else {
        return Err(
            "expected rotate --data FOLDER --name LEDGER --of timestamp|sequencer --from NUMBER"
                .to_owned(),
        );
    };
    let (old, new) = Key::replaced_in(Path::new(&data))
        .map_err(|error| format!("the key in {data}: {error}"))?;
    let signature = old.endorse(&genesis(&name), role, from, &new.public());
    said(&format!(
        "[[keys.next]]\nof        = \"{of}\"\nkey       = \"{}\"\nfrom      = {from}\nsignature = \"{}\"",
        hex(&new.public()),
        hex(&signature)
    ))
}

/// `resume`: the log of a sequencer that lost its disk, from what the buckets hold. Numbers that it may have given and nobody
/// stored are void.
pub(super) async fn resume(config: &Config, command: &Command) -> Result<(), String> {
    let data = command
        .data
        .as_deref()
        .ok_or("which folder? --data FOLDER of the sequencer, with its key")?;
    let mut reading = Reading::new(Storage::open(config, Clock::start())?, config.trust()?);
    reading.go_on().await?;
    if let Some(why) = reading.uncertain() {
        return Err(format!("more numbers may be in buckets that are away: {why}"));
    }
    let known = (1..reading.next()).map(|number| {
        let (_, proposal) = reading.verifier().admitted(number).expect("it was admitted");
        proposal
    });
    let gap = command.gap.unwrap_or(GAP);
    let bytes = sequencer::resumption(known.chain(std::iter::repeat_n(None, gap)));
    let failed =
        |error: std::io::Error| format!("the sequencer's folder {}: {error}", data.display());
    let path = data.join(sequencer::RESUME);
    let mut file = std::fs::File::create_new(path).map_err(failed)?;
    file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(failed)?;
    said(&format!("numbers={} void={gap}", reading.next() - 1))
}
