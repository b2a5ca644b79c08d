//! `audit`: every transaction on the main chain, read from the buckets (their folders, or their stores) and from nothing else,
//! verified strongly, with the pieces that each object has. It shares with those who make the ledger what data is and how it
//! is verified ([`crate::data`], [`crate::verify`]); how an object is made of its pieces is written here once more. No service
//! is asked, and with folders no store and no configuration.

mod driven;
mod objects;
mod source;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use process::shell::Words;

use crate::config::Config;
use crate::data::{Attestation, Batch, Proposal, PublicKey, Tree, from_hex, genesis, hex, names};
use crate::reading::{is_attestation, is_batch, is_proposal};
use crate::verify::{Fork, Keys, Refusal, Trust, Verified, Verifier};
use objects::{Found, Whole, objects};
use source::Source;

/// Objects that are read at once.
const WINDOW: u64 = 64;
/// Objects that are named when they have too few pieces.
const NAMED_MAX: usize = 8;

const HELP: &str = "\
audit: every transaction on the main chain as a line of JSON, read from the buckets alone, each verified.
  --name NAME          the ledger's name
  --timestamp KEY      the timestamp service's public key: what its key.public holds
  --sequencer KEY      the sequencer's
  --bucket FOLDER      the folder of a bucket (DATA/BUCKET); once for each, in any order; enough to rebuild objects
  --ledger FILE        instead of all of these: the ledger's file, whose stores are read
  --margin N           it fails where an object has fewer than N pieces more than rebuild it (1), or a bucket a wrong one
  --pieces             print also a line {\"object\",\"pieces\",\"of\",\"wrong\"} for each object
A transaction that is no UTF-8 is {\"transaction_base64\"} of its line.
A line is {\"number\",\"height\",\"place\",\"batch\",\"timestamp_unix_ns\",\"transaction\"}. It fails when something is refused.
  --driven             be driven over an inherited descriptor (docs/exec.md): `deploy` brings the above as options name,
                       timestamp, sequencer, buckets (or ledger), margin; `ledger` answers {\"block\":HEIGHT,\"content\":TRANSACTION} of each
";

/// Where it reads, and whom it believes.
#[derive(Debug)]
struct Audit {
    trust: Trust,
    source: Source,
    /// Pieces that an object has to have beyond those that rebuild it.
    margin: usize,
}

/// What was read, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sum {
    blocks: u64,
    numbers: u64,
    transactions: u64,
    /// How many objects have how many pieces.
    pieces: BTreeMap<usize, u64>,
    total: usize,
    /// Objects with too few pieces, and buckets with wrong ones: the first few in words, and how many there are.
    thin: Vec<String>,
    thin_count: u64,
}

impl Sum {
    fn note(&mut self, words: String) {
        self.thin_count += 1;
        if self.thin.len() < NAMED_MAX {
            self.thin.push(words);
        }
    }

    /// Whether each object has enough pieces, and no bucket a wrong one.
    fn is_whole(&self) -> Result<(), Stopped> {
        if self.thin_count == 0 {
            return Ok(());
        }
        Err(Stopped::Refused(format!(
            "{} objects below the margin: {}",
            self.thin_count,
            self.thin.join("; ")
        )))
    }

    fn pieces_in_words(&self) -> String {
        let each = self.pieces.iter().rev();
        let each =
            each.map(|(count, objects)| format!("{count} of {}: {objects} objects", self.total));
        each.collect::<Vec<_>>().join(", ")
    }
}

/// Does what the command line says.
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let (mut name, mut timestamp, mut sequencer) = (None, None, None);
    let (mut buckets, mut is_driven, mut ledger) = (Vec::new(), false, None::<PathBuf>);
    let (mut margin, mut says_pieces) = (1, false);
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
            "--ledger" => ledger = Some(words.text()?.into()),
            "--margin" => margin = words.number()?,
            "--pieces" => says_pieces = true,
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
    let mut audit = match ledger {
        Some(file) => Audit::of_stores(&file)?,
        None => Audit::new(
            &needed("--name", name)?,
            &needed("--timestamp", timestamp)?,
            &needed("--sequencer", sequencer)?,
            &buckets,
        )?,
    };
    audit.margin = margin;
    let out = std::cell::RefCell::new(std::io::BufWriter::new(std::io::stdout().lock()));
    let failed = |error: std::io::Error| format!("writing: {error}");
    let say = |line: serde_json::Value| writeln!(out.borrow_mut(), "{line}").map_err(failed);
    let sum = audit.read(
        |it, transaction| say(line_of(it, transaction)),
        |object, whole| {
            if !says_pieces {
                return Ok(());
            }
            let wrong: Vec<String> = whole.wrong.iter().map(|it| audit.source.name(*it)).collect();
            let (pieces, of) = (whole.pieces, whole.total);
            say(serde_json::json!({"object": object, "pieces": pieces, "of": of, "wrong": wrong}))
        },
    );
    let sum = sum.map_err(|stopped| stopped.to_string())?;
    out.borrow_mut().flush().map_err(failed)?;
    let Sum { blocks, numbers, transactions, .. } = sum;
    eprintln!(
        "{transactions} transactions in {blocks} blocks; {numbers} numbers were looked at; {}",
        sum.pieces_in_words()
    );
    sum.is_whole().map_err(|stopped| stopped.to_string())
}

/// A transaction on the main chain as a line of JSON.
pub(crate) fn line_of(it: &Verified, transaction: &[u8]) -> serde_json::Value {
    let mut line = serde_json::json!({
        "number": it.number,
        "height": it.height,
        "place": it.index,
        "batch": hex(&it.batch),
        "timestamp_unix_ns": it.issued_unix_ns,
    });
    match std::str::from_utf8(transaction) {
        Ok(text) => line["transaction"] = text.into(),
        Err(_) => line["transaction_base64"] = crate::note::base64(transaction).into(),
    }
    line
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
            timestamp: Keys::one(key("timestamp service", timestamp)?),
            sequencer: Keys::one(key("sequencer", sequencer)?),
        };
        let source = Source::Folders(buckets.iter().map(PathBuf::from).collect());
        Ok(Self { trust, source, margin: 1 })
    }

    /// Of the stores that a ledger's file names.
    fn of_stores(file: &Path) -> Result<Self, String> {
        let config = Config::read(file)?;
        Ok(Self { trust: config.trust()?, source: Source::stores(&config)?, margin: 1 })
    }

    /// Reads all that there is, number by number, and gives each transaction on the main chain, in its order, and the pieces of
    /// each object.
    fn read(
        &self,
        mut each: impl FnMut(&Verified, &[u8]) -> Result<(), String>,
        mut each_object: impl FnMut(&str, &Whole) -> Result<(), String>,
    ) -> Result<Sum, Stopped> {
        let mut verifier = Verifier::new(self.trust.clone());
        let mut sum = Sum { total: self.source.count(), ..Sum::default() };
        let mut take = |sum: &mut Sum, name: &str, whole: &Whole| {
            self.count(sum, name, whole);
            each_object(name, whole)
        };
        while self.read_window(&mut verifier, &mut sum, &mut take)? {}
        self.nothing_follows(verifier.next(), &mut sum)?;
        self.no_fork_is_evident(&mut verifier)?;
        sum.numbers = verifier.next() - 1;
        let blocks: Vec<(u64, Proposal)> = verifier.blocks().map(|(n, it)| (n, *it)).collect();
        for window in blocks.chunks(usize::try_from(WINDOW).expect("it is small")) {
            let all: Vec<String> =
                window.iter().map(|(_, it)| names::batch(&it.block.batch)).collect();
            for ((found, name), (number, proposal)) in
                objects(&self.source, &all).into_iter().zip(&all).zip(window)
            {
                let whole = needed(found, name, *number, |whole| is_batch(proposal, whole))?;
                take(&mut sum, name, &whole)?;
                let batch = Batch::parse(&whole.bytes)
                    .map_err(|why| refused(format!("{name} of number {number}: {why}")))?;
                let tree = Tree::of(&batch);
                for (place, transaction) in (0..).zip(&batch.transactions) {
                    let proof = tree.proof(place).expect("it is one of its leaves").encoded();
                    let verified =
                        verifier.verify(transaction, &proof, *number).map_err(refused)?;
                    each(&verified, transaction)?;
                    sum.transactions += 1;
                }
                sum.blocks += 1;
            }
        }
        Ok(sum)
    }

    /// The next numbers; `false`: there are none.
    fn read_window(
        &self,
        verifier: &mut Verifier,
        sum: &mut Sum,
        take: &mut impl FnMut(&mut Sum, &str, &Whole) -> Result<(), String>,
    ) -> Result<bool, Stopped> {
        let from = verifier.next();
        let numbers: Vec<String> = (from..from + WINDOW).map(names::attestation).collect();
        let mut attestations = Vec::new();
        for ((number, name), found) in (from..).zip(&numbers).zip(objects(&self.source, &numbers)) {
            if found.is_too_few_buckets {
                return Err(format!("too few buckets to rebuild anything: {}", found.words).into());
            }
            let Some(whole) = self.only(number, found)? else { break };
            take(sum, name, &whole)?;
            let parsed = Attestation::parse(&whole.bytes)
                .map_err(|why| refused(format!("the attestation of number {number}: {why}")))?;
            attestations.push((number, parsed, whole.bytes));
        }
        let names: Vec<String> =
            attestations.iter().map(|(_, it, _)| names::proposal(&it.link)).collect();
        let proposals = objects(&self.source, &names);
        for (((number, parsed, attestation), found), name) in
            attestations.iter().zip(proposals).zip(&names)
        {
            if parsed.is_void() {
                verifier.admit(attestation, &[]).map_err(refused)?;
                continue;
            }
            let whole = needed(found, name, *number, |whole| is_proposal(&parsed.link, whole))?;
            take(sum, name, &whole)?;
            verifier.admit(attestation, &whole.bytes).map_err(refused)?;
        }
        Ok(attestations.len() == numbers.len())
    }

    /// The one attestation of a number that is signed; two are a fork. Where none is signed, what is there is given.
    fn only(&self, number: u64, found: Found) -> Result<Option<Whole>, Stopped> {
        let is_signed = |it: &&Whole| is_attestation(&self.trust, number, &it.bytes);
        let signed: Vec<&Whole> = found.wholes.iter().filter(is_signed).collect();
        let parsed = |it: &Whole| Attestation::parse(&it.bytes).expect("it was looked at");
        if let [one, other, ..] = signed[..] {
            let fork = Fork { one: parsed(one), other: parsed(other) };
            if fork.one.link != fork.other.link {
                return Err(refused(format!("{}; {fork}", Refusal::Fork { number })));
            }
        }
        Ok(signed.first().copied().or(found.wholes.first()).cloned())
    }

    /// Counts an object's pieces.
    fn count(&self, sum: &mut Sum, name: &str, whole: &Whole) {
        *sum.pieces.entry(whole.pieces).or_default() += 1;
        sum.total = whole.total;
        if whole.pieces < (whole.required + self.margin).min(whole.total) {
            let (pieces, total) = (whole.pieces, whole.total);
            let wanted = whole.required + self.margin;
            sum.note(format!("{name} has {pieces} of {total} pieces, and {wanted} are wanted"));
        }
        if self.margin > 0 {
            for bucket in &whole.wrong {
                let bucket = self.source.name(*bucket);
                sum.note(format!("{bucket} has something else than its piece of {name}"));
            }
        }
    }

    /// No later number can be rebuilt: without the one that is missing nothing after it can be decided. Numbers that are there
    /// in part are named.
    fn nothing_follows(&self, missing: u64, sum: &mut Sum) -> Result<(), Stopped> {
        let listed = self.source.list("sequence")?;
        let later = listed.iter().filter_map(|name| names::attestation_number(name));
        let later: Vec<u64> = later.filter(|it| *it >= missing).collect();
        let all: Vec<String> = later.iter().map(|it| names::attestation(*it)).collect();
        for (number, found) in later.iter().zip(objects(&self.source, &all)) {
            let is_signed = |it: &Whole| is_attestation(&self.trust, *number, &it.bytes);
            if found.wholes.iter().any(is_signed) {
                let words = &objects(&self.source, &[names::attestation(missing)])[0].words;
                return Err(refused(format!(
                    "number {missing} is withheld, and number {number} is there: {words}"
                )));
            }
            if self.margin > 0 {
                let pieces = found.pieces;
                sum.note(format!("number {number} is there in part: {pieces} usable pieces"));
            }
        }
        Ok(())
    }

    /// No pipeline has stored a second attestation of a number.
    fn no_fork_is_evident(&self, verifier: &mut Verifier) -> Result<(), Stopped> {
        let names: Vec<String> = self.source.list("fork")?.into_iter().collect();
        for whole in objects(&self.source, &names).iter().flat_map(|found| &found.wholes) {
            let Ok(other) = Attestation::parse(&whole.bytes) else { continue };
            if let Err(refusal) = verifier.compare(&other) {
                let fork = verifier.fork().map(Fork::to_string).unwrap_or_default();
                return Err(refused(format!("{refusal}; {fork}")));
            }
        }
        Ok(())
    }
}

/// The whole that a number needs and has to be there: it was stored before the number was given. Where none is the right one,
/// what is there is given, and verification says why not.
fn needed(
    found: Found,
    name: &str,
    number: u64,
    is_it: impl Fn(&[u8]) -> bool,
) -> Result<Whole, Stopped> {
    let right = found.wholes.iter().find(|it| is_it(&it.bytes)).or(found.wholes.first());
    let withheld = || refused(format!("{name} of number {number} is withheld: {}", found.words));
    right.cloned().ok_or_else(withheld)
}

#[cfg(test)]
mod tests;
