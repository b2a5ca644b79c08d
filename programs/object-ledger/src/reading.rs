//! The main chain as a client reads it by itself: from the buckets, verified number by number, many numbers at once. What was
//! verified can be kept in a folder, so that no reader reads it twice; what is kept is verified again when it is taken up.

mod kept;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};

use crate::data::{Attestation, Batch, Hash, Proposal, Tree, names, transaction_id};
use crate::note::{LogTree, leaf_of};
use crate::storage::{Storage, Unavailable, Wholes};
use crate::verify::{Fork, Refusal, Trust, Verified, Verifier};
use kept::Kept;

/// Numbers that are read at once, when there are many.
const WIDTH_MAX: u64 = 128;
/// Objects that are read or repaired at once.
const OBJECTS_AT_ONCE: usize = 128;
/// Names of later numbers that are looked at when one is missing.
const LATER_MAX: usize = 16;
/// The first wait before buckets that were away are looked at again, and the longest.
const REPAIR_AGAIN: Duration = Duration::from_secs(5);
const REPAIR_AGAIN_MAX: Duration = Duration::from_secs(300);

/// Everything that was read so far.
pub(crate) struct Reading {
    storage: Arc<Storage>,
    verifier: Verifier,
    /// Batches of blocks on the main chain that are in memory, by number.
    batches: BTreeMap<u64, Batch>,
    /// Where transactions stand, by id: number and place.
    places: HashMap<Hash, (u64, u32)>,
    /// Blocks on the main chain whose batch is not read yet.
    missing: BTreeMap<u64, Proposal>,
    /// Why it is not certain that nothing follows.
    uncertain: Option<String>,
    kept: Option<Kept>,
}

/// A number as the buckets have it.
struct Number {
    attestation: Vec<u8>,
    /// Empty of a void.
    proposal: Vec<u8>,
    /// Other objects under its name.
    others: Wholes,
}

/// Why a number was not read.
enum End {
    /// It is in no bucket.
    Nothing,
    /// It may be in buckets that are away.
    Uncertain(String),
    Failed(String),
}

/// Whether bytes are the attestation of a number, signed.
pub(crate) fn is_attestation(trust: &Trust, number: u64, whole: &[u8]) -> bool {
    Attestation::parse(whole).is_ok_and(|it| it.number == number && trust.has_signed(&it))
}

/// Whether bytes are the block with the token that has a link.
pub(crate) fn is_proposal(link: &Hash, whole: &[u8]) -> bool {
    let is_it = |it: Proposal| it.token.link() == *link && it.token.link == it.block.link();
    Proposal::parse(whole).is_ok_and(is_it)
}

/// Whether bytes are the batch of a block.
pub(crate) fn is_batch(of: &Proposal, whole: &[u8]) -> bool {
    let block = &of.block;
    Batch::parse(whole).is_ok_and(|it| it.id == block.batch && Tree::of(&it).root() == block.root)
}

async fn number(storage: Arc<Storage>, trust: Arc<Trust>, number: u64) -> Result<Number, End> {
    let name = names::attestation(number);
    let mut others = storage.wholes(&name);
    let failed = |error: Unavailable| {
        if error.is_nothing_seen() {
            End::Uncertain(error.to_string())
        } else {
            End::Failed(error.to_string())
        }
    };
    let attestation = others.next(|whole| is_attestation(&trust, number, whole)).await;
    let attestation = attestation.map_err(failed)?.ok_or(End::Nothing)?;
    let parsed = Attestation::parse(&attestation).expect("it was looked at");
    if parsed.is_void() {
        return Ok(Number { attestation, proposal: Vec::new(), others });
    }
    let name = names::proposal(&parsed.link);
    let proposal = storage.fetch(&name, |whole| is_proposal(&parsed.link, whole)).await;
    match proposal.map_err(|error| End::Failed(error.to_string()))? {
        Some(proposal) => Ok(Number { attestation, proposal, others }),
        None => {
            // Another signed attestation says more than a block that is missing.
            let is_it = |whole: &[u8]| is_attestation(&trust, number, whole);
            let other = others.next(is_it).await.ok().flatten();
            let other = other.and_then(|other| Attestation::parse(&other).ok());
            Err(End::Failed(match other.filter(|other| other.link != parsed.link) {
                Some(other) => {
                    let (refusal, fork) = (Refusal::Fork { number }, Fork { one: parsed, other });
                    format!("refused: {refusal}; {fork}")
                }
                None => format!(
                    "refused: the block of number {number} is withheld: {name} is in no bucket"
                ),
            }))
        }
    }
}

impl Reading {
    pub(crate) fn new(storage: Arc<Storage>, trust: Trust) -> Self {
        Self {
            storage,
            verifier: Verifier::new(trust),
            batches: BTreeMap::new(),
            places: HashMap::new(),
            missing: BTreeMap::new(),
            uncertain: None,
            kept: None,
        }
    }

    /// Takes up what was verified before and kept in a folder, and keeps there what is verified from now on.
    pub(crate) fn keeping(mut self, folder: &Path) -> Result<Self, String> {
        self.kept = Some(Kept::open(folder, &mut self.verifier, &mut self.places)?);
        Ok(self)
    }

    pub(crate) fn height(&self) -> u64 {
        self.verifier.height()
    }

    pub(crate) fn next(&self) -> u64 {
        self.verifier.next()
    }

    pub(crate) const fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// Why it is not certain that nothing follows: buckets that are away may have more.
    pub(crate) fn uncertain(&self) -> Option<&str> {
        self.uncertain.as_deref()
    }

    /// Reads what is new. What was read stays, also where something that follows does not hold.
    pub(crate) async fn go_on(&mut self) -> Result<(), String> {
        let numbers = self.read_numbers().await;
        let batches = self.read_batches().await;
        if let Some(kept) = &mut self.kept {
            let whole = self.missing.keys().next().map_or(self.verifier.next(), |it| *it);
            kept.keep(&self.verifier, &self.batches, whole)?;
        }
        numbers?;
        batches?;
        self.is_complete().await
    }

    async fn read_numbers(&mut self) -> Result<(), String> {
        let trust = Arc::new(self.verifier.trust().clone());
        let mut width = 1;
        let mut all_others = Vec::new();
        let mut end = None;
        while end.is_none() {
            let next = self.verifier.next();
            let each = (next..next + width)
                .map(|it| number(Arc::clone(&self.storage), Arc::clone(&trust), it));
            for (at, read) in (next..).zip(futures_util::future::join_all(each).await) {
                match read {
                    Ok(Number { attestation, proposal, others }) => {
                        if let Err(refusal) = self.verifier.admit(&attestation, &proposal) {
                            end = Some(End::Failed(self.refused(refusal)));
                            break;
                        }
                        all_others.push(others);
                        if self.verifier.height_of(at).is_some() {
                            let proposal = Proposal::parse(&proposal).expect("it was admitted");
                            self.missing.insert(at, proposal);
                        }
                    }
                    Err(why) => {
                        end = Some(why);
                        break;
                    }
                }
            }
            width = (2 * width).min(WIDTH_MAX);
        }
        self.compare(all_others, &trust).await?;
        self.uncertain = None;
        match end {
            Some(End::Failed(why)) => Err(why),
            Some(End::Uncertain(why)) => {
                self.uncertain = Some(why);
                Ok(())
            }
            Some(End::Nothing) | None => Ok(()),
        }
    }

    /// Looks at everything else that stands under the names of numbers: another signed attestation is a fork.
    async fn compare(&mut self, all: Vec<Wholes>, trust: &Trust) -> Result<(), String> {
        for mut others in all {
            let is_signed =
                |whole: &[u8]| Attestation::parse(whole).is_ok_and(|it| trust.has_signed(&it));
            // A bucket that does not answer cannot show another one.
            while let Ok(Some(other)) = others.next(is_signed).await {
                let other = Attestation::parse(&other).expect("it was looked at");
                self.verifier.compare(&other).map_err(|refusal| self.refused(refusal))?;
            }
        }
        Ok(())
    }

    fn refused(&self, refusal: Refusal) -> String {
        match (refusal, self.verifier.fork()) {
            (Refusal::Fork { .. }, Some(fork)) => format!("refused: {refusal}; {fork}"),
            _ => format!("refused: {refusal}"),
        }
    }

    async fn read_batches(&mut self) -> Result<(), String> {
        let storage = &self.storage;
        let each = self.missing.clone().into_iter().map(|(number, proposal)| async move {
            let name = names::batch(&proposal.block.batch);
            let batch = storage.fetch(&name, |whole| is_batch(&proposal, whole)).await;
            let batch = batch.map_err(|error| error.to_string()).and_then(|batch| {
                batch.ok_or_else(|| format!("refused: {name} of number {number} is withheld"))
            });
            (number, batch)
        });
        let mut read = stream::iter(each).buffer_unordered(OBJECTS_AT_ONCE);
        let mut failed = Ok(());
        while let Some((number, batch)) = read.next().await {
            match batch {
                Ok(whole) => {
                    let batch = Batch::parse(&whole).expect("it was looked at");
                    for (place, transaction) in (0..).zip(&batch.transactions) {
                        let id = transaction_id(transaction);
                        let known = self.places.entry(id).or_insert((number, place));
                        *known = (*known).min((number, place));
                    }
                    self.batches.insert(number, batch);
                    self.missing.remove(&number);
                }
                Err(why) => failed = Err(why),
            }
        }
        failed
    }

    /// No later number is there, signed: without the one that is missing nothing after it can be decided. A name alone shows
    /// nothing, since a bucket may list what it likes.
    async fn is_complete(&self) -> Result<(), String> {
        let next = self.verifier.next();
        let later = self.storage.list("sequence", &names::attestation(next), LATER_MAX).await;
        for number in later.iter().filter_map(|name| names::attestation_number(name)) {
            let trust = self.verifier.trust();
            let is_it = |whole: &[u8]| is_attestation(trust, number, whole);
            let there = self.storage.fetch(&names::attestation(number), is_it).await;
            if number > next && there.is_ok_and(|it| it.is_some()) {
                return Err(format!(
                    "refused: number {next} is withheld, so that nothing behind it can be decided"
                ));
            }
        }
        Ok(())
    }

    async fn batch(&self, number: u64) -> Result<Batch, String> {
        if let Some(batch) = self.batches.get(&number) {
            return Ok(batch.clone());
        }
        let proposal = self.verifier.admitted(number).and_then(|(_, proposal)| proposal);
        let proposal = proposal.ok_or_else(|| format!("number {number} has no block"))?;
        let name = names::batch(&proposal.block.batch);
        let whole = self.storage.fetch(&name, |whole| is_batch(&proposal, whole)).await;
        let whole = whole.map_err(|error| error.to_string())?;
        let whole =
            whole.ok_or_else(|| format!("refused: {name} of number {number} is withheld"))?;
        Ok(Batch::parse(&whole).expect("it was looked at"))
    }

    /// Strong verification of a transaction, if it is anywhere, with its batch.
    pub(crate) async fn find(
        &self,
        transaction: &[u8],
    ) -> Result<Option<(Verified, Batch)>, String> {
        let Some((number, place)) = self.places.get(&transaction_id(transaction)).copied() else {
            return Ok(None);
        };
        let batch = self.batch(number).await?;
        let proof = Tree::of(&batch).proof(place).ok_or("what was kept is of another ledger")?;
        let verified = self.verifier.verify(transaction, &proof.encoded(), number);
        let verified = verified.map_err(|refusal| self.refused(refusal))?;
        Ok(Some((verified, batch)))
    }

    /// Every transaction, verified, in the order of the main chain.
    pub(crate) async fn each(
        &self,
        mut each: impl FnMut(&Verified, &[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        for (number, _) in self.verifier.blocks() {
            let batch = self.batch(number).await?;
            let tree = Tree::of(&batch);
            for (place, transaction) in (0..).zip(&batch.transactions) {
                let proof = tree.proof(place).expect("it is one of its leaves").encoded();
                let verified = self.verifier.verify(transaction, &proof, number);
                each(&verified.map_err(|refusal| self.refused(refusal))?, transaction)?;
            }
        }
        Ok(())
    }

    /// The tree of all numbers, for checkpoints.
    pub(crate) fn log_tree(&self) -> LogTree {
        let mut tree = LogTree::default();
        for number in 1..self.verifier.next() {
            let (attestation, _) = self.verifier.admitted(number).expect("it was admitted");
            tree.push(leaf_of(&attestation, self.verifier.height_of(number)));
        }
        tree
    }

    /// Writes missing pieces of everything that was read; nothing is overwritten.
    pub(crate) async fn repair(&self) -> Result<Repair, String> {
        let each = (1..self.verifier.next()).map(|number| async move {
            let (attestation, proposal) = self.verifier.admitted(number).expect("it was admitted");
            let mut objects = vec![(names::attestation(number), attestation.encoded())];
            if let Some(proposal) = proposal {
                objects.push((names::proposal(&attestation.link), proposal.encoded()));
                if self.verifier.height_of(number).is_some() {
                    let batch = self.batch(number).await?;
                    objects.push((names::batch(&batch.id), batch.encoded()));
                }
            }
            let mut sum = Repair::default();
            for (name, whole) in objects {
                let repaired = self.storage.repair(&name, &whole).await;
                sum.objects += 1;
                sum.written += repaired.written;
                sum.incomplete += usize::from(repaired.well < self.storage.total());
            }
            Ok::<_, String>(sum)
        });
        let mut all = stream::iter(each).buffer_unordered(OBJECTS_AT_ONCE);
        let (mut sum, mut failed) = (Repair::default(), None);
        while let Some(one) = all.next().await {
            match one {
                Ok(one) => {
                    sum.objects += one.objects;
                    sum.written += one.written;
                    sum.incomplete += one.incomplete;
                }
                Err(why) => failed = Some(why),
            }
        }
        failed.map_or(Ok(sum), Err)
    }
}

/// Findings and deeds of a repair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Repair {
    pub(crate) objects: usize,
    /// Pieces that were missing and were written.
    pub(crate) written: usize,
    /// Objects that some bucket still has no right piece of.
    pub(crate) incomplete: usize,
}

/// Writes what buckets miss of everything that was there at the start, until every bucket has all of it.
pub(crate) async fn repair_all(storage: Arc<Storage>, trust: Trust) {
    let mut wait = REPAIR_AGAIN;
    loop {
        let mut reading = Reading::new(Arc::clone(&storage), trust.clone());
        // Objects that are new meanwhile are the writers' own business.
        let read = reading.go_on().await;
        let repaired = reading.repair().await;
        if read.is_ok() && repaired.is_ok_and(|it| it.incomplete == 0) {
            return;
        }
        tokio::time::sleep(wait).await;
        wait = (2 * wait).min(REPAIR_AGAIN_MAX);
    }
}
