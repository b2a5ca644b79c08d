//! What a start finds: the records of each log up to the torn end of the last write, or a reason not to start.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::files::{Files, OpenFile, sync_folder};
use super::format::{self, Header};
use super::log::{Log, Sealed, draw_stamps};
use super::segments::{make, make_folder, path_of, sequence_of, start_path};
use super::{StoreCounters, StoreError, StoreOptions, cell};
use crate::StoredLog;

/// Takes the folder for this process; the kernel gives it back at its end, however it ends.
pub(super) fn lock(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join("lock");
    let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = opened.map_err(StoreError::system("opening", &path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(StoreError::Locked { path: folder.to_owned() }),
        Err(error) => Err(StoreError::system("locking", path)(error.into())),
    }
}

/// A segment that has a header.
struct Used {
    path: PathBuf,
    header: Header,
}

/// Opens a log, to go on in a segment of its own: what the last write of the process before has left behind the
/// cut can then never stand behind a new record.
pub(super) fn log(
    files: &Arc<dyn Files>,
    folder: &Path,
    options: StoreOptions,
    counters: &Arc<StoreCounters>,
    recent_bytes: usize,
) -> Result<(Log, StoredLog), StoreError> {
    make_folder(&**files, folder)?;
    let (used, unused, sequence) = segments(&**files, folder)?;
    let (records, sealed) = read(&**files, &used, recent_bytes)?;
    let next = records.next();
    let [drawn, next_stamp] = draw_stamps(&**files)?;
    let expected = used.last().map(|it| it.header.next_stamp).filter(|stamp| *stamp != 0);
    let path = path_of(folder, sequence);
    let mut is_to_go = false;
    if let Some(path) = unused.first() {
        // Its header may be what is damaged: then its records say that they were durable. Where their stamp is not known, one
        // of its file's earlier life says that nothing was written after it.
        let bytes = files.read(path).map_err(StoreError::system("reading", path))?;
        let is_looked_through = expected.is_some() || format::read_header(&bytes).is_none();
        if is_looked_through && format::was_durable(&bytes, format::HEADER_BYTES, next, expected) {
            return Err(StoreError::Broken { path: path.clone(), offset: 0, number: next });
        }
        // Records that were never acknowledged must not stand after new ones of their stamp.
        is_to_go = expected.is_some_and(|stamp| format::holds_stamp(&bytes, stamp));
    }
    for other in unused.iter().filter(|other| is_to_go || **other != path) {
        files.remove(other).map_err(StoreError::system("removing", other))?;
    }
    let header = Header { sequence, first: next, stamp: expected.unwrap_or(drawn), next_stamp };
    let file = begin(&**files, &path, &header, options.segment_bytes)?;
    if used.is_empty() {
        cell::replace(&**files, &start_path(folder), &sequence.to_le_bytes())?;
    }
    let log = Log::new(files, folder.to_owned(), options, counters, sealed, (file, header));
    Ok((log, records))
}

/// A new segment with its header, durable. The process before may have made its file ahead: one of the right size
/// is whole, because its size grows with the zeros.
fn begin(
    files: &dyn Files,
    path: &Path,
    header: &Header,
    bytes: usize,
) -> Result<Box<dyn OpenFile>, StoreError> {
    let wanted = u64::try_from(bytes).expect("a file's size fits");
    let file = if files.length(path).is_ok_and(|made| made == wanted) {
        // It may have been killed before the name was durable.
        sync_folder(files, path.parent().unwrap_or(Path::new(".")))?;
        files.open(path).map_err(StoreError::system("opening", path))?
    } else {
        make(files, path, bytes)?
    };
    let mut head = Vec::new();
    format::write_header(header, &mut head);
    file.write_all_at(&head, 0).map_err(StoreError::system("writing", path))?;
    file.sync_all().map_err(|source| StoreError::Sync { path: path.to_owned(), source })?;
    Ok(file)
}

/// The segments that have been written to, in order and without a gap; those that were only made; and the
/// sequence of the next. What was trimmed and not removed in time is removed.
fn segments(
    files: &dyn Files,
    folder: &Path,
) -> Result<(Vec<Used>, Vec<PathBuf>, u64), StoreError> {
    let start = start(files, folder)?;
    let mut found = Vec::new();
    for path in files.list(folder).map_err(StoreError::system("listing", folder))? {
        found.extend(sequence_of(&path).map(|sequence| (sequence, path)));
    }
    found.sort();
    let mut expected = start.unwrap_or(1);
    let (mut used, mut unused) = (Vec::new(), Vec::new());
    for (sequence, path) in found {
        if sequence < expected {
            files.remove(&path).map_err(StoreError::system("removing", &path))?;
            continue;
        }
        if sequence > expected {
            return Err(StoreError::Missing { path: path_of(folder, expected) });
        }
        expected += 1;
        match header(files, &path)?.filter(|header| header.sequence == sequence) {
            None => unused.push(path),
            Some(header) => match unused.first() {
                None => used.push(Used { path, header }),
                Some(before) => {
                    let path = before.clone();
                    let number = header.first;
                    return Err(StoreError::Broken { path, offset: 0, number });
                }
            },
        }
    }
    match (start, used.first()) {
        (Some(start), None) => match unused.first() {
            Some(path) => Err(StoreError::Broken { path: path.clone(), offset: 0, number: 0 }),
            None => Err(StoreError::Missing { path: path_of(folder, start) }),
        },
        (None, Some(first)) if holds_records(files, first)? => {
            Err(StoreError::Missing { path: start_path(folder) })
        }
        // The first start was cut short before it had begun.
        (None, _) => {
            unused.extend(used.drain(..).map(|used| used.path));
            Ok((used, unused, 1))
        }
        _ => {
            let sequence = used.last().map_or(1, |last| last.header.sequence + 1);
            Ok((used, unused, sequence))
        }
    }
}

/// The first segment that is needed; nothing in a log that never was.
fn start(files: &dyn Files, folder: &Path) -> Result<Option<u64>, StoreError> {
    let path = start_path(folder);
    let Some(content) = cell::read(files, &path)? else { return Ok(None) };
    let number = content.try_into().map(u64::from_le_bytes);
    number.map(Some).map_err(|_| StoreError::Broken { path, offset: 0, number: 0 })
}

fn header(files: &dyn Files, path: &Path) -> Result<Option<Header>, StoreError> {
    let mut bytes = [0; format::HEADER_BYTES];
    match files.read_exact_at(path, &mut bytes, 0) {
        Ok(()) => Ok(format::read_header(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(StoreError::system("reading", path)(error)),
    }
}

fn holds_records(files: &dyn Files, segment: &Used) -> Result<bool, StoreError> {
    let bytes = files.read(&segment.path).map_err(StoreError::system("reading", &segment.path))?;
    Ok(format::scan(&bytes, &segment.header).is_ok_and(|scan| !scan.records.is_empty()))
}

/// The records of all segments, of which the last ones of `recent_bytes` are given, and where each ends. The torn end of the
/// last is cut off its file.
fn read(
    files: &dyn Files,
    used: &[Used],
    recent_bytes: usize,
) -> Result<(StoredLog, VecDeque<Sealed>), StoreError> {
    let mut records = StoredLog::new(used.first().map_or(0, |segment| segment.header.first));
    let mut sealed = VecDeque::new();
    for (index, segment) in used.iter().enumerate() {
        let path = &segment.path;
        let broken = |offset, number| StoreError::Broken { path: path.clone(), offset, number };
        if segment.header.first != records.next() {
            return Err(broken(0, records.next()));
        }
        let bytes = files.read(path).map_err(StoreError::system("reading", path))?;
        let scan = format::scan(&bytes, &segment.header)
            .map_err(|found| broken(found.offset, found.number))?;
        for range in scan.records {
            records.push(&bytes[range]);
        }
        records.keep_last(recent_bytes);
        match used.get(index + 1) {
            // All before the first write to a segment is durable: what ends early was damaged.
            Some(after) if after.header.first != scan.next => {
                return Err(broken(scan.end, scan.next));
            }
            Some(_) => {}
            None => {
                // What was never written is zeros.
                let behind = &bytes[scan.end.min(bytes.len())..];
                records
                    .set_torn_bytes(behind.iter().rposition(|it| *it != 0).map_or(0, |it| it + 1));
                cut(files, path, scan.end)?;
            }
        }
        sealed.push_back(Sealed { sequence: segment.header.sequence, next: scan.next });
    }
    Ok((records, sealed))
}

/// The rest counts as durable from now on. A process that was killed may not have synced it, be it in a start that had
/// cut the file already: so it is synced, whether anything is left to cut or not.
fn cut(files: &dyn Files, path: &Path, end: usize) -> Result<(), StoreError> {
    let file = files.open(path).map_err(StoreError::system("opening", path))?;
    let length = files.length(path).map_err(StoreError::system("looking at", path))?;
    let end = u64::try_from(end).expect("a file's size fits");
    if length > end {
        file.set_len(end).map_err(StoreError::system("cutting", path))?;
    }
    file.sync_all().map_err(|source| StoreError::Sync { path: path.to_owned(), source })
}
