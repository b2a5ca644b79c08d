//! Bits of a disk that turn by themselves: some of what a node has stored lately is another when it is read again. It
//! knows files and bytes alone, and is used while the node is down.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use model::seed::Rng;

/// Files that were written to this long before the last write to any, or later: what a node works on. A database's
/// templates lie beside it and would take most of the bits.
const LATELY: Duration = Duration::from_secs(3);
/// Bytes that are looked at for each bit until one is not zero: files that grow are mostly zeros.
const LOOKS_MAX: u32 = 20_000;
/// Folders within each other.
const DEPTH_MAX: u32 = 32;
/// Places that are named.
const NAMED_MAX: usize = 20;

/// The bits that flipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rotted {
    /// How many bits.
    pub bits: u64,
    /// The first of them: file and place of the byte.
    pub places: Vec<String>,
}

struct Stored {
    path: PathBuf,
    bytes: u64,
    written: SystemTime,
}

/// Flips so many bits of the files below a folder that were written lately, each in a byte that is not zero, drawn alike
/// from all of them, and syncs them. Fewer where there is nothing to be found.
pub(super) fn flip(folder: &Path, bits: u64, rng: &mut Rng) -> io::Result<Rotted> {
    let mut files = Vec::new();
    find(folder, DEPTH_MAX, &mut files)?;
    let last = files.iter().map(|file| file.written).max();
    files.retain(|file| last.is_some_and(|last| file.written + LATELY >= last) && file.bytes > 0);
    // A folder gives its names in no order.
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let all: u64 = files.iter().map(|file| file.bytes).sum();
    let mut rotted = Rotted::default();
    for _ in 0..bits {
        let Some((file, at, byte)) = draw(&files, all, rng)? else { break };
        let turned = byte ^ 1 << rng.below(8);
        let written = File::options().write(true).open(&file.path)?;
        written.write_all_at(&[turned], at)?;
        written.sync_all()?;
        rotted.bits += 1;
        if rotted.places.len() < NAMED_MAX {
            let name = file.path.strip_prefix(folder).unwrap_or(&file.path);
            rotted.places.push(format!("{} at {at}", name.display()));
        }
    }
    Ok(rotted)
}

/// A byte that is not zero.
fn draw<'a>(
    files: &'a [Stored],
    all: u64,
    rng: &mut Rng,
) -> io::Result<Option<(&'a Stored, u64, u8)>> {
    if all == 0 {
        return Ok(None);
    }
    for _ in 0..LOOKS_MAX {
        let mut at = rng.below(all);
        for file in files {
            if at >= file.bytes {
                at -= file.bytes;
                continue;
            }
            let mut byte = [0];
            File::open(&file.path)?.read_exact_at(&mut byte, at)?;
            if byte != [0] {
                return Ok(Some((file, at, byte[0])));
            }
            break;
        }
    }
    Ok(None)
}

fn find(folder: &Path, depth: u32, files: &mut Vec<Stored>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let facts = entry.metadata()?;
        if facts.is_dir() && depth > 0 {
            find(&entry.path(), depth - 1, files)?;
        } else if facts.is_file() {
            let (path, bytes) = (entry.path(), facts.len());
            files.push(Stored { path, bytes, written: facts.modified()? });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use model::Seed;

    use super::*;

    /// Claim: as many bits turn as were asked for, in files that were written lately and in bytes that held something; the
    /// same seed turns the same ones; and where there is nothing, nothing turns.
    #[test]
    fn bits_turn() {
        let made = || {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir(folder.path().join("log")).unwrap();
            fs::write(folder.path().join("log/1"), [&[7; 100][..], &[0; 10_000]].concat()).unwrap();
            let old = File::create(folder.path().join("template")).unwrap();
            old.write_all_at(&[9; 5_000], 0).unwrap();
            let written = old.metadata().unwrap().modified().unwrap();
            old.set_modified(written - 100 * LATELY).unwrap();
            folder
        };
        let [one, other] = [made(), made()];
        let rotted = flip(one.path(), 3, &mut Seed(1).rng()).unwrap();
        assert_eq!((rotted.bits, flip(other.path(), 3, &mut Seed(1).rng()).unwrap()), (3, rotted));
        let held = fs::read(one.path().join("log/1")).unwrap();
        let turned: u32 = held[..100].iter().map(|byte| (byte ^ 7).count_ones()).sum();
        assert!(turned > 0 && turned <= 3 && held[100..].iter().all(|byte| *byte == 0));
        assert_eq!(fs::read(one.path().join("template")).unwrap(), [9; 5_000]);
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(flip(empty.path(), 3, &mut Seed(1).rng()).unwrap(), Rotted::default());
    }
}
