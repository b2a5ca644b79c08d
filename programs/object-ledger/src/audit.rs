//! `audit`: every transaction on the main chain, read from the folders of the buckets and from nothing else, verified
//! strongly. It shares with those who make the ledger what data is and how it is verified ([`crate::data`],
//! [`crate::verify`]); how an object is made of its pieces is written here once more. No service, connection, store or
//! configuration of theirs is used.

mod driven;
mod folders;

use std::io::Write as _;

use process::shell::Words;

use crate::data::{Attestation, Batch, PublicKey, Tree, from_hex, genesis, hex, names};
use crate::verify::{Trust, Verified, Verifier};
use folders::Folders;

const HELP: &str = "\
audit: every transaction on the main chain as a line of JSON, read from the folders of buckets alone, each verified.
  --name NAME          the ledger's name
  --timestamp KEY      the timestamp service's public key: what its key.public holds
  --sequencer KEY      the sequencer's
  --bucket FOLDER      the folder of a bucket (DATA/BUCKET); once for each, in any order; enough to rebuild objects
A line is {\"number\",\"height\",\"place\",\"batch\",\"timestamp_unix_ns\",\"transaction\"}. It fails when something is refused.
  --driven             be driven over an inherited descriptor (docs/exec.md): `deploy` brings the above as options name,
                       timestamp, sequencer, buckets; `ledger` answers {\"block\":HEIGHT,\"content\":TRANSACTION} of each
";

/// Where it reads, and whom it believes.
#[derive(Debug)]
struct Audit {
    trust: Trust,
    folders: Folders,
}

/// What was read, for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    blocks: u64,
    numbers: u64,
    transactions: u64,
}

/// Does what the command line says.
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let (mut name, mut timestamp, mut sequencer) = (None, None, None);
    let (mut buckets, mut is_driven) = (Vec::new(), false);
    let mut words = Words::new(words);
    while let Some(word) = words.next_word() {
        match word.as_str() {
            "--help" => {
                print!("{HELP}");
                return Ok(());
            }
            "--name" => name = Some(words.text()?),
            "--timestamp" => timestamp = Some(words.text()?),
            "--sequencer" => sequencer = Some(words.text()?),
            "--bucket" => buckets.push(words.text()?),
            "--driven" => is_driven = true,
            _ => return Err(words.unknown()),
        }
    }
    if is_driven {
        return driven::run();
    }
    let needed = |what: &str, value: Option<String>| {
        value.ok_or_else(|| format!("{what} is needed; see audit --help"))
    };
    let audit = Audit::new(
        &needed("--name", name)?,
        &needed("--timestamp", timestamp)?,
        &needed("--sequencer", sequencer)?,
        &buckets,
    )?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let failed = |error: std::io::Error| format!("writing: {error}");
    let sum = audit.read(|it, transaction| {
        let line = serde_json::json!({
            "number": it.number,
            "height": it.height,
            "place": it.index,
            "batch": hex(&it.batch),
            "timestamp_unix_ns": it.issued_unix_ns,
            "transaction": String::from_utf8_lossy(transaction),
        });
        writeln!(out, "{line}").map_err(failed)
    });
    let sum = sum.map_err(|stopped| stopped.to_string())?;
    out.flush().map_err(failed)?;
    let Sum { blocks, numbers, transactions } = sum;
    eprintln!("{transactions} transactions in {blocks} blocks; {numbers} numbers were looked at");
    Ok(())
}

/// Why an audit came to no end.
#[derive(Debug)]
enum Stopped {
    /// What was read does not hold.
    Refused(String),
    /// It could not be read, or not passed on.
    Unread(String),
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Unread(why) => f.write_str(why),
        }
    }
}

impl From<String> for Stopped {
    fn from(why: String) -> Self {
        Self::Unread(why)
    }
}

fn refused(why: impl std::fmt::Display) -> Stopped {
    Stopped::Refused(why.to_string())
}

impl Audit {
    fn new(
        name: &str,
        timestamp: &str,
        sequencer: &str,
        buckets: &[String],
    ) -> Result<Self, String> {
        let key = |whose: &str, text: &str| -> Result<PublicKey, String> {
            from_hex(text)
                .ok_or_else(|| format!("the {whose}'s key is none: 64 digits of 0-9a-f are wanted"))
        };
        if buckets.is_empty() {
            return Err("no bucket is named: --bucket FOLDER; see audit --help".to_owned());
        }
        let trust = Trust {
            genesis: genesis(name),
            timestamp: key("timestamp service", timestamp)?,
            sequencer: key("sequencer", sequencer)?,
        };
        Ok(Self { trust, folders: Folders::new(buckets) })
    }

    /// Reads all that there is, number by number, and gives each transaction on the main chain, in its order.
    fn read(
        &self,
        mut each: impl FnMut(&Verified, &[u8]) -> Result<(), String>,
    ) -> Result<Sum, Stopped> {
        let mut verifier = Verifier::new(self.trust);
        loop {
            let number = verifier.next();
            let found = self.folders.object(&names::attestation(number));
            if found.is_too_few_folders {
                let words = found.words;
                return Err(format!("too few buckets to rebuild anything: {words}").into());
            }
            let Some(attestation) = found.whole else { break };
            let link = Attestation::parse(&attestation)
                .map_err(|why| refused(format!("the attestation of number {number}: {why}")))?
                .link;
            let proposal = self.needed(&names::proposal(&link), number)?;
            verifier.admit(&attestation, &proposal).map_err(refused)?;
        }
        self.nothing_follows(verifier.next())?;
        let mut sum = Sum { numbers: verifier.next() - 1, ..Sum::default() };
        for (number, proposal) in verifier.blocks() {
            let name = names::batch(&proposal.block.batch);
            let batch = Batch::parse(&self.needed(&name, number)?)
                .map_err(|why| refused(format!("{name} of number {number}: {why}")))?;
            let tree = Tree::of(&batch);
            for (place, transaction) in (0..).zip(&batch.transactions) {
                let proof = tree.proof(place).expect("it is one of its leaves").encoded();
                let verified = verifier.verify(transaction, &proof, number).map_err(refused)?;
                each(&verified, transaction)?;
                sum.transactions += 1;
            }
            sum.blocks += 1;
        }
        Ok(sum)
    }

    /// What a number needs and has to be there: it was stored before the number was given.
    fn needed(&self, name: &str, number: u64) -> Result<Vec<u8>, Stopped> {
        let found = self.folders.object(name);
        let withheld = || format!("{name} of number {number} is withheld: {}", found.words);
        found.whole.ok_or_else(|| refused(withheld()))
    }

    /// No later number can be rebuilt: without the one that is missing nothing behind it can be decided.
    fn nothing_follows(&self, missing: u64) -> Result<(), Stopped> {
        for later in self.folders.numbers()?.range(missing + 1..) {
            if self.folders.object(&names::attestation(*later)).whole.is_some() {
                let words = self.folders.object(&names::attestation(missing)).words;
                return Err(refused(format!(
                    "number {missing} is withheld, and number {later} is there: {words}"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
