//! Secrets in files that others write into a run folder: logs and data of nodes. They are looked for, and overwritten
//! where they stand, so that lengths and places stay. It must never be called while a process still writes there.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use model::secret::{self, Secrets};

/// Bytes of a file that are looked through at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// How deep folders are looked through.
const DEPTH_MAX: usize = 32;

/// Overwrites the secrets that are known with `*` in every file under a folder. Links are not followed. Gives how many
/// files had any.
///
/// # Errors
/// The first file that could not be looked through; the others are all the same.
pub fn mask_secrets(folder: &Path) -> io::Result<u64> {
    if !secret::is_any() {
        return Ok(0);
    }
    secret::with_known(|secrets| {
        let (mut count, mut first_error) = (0, None);
        each_file(folder, &mut |path| match mask_file(path, secrets) {
            Ok(had_any) => count += u64::from(had_any),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => first_error = first_error.take().or(Some(error)),
        });
        first_error.map_or(Ok(count), Err)
    })
}

fn mask_file(path: &Path, secrets: &Secrets) -> io::Result<bool> {
    let mut out: Option<File> = None;
    find_secrets(&File::open(path)?, secrets, |range| {
        let file = match &out {
            Some(file) => file,
            None => out.insert(OpenOptions::new().write(true).open(path)?),
        };
        let length = usize::try_from(range.end - range.start).expect("as long as what is held");
        file.write_all_at(&vec![b'*'; length], range.start)
    })?;
    Ok(out.is_some())
}

/// Passes each place of a secret in a file, in bounded memory however long it is. One near the edge of what is held at
/// a time may be passed twice.
///
/// # Errors
/// When the file cannot be read, or what `f` gives.
pub fn find_secrets(
    file: &File,
    secrets: &Secrets,
    mut f: impl FnMut(Range<u64>) -> io::Result<()>,
) -> io::Result<()> {
    let overlap = secrets.form_bytes_max();
    let mut buffer = vec![0; CHUNK_BYTES + overlap];
    let (mut at, mut kept) = (0_u64, 0_usize);
    loop {
        let count = match file.read_at(&mut buffer[kept..], at + kept as u64) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if count == 0 {
            return Ok(());
        }
        let length = kept + count;
        for range in secrets.find(&buffer[..length]) {
            f(at + range.start as u64..at + range.end as u64)?;
        }
        // What may be the beginning of one is looked at again with what follows it.
        kept = length.min(overlap.saturating_sub(1));
        buffer.copy_within(length - kept..length, 0);
        at += (length - kept) as u64;
    }
}

/// Passes every file under a folder. Links are not followed, and what cannot be read is left out.
pub fn each_file(folder: &Path, f: &mut dyn FnMut(&Path)) {
    walk(folder, DEPTH_MAX, f);
}

fn walk(folder: &Path, depth: usize, f: &mut dyn FnMut(&Path)) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => walk(&entry.path(), depth - 1, f),
            Ok(kind) if kind.is_file() => f(&entry.path()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Write as _;

    use super::*;

    /// Claim: what stands across the pieces in which a file is read is found.
    #[test]
    fn across_pieces() {
        let mut secrets = Secrets::default();
        secrets.add("hunter2-hunter2");
        let mut file = tempfile::tempfile().unwrap();
        let mut bytes = vec![b'.'; 3 * CHUNK_BYTES];
        let places = [0, CHUNK_BYTES - 7, 2 * CHUNK_BYTES + 40, 3 * CHUNK_BYTES - 15];
        for at in places {
            bytes[at..at + 15].copy_from_slice(b"hunter2-hunter2");
        }
        file.write_all(&bytes).unwrap();
        let mut found = BTreeSet::new();
        let find = find_secrets(&file, &secrets, |range| {
            assert_eq!(range.end - range.start, 15);
            found.insert(range.start);
            Ok(())
        });
        find.unwrap();
        assert_eq!(found, places.iter().map(|at| *at as u64).collect());
    }

    /// Claim: a file loses its secrets and keeps its length, and one without any is not touched.
    #[test]
    fn masked_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let (log, other) = (folder.path().join("a/b/n.log"), folder.path().join("other"));
        fs::create_dir_all(log.parent().unwrap()).unwrap();
        fs::write(&log, "before mask-me-9f3a after").unwrap();
        fs::write(&other, "nothing").unwrap();
        secret::taint("mask-me-9f3a");
        assert_eq!(mask_secrets(folder.path()).unwrap(), 1);
        assert_eq!(fs::read_to_string(&log).unwrap(), "before ************ after");
        assert_eq!(fs::read_to_string(&other).unwrap(), "nothing");
    }
}
