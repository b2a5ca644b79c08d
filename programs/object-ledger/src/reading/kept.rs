//! A client's verified state, in files of a folder: numbers with their blocks, and where transactions stand. Whoever writes
//! these files can hide a transaction from their owner and can make none up: all of it is verified again.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use crate::data::{ATTESTATION_BYTES, Batch, Hash, PROPOSAL_BYTES, hex, transaction_id};
use crate::verify::Verifier;

const NUMBER_BYTES: usize = ATTESTATION_BYTES + PROPOSAL_BYTES;
/// Id, number, place.
const PLACE_BYTES: usize = 32 + 8 + 4;

/// The files, open for what is new.
pub(super) struct Kept {
    numbers: File,
    places: File,
    /// The first number that is not kept.
    next: u64,
}

impl Kept {
    /// Reads what is there: numbers as far as they hold.
    pub(super) fn open(
        folder: &Path,
        verifier: &mut Verifier,
        places: &mut HashMap<Hash, (u64, u32)>,
    ) -> Result<Self, String> {
        let words = |error: std::io::Error| format!("keeping in {}: {error}", folder.display());
        // Another ledger's numbers are in files of their own.
        let ledger = &hex(&verifier.trust().genesis)[..16];
        fs::create_dir_all(folder).map_err(words)?;
        let open = |what: &str| {
            let path = folder.join(format!("{ledger}.{what}"));
            let bytes = match fs::read(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
                read => read.map_err(words)?,
            };
            let file = OpenOptions::new().create(true).append(true).open(&path);
            Ok::<_, String>((file.map_err(words)?, bytes))
        };
        let (numbers, bytes) = open("numbers")?;
        let mut whole = 0;
        for record in bytes.chunks_exact(NUMBER_BYTES) {
            let (attestation, proposal) = record.split_at(ATTESTATION_BYTES);
            let is_void = proposal.iter().all(|byte| *byte == 0);
            if verifier.admit(attestation, if is_void { &[] } else { proposal }).is_err() {
                break;
            }
            whole += NUMBER_BYTES;
        }
        // A torn file, or one that does not hold, is read from the buckets again.
        numbers.set_len(whole as u64).map_err(words)?;
        let next = verifier.next();
        let (file, bytes) = open("places")?;
        for record in bytes.chunks_exact(PLACE_BYTES) {
            let (id, rest) = record.split_first_chunk::<32>().expect("it is longer");
            let (number, place) = rest.split_first_chunk::<8>().expect("it is longer");
            let number = u64::from_be_bytes(*number);
            let place = u32::from_be_bytes(*place.first_chunk().expect("it is longer"));
            if number < next {
                places.entry(*id).or_insert((number, place));
            }
        }
        file.set_len((bytes.len() / PLACE_BYTES * PLACE_BYTES) as u64).map_err(words)?;
        Ok(Self { numbers, places: file, next })
    }

    /// Keeps the numbers below `end`.
    pub(super) fn keep(
        &mut self,
        verifier: &Verifier,
        batches: &BTreeMap<u64, Batch>,
        end: u64,
    ) -> Result<(), String> {
        let (mut numbers, mut places) = (Vec::new(), Vec::new());
        for number in self.next..end {
            let (attestation, proposal) = verifier.admitted(number).expect("it was admitted");
            numbers.extend_from_slice(&attestation.encoded());
            let proposal = proposal.map_or_else(|| vec![0; PROPOSAL_BYTES], |it| it.encoded());
            numbers.extend_from_slice(&proposal);
            let transactions = batches.get(&number).into_iter().flat_map(|it| &it.transactions);
            for (place, transaction) in (0_u32..).zip(transactions) {
                places.extend_from_slice(&transaction_id(transaction));
                places.extend_from_slice(&number.to_be_bytes());
                places.extend_from_slice(&place.to_be_bytes());
            }
        }
        // Places first: a number that is kept without them would hide its transactions.
        let written = self.places.write_all(&places).and_then(|()| self.places.sync_data());
        let written = written.and_then(|()| self.numbers.write_all(&numbers));
        written.map_err(|error| format!("keeping what was verified: {error}"))?;
        self.next = self.next.max(end);
        Ok(())
    }
}
