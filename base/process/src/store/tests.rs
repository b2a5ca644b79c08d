//! A store is opened, written to, damaged and opened again.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use clock::Clock;
use rustix::event::{PollFd, PollFlags, poll};
use tempfile::TempDir;

use super::format::{self, HEADER_BYTES, record_bytes};
use super::{
    Done, LogThread, Store, StoreCounts, StoreError, StoreOptions, Sync, Writer, segments,
};
use crate::{Outputs, Stored};

/// Small segments: four records of a hundred bytes.
const OPTIONS: StoreOptions = StoreOptions { sync: Sync::Data, segment_bytes: 600 };

/// A store at work, seen as the shell sees it.
struct Kept {
    out: Outputs,
    writer: Writer,
    counters: std::sync::Arc<super::StoreCounters>,
    told: Vec<Done>,
}

impl Kept {
    fn open(folder: &Path) -> (Self, Stored) {
        Self::open_by(folder, LogThread::Own)
    }

    fn open_by(folder: &Path, log_thread: LogThread) -> (Self, Stored) {
        let (store, stored) = Store::open(folder, &["log"], &["cell"], OPTIONS).unwrap();
        (Self::start(store.written_by(log_thread)), stored)
    }

    fn start(store: Store) -> Self {
        let mut out = Outputs::default();
        for (log, next) in store.next().enumerate() {
            out.begin_log(log, next);
        }
        let counters = store.counters();
        let writer = Writer::start(store, Clock::start()).unwrap();
        Self { out, writer, counters, told: Vec::new() }
    }

    fn hand_over(&mut self) {
        self.try_hand_over().unwrap();
    }

    fn try_hand_over(&mut self) -> Result<(), StoreError> {
        let (mut stores, mut records, mut done) = (Vec::new(), Vec::new(), Vec::new());
        self.out.take_stores(&mut stores, &mut records);
        self.writer.submit(&mut stores, &mut records, &mut done)?;
        assert!(stores.is_empty() && records.is_empty());
        self.told.extend(done);
        Ok(())
    }

    /// Appends one record and waits until it is durable.
    fn keep(&mut self, record: &[u8]) -> u64 {
        let number = self.out.append(0, record);
        self.hand_over();
        self.wait_for(Done::Persisted { log: 0, below: number + 1 });
        number
    }

    fn wait_for(&mut self, done: Done) {
        while !self.told.contains(&done) {
            self.wait().unwrap();
        }
    }

    fn wait(&mut self) -> Result<(), StoreError> {
        let mut descriptors = [PollFd::new(self.writer.told(), PollFlags::IN)];
        poll(&mut descriptors, None).unwrap();
        let mut done = Vec::new();
        self.writer.take(&mut done)?;
        self.told.extend(done);
        Ok(())
    }

    fn end(self) -> StoreCounts {
        self.writer.finish().unwrap();
        self.counters.read()
    }
}

/// The record with this number.
fn record(number: u64) -> Vec<u8> {
    format!("{number:04}").repeat(25).into_bytes()
}

/// A folder with so many records, each synced on its own.
fn with_records(count: u64) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (mut kept, _) = Kept::open(folder.path());
    for number in 0..count {
        assert_eq!(kept.keep(&record(number)), number);
    }
    kept.end();
    folder
}

fn open(folder: &Path) -> Result<(u64, u64), StoreError> {
    let (_, stored) = Store::open(folder, &["log"], &["cell"], OPTIONS)?;
    let log = &stored.logs[0];
    for (number, bytes) in log.iter() {
        assert_eq!(bytes, record(number));
    }
    let first = log.iter().next().map_or(log.next(), |(number, _)| number);
    Ok((first, log.next()))
}

fn segment(folder: &Path, sequence: u64) -> PathBuf {
    segments::path_of(&folder.join("log"), sequence)
}

/// Claim: what was told to be durable is found again, over segments and starts, with its numbers; cells hold
/// their last content; and a second process is refused the folder; whichever thread writes.
#[test]
fn kept_and_found() {
    kept_and_found_by(LogThread::Own);
    kept_and_found_by(LogThread::Node);
}

fn kept_and_found_by(log_thread: LogThread) {
    let folder = tempfile::tempdir().unwrap();
    let (mut kept, stored) = Kept::open_by(folder.path(), log_thread);
    assert_eq!((stored.logs[0].next(), &stored.cells[0]), (0, &None));
    for number in 0..10 {
        kept.keep(&record(number));
    }
    kept.out.replace(0, b"first".to_vec());
    kept.out.replace(0, b"second".to_vec());
    kept.hand_over();
    while kept.told.iter().filter(|done| **done == Done::Replaced { cell: 0 }).count() < 2 {
        kept.wait().unwrap();
    }
    let again = Store::open(folder.path(), &["log"], &["cell"], OPTIONS);
    assert!(matches!(again, Err(StoreError::Locked { .. })));
    let counts = kept.end();
    assert_eq!((counts.syncs, counts.records), (10, 10), "one sync for each that was waited for");
    assert!(counts.segments >= 2);
    let (mut kept, stored) = Kept::open(folder.path());
    assert_eq!(stored.cells[0].as_deref(), Some(&b"second"[..]));
    assert_eq!(stored.logs[0].next(), 10);
    kept.keep(&record(10));
    kept.end();
    assert_eq!(open(folder.path()).unwrap(), (0, 11));
}

/// Claim: what is appended in one turn, or while a sync is under way, is one sync and not one for each.
#[test]
fn group_commit() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { segment_bytes: 1 << 20, ..OPTIONS };
    let (store, _) = Store::open(folder.path(), &["log"], &[], options).unwrap();
    let mut kept = Kept::start(store);
    for number in 0..1000 {
        kept.out.append(0, &record(number));
        if number % 100 == 99 {
            kept.hand_over();
        }
    }
    kept.wait_for(Done::Persisted { log: 0, below: 1000 });
    let counts = kept.end();
    assert_eq!(counts.records, 1000);
    assert!(counts.syncs <= 10 && counts.syncs == counts.batches, "{counts:?}");
    assert!(counts.bytes >= 1000 * u64::try_from(record_bytes(100)).unwrap());
}

/// Claim: cut at any byte of the last record, or with any byte of it wrong, a log is opened without it; the number
/// is given again, and what had stood there never comes back.
#[test]
fn a_torn_end() {
    let folder = with_records(6);
    let path = segment(folder.path(), 2);
    let whole = fs::read(&path).unwrap();
    let start = HEADER_BYTES + record_bytes(100);
    let end = start + 24 + 100;
    let reset = |bytes: &[u8]| {
        for entry in fs::read_dir(folder.path().join("log")).unwrap() {
            let path = entry.unwrap().path();
            if segments::sequence_of(&path).is_some_and(|sequence| sequence > 2) {
                fs::remove_file(path).unwrap();
            }
        }
        fs::write(&path, bytes).unwrap();
    };
    for at in (start..end).step_by(3) {
        let mut zeroed = whole.clone();
        zeroed[at..].fill(0);
        let mut wrong = whole.clone();
        wrong[at] ^= 0xff;
        for bytes in [&whole[..at], &zeroed, &wrong] {
            reset(bytes);
            assert_eq!(open(folder.path()).unwrap(), (0, 5), "{at}");
        }
    }
    // How much was cut is said: of a log that was idle it is damage.
    let torn_bytes = || {
        let (_, stored) = Store::open(folder.path(), &["log"], &["cell"], OPTIONS).unwrap();
        stored.logs[0].torn_bytes()
    };
    let mut wrong = whole.clone();
    wrong[start + 30] ^= 1;
    reset(&wrong);
    assert_eq!(torn_bytes(), end - start);
    reset(&whole);
    assert_eq!(torn_bytes(), 0);
    // Two records of one write: the first torn, the second whole.
    let header = format::read_header(&whole).unwrap();
    let mut torn = whole[..start].to_vec();
    format::write_record(header.stamp, 5, 5, &record(5), &mut torn);
    let second = torn.len();
    format::write_record(header.stamp, 6, 5, &record(6), &mut torn);
    torn[second - 20] ^= 1;
    torn.resize(600, 0);
    reset(&torn);
    let (mut kept, stored) = Kept::open(folder.path());
    assert_eq!(stored.logs[0].next(), 5);
    kept.keep(&record(5));
    kept.end();
    assert_eq!(open(folder.path()).unwrap(), (0, 6));
}

/// Claim: damage to what was durable is refused with file and place, and not cut: in the middle of a segment, in a
/// header, at the end of a segment that another follows; so are a missing segment, a missing first one, and a
/// missing or damaged cell that says which is the first.
#[test]
fn damage_is_refused() {
    type Damage = fn(&Path);
    fn spoil(path: &Path, at: usize) {
        let mut bytes = fs::read(path).unwrap();
        bytes[at] ^= 0x10;
        fs::write(path, bytes).unwrap();
    }
    let start = |folder: &Path| folder.join("log/start.cell");
    let damages: [(&str, Damage, &str); 8] = [
        ("a record", |f| spoil(&segment(f, 1), 100), "byte 64: record 0 was durable"),
        ("a header", |f| spoil(&segment(f, 1), 9), "byte 0: record"),
        ("the last header", |f| spoil(&segment(f, 3), 9), "byte 0: record 8 was durable"),
        ("the end of the first", |f| spoil(&segment(f, 1), 500), "byte 448: record 3"),
        ("a middle segment", |f| fs::remove_file(segment(f, 2)).unwrap(), "2.segment is missing"),
        ("the first segment", |f| fs::remove_file(segment(f, 1)).unwrap(), "1.segment is missing"),
        (
            "the start",
            |f| fs::remove_file(f.join("log/start.cell")).unwrap(),
            "start.cell is missing",
        ),
        ("its content", |f| spoil(&f.join("log/start.cell"), 14), "start.cell is damaged"),
    ];
    for (what, damage, words) in damages {
        let folder = with_records(11);
        assert!(start(folder.path()).is_file());
        damage(folder.path());
        let error = open(folder.path()).expect_err(what).to_string();
        assert!(error.contains(words), "{what}: {error}");
        assert!(open(folder.path()).is_err(), "{what}: refused again, nothing was changed");
    }
}

/// Claim: where the node's thread writes, what it is told of is told at once and nobody is woken; a turn that
/// wants more than fits the segment goes on in the next, made or not.
#[test]
fn the_nodes_thread() {
    let folder = tempfile::tempdir().unwrap();
    let (mut kept, _) = Kept::open_by(folder.path(), LogThread::Node);
    kept.out.append(0, &record(0));
    kept.hand_over();
    assert_eq!(kept.told, [Done::Persisted { log: 0, below: 1 }]);
    let mut descriptors = [PollFd::new(kept.writer.told(), PollFlags::IN)];
    let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    assert_eq!(poll(&mut descriptors, Some(&now)).unwrap(), 0, "there is nothing to come for");
    for number in 1..40 {
        kept.out.append(0, &record(number));
    }
    kept.hand_over();
    kept.wait_for(Done::Persisted { log: 0, below: 40 });
    assert_eq!(kept.end().records, 40);
    assert_eq!(open(folder.path()).unwrap(), (0, 40));
}

/// Claim: after a failure of the log nothing is written or told any more, whichever thread writes.
#[test]
fn a_failed_log() {
    for log_thread in [LogThread::Own, LogThread::Node] {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(folder.path(), &["log"], &["cell"], OPTIONS).unwrap();
        // Takes every byte and cannot be synced.
        symlink("/dev/null", segment(folder.path(), 2)).unwrap();
        let mut kept = Kept::start(store.written_by(log_thread));
        for number in 0..20 {
            kept.out.append(0, &record(number));
        }
        let mut ended = kept.try_hand_over();
        while ended.is_ok() {
            ended = kept.wait();
        }
        let error = ended.unwrap_err();
        assert!(error.to_string().contains("2.segment"), "{error}");
        kept.told.clear();
        kept.out.append(0, &record(20));
        let _ = kept.try_hand_over();
        assert!(kept.told.is_empty(), "{:?}", kept.told);
    }
}

/// Claim: trimmed segments are used again, whatever they held is never read again, and numbers go on also when
/// everything was trimmed.
#[test]
fn used_again() {
    let folder = tempfile::tempdir().unwrap();
    let (mut kept, _) = Kept::open(folder.path());
    for number in 0..60 {
        kept.keep(&record(number));
        kept.out.trim(0, number.saturating_sub(2));
        kept.hand_over();
    }
    let counts = kept.end();
    assert!(counts.recycled >= 3, "{counts:?}");
    let segments = fs::read_dir(folder.path().join("log")).unwrap().count();
    assert!(segments < 9, "{segments}");
    // In the shell's terms a crash: the last segment is full of an earlier life.
    let (first, next) = open(folder.path()).unwrap();
    assert!(first > 40 && first <= 57, "{first}");
    assert_eq!(next, 60);
    let (mut kept, _) = Kept::open(folder.path());
    kept.out.trim(0, 60);
    kept.hand_over();
    kept.end();
    assert_eq!(open(folder.path()).unwrap(), (60, 60));
}

/// Claim: records that a client hides in what it writes are not taken for the log's, also where a file that held them is used
/// again: the log is opened, whether the file was begun or only made.
#[test]
fn forged_records_used_again() {
    let mut forged = Vec::new();
    for stamp in 1..4 {
        format::write_record(stamp, u64::MAX - 1, u64::MAX - 1, b"", &mut forged);
    }
    for count in 40..60 {
        let folder = tempfile::tempdir().unwrap();
        let (mut kept, _) = Kept::open(folder.path());
        for number in 0..count {
            kept.keep(&forged);
            kept.out.trim(0, number);
            kept.hand_over();
        }
        assert!(kept.end().recycled >= 3);
        let (_, stored) = Store::open(folder.path(), &["log"], &["cell"], OPTIONS).unwrap();
        assert_eq!(stored.logs[0].next(), count);
    }
}

/// Claim: records that a client has hidden in the first write to a segment, of which the disk kept all but the header, stop no
/// start; what the same write had left of true records never comes back after new ones.
#[test]
fn a_first_write_without_its_header() {
    for forged_stamp in [1, 0] {
        let folder = with_records(1);
        let before = fs::read(segment(folder.path(), 1)).unwrap();
        let own = format::read_header(&before).unwrap().next_stamp;
        let stamp = if forged_stamp == 0 { own } else { forged_stamp };
        let mut bytes = vec![0; 600];
        let mut records = Vec::new();
        if forged_stamp == 0 {
            // Two of one write, neither durable when they were written; the first goes with the header.
            format::write_record(stamp, 1, 1, &record(1), &mut records);
            let first = records.len();
            format::write_record(stamp, 2, 1, &record(2), &mut records);
            records[..first].fill(0);
        } else {
            format::write_record(stamp, u64::MAX - 1, u64::MAX - 1, b"", &mut records);
        }
        bytes[HEADER_BYTES..HEADER_BYTES + records.len()].copy_from_slice(&records);
        fs::write(segment(folder.path(), 2), bytes).unwrap();
        let (mut kept, stored) = Kept::open(folder.path());
        assert_eq!(stored.logs[0].next(), 1);
        kept.keep(&record(1));
        kept.end();
        assert_eq!(open(folder.path()).unwrap(), (0, 2));
    }
}

/// Claim: the segment that a process had made ahead is the one in which the next goes on, and is not made again;
/// one that was not made to its end is.
#[test]
fn made_ahead() {
    let folder = with_records(1);
    let ahead = segment(folder.path(), 2);
    let made = fs::metadata(&ahead).unwrap().ino();
    assert_eq!(open(folder.path()).unwrap(), (0, 1));
    assert_eq!(fs::metadata(&ahead).unwrap().ino(), made);
    assert_eq!(fs::metadata(&ahead).unwrap().len(), 600);
    fs::write(segment(folder.path(), 3), [0; 100]).unwrap();
    assert_eq!(open(folder.path()).unwrap(), (0, 1));
    assert_eq!(fs::metadata(segment(folder.path(), 3)).unwrap().len(), 600);
}

/// Claim: a full disk is told once, what was asked waits, and becomes durable when there is room: for a segment
/// and for a cell; whichever thread writes.
#[test]
fn a_full_disk() {
    a_full_disk_by(LogThread::Own);
    a_full_disk_by(LogThread::Node);
}

fn a_full_disk_by(log_thread: LogThread) {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(folder.path(), &["log"], &["cell"], OPTIONS).unwrap();
    symlink("/dev/full", segment(folder.path(), 2)).unwrap();
    let cell = folder.path().join("cell.new");
    symlink("/dev/full", &cell).unwrap();
    let mut kept = Kept::start(store.written_by(log_thread));
    for number in 0..6 {
        kept.keep(&record(number));
    }
    assert_eq!(kept.told.iter().filter(|done| **done == Done::Full { log: Some(0) }).count(), 1);
    kept.told.clear();
    kept.out.replace(0, b"content".to_vec());
    kept.hand_over();
    kept.wait_for(Done::Full { log: None });
    assert!(!kept.told.contains(&Done::Replaced { cell: 0 }));
    fs::remove_file(&cell).unwrap();
    kept.wait_for(Done::Replaced { cell: 0 });
    assert_eq!(kept.end().full, 2);
    assert_eq!(open(folder.path()).unwrap(), (0, 6));
}

/// Claim: where the disk fails in another way than by being full, nothing is told to be durable any more, and the
/// error says which file.
#[test]
fn a_failed_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(folder.path(), &["log"], &["cell"], OPTIONS).unwrap();
    // Takes every byte and cannot be synced.
    symlink("/dev/null", folder.path().join("cell.new")).unwrap();
    let mut kept = Kept::start(store);
    kept.keep(&record(0));
    kept.out.replace(0, b"content".to_vec());
    kept.hand_over();
    let error = loop {
        if let Err(error) = kept.wait() {
            break error;
        }
    };
    assert!(
        matches!(&error, StoreError::Sync { path, .. } if path.ends_with("cell.new")),
        "{error}"
    );
    assert_eq!(kept.told, [Done::Persisted { log: 0, below: 1 }]);
}
