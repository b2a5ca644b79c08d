//! What a crash, a full disk or a flipped bit leaves can be read, up to where it happened, and is said.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::rows::{any_row, http_row, new_trial, read_all};
use model::{Row, Seed};
use record::{RecordError, RowsRead, RunFolder};

/// A log of several frames, and how many rows it holds up to each frame's end.
fn small_log() -> (Vec<u8>, Vec<(usize, usize)>, Vec<Row>) {
    let (_keep, trial) = new_trial(2);
    let mut rng = Seed(5).rng();
    let rows: Vec<Row> = (0..60).map(|tx| any_row(&mut rng, tx, 2)).collect();
    let path = trial.path().join("rows.log");
    let mut log = trial.row_log().unwrap();
    let mut ends = vec![(16, 0)];
    for (index, batch) in rows.chunks(7).enumerate() {
        log.append(batch).unwrap();
        log.flush().unwrap();
        let length = usize::try_from(fs::metadata(&path).unwrap().len()).unwrap();
        ends.push((length, (index * 7 + 7).min(rows.len())));
    }
    log.close().unwrap();
    (fs::read(&path).unwrap(), ends, rows)
}

/// A new file each time: some file systems bring a file that is cut and written again to the disk at once,
/// which made these tests ten times slower.
fn place(path: &Path, bytes: &[u8]) {
    let _ = fs::remove_file(path);
    fs::write(path, bytes).unwrap();
}

/// Claim: cut at any byte, a log gives exactly the rows of its whole frames and says how many bytes it dropped,
/// before and after sealing.
#[test]
fn cut_at_every_byte() {
    let (bytes, ends, rows) = small_log();
    let (_keep, trial) = new_trial(2);
    let path = trial.path().join("rows.log");
    for length in 0..=bytes.len() {
        place(&path, &bytes[..length]);
        let whole = ends.iter().rev().find(|(end, _)| *end <= length).copied().unwrap_or((0, 0));
        let (read, found) = read_all(&trial);
        let dropped = (length - whole.0) as u64;
        assert_eq!(found, rows[..whole.1], "cut at {length}");
        let expected = RowsRead { rows: whole.1 as u64, from_log: true, dropped_bytes: dropped };
        assert_eq!(read, expected, "cut at {length}");
    }
    // One cut is sealed as well: what was dropped is still said afterwards.
    fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    let (before, _) = read_all(&trial);
    trial.seal().unwrap();
    let (after, found) = read_all(&trial);
    assert_eq!(after, RowsRead { from_log: false, ..before });
    assert!(before.dropped_bytes > 0 && found.len() as u64 == before.rows);
}

/// Claim: with any one bit flipped, the rows before the damaged frame are given unchanged, none after it, and
/// a damaged header is refused by name.
#[test]
fn every_flipped_bit() {
    let (bytes, ends, rows) = small_log();
    let (_keep, trial) = new_trial(2);
    let path = trial.path().join("rows.log");
    for (index, bit) in (0..bytes.len()).map(|index| (index, index % 8)) {
        let mut damaged = bytes.clone();
        damaged[index] ^= 1 << bit;
        place(&path, &damaged);
        let mut found = Vec::new();
        let read = trial.for_each_batch(|batch| found.extend_from_slice(batch));
        match index {
            0..12 => {
                let error = read.unwrap_err().to_string();
                assert!(error.contains("rows.log") && error.contains("row log"), "{error}");
            }
            12..16 => assert_eq!(found, rows, "reserved bytes are not read"),
            _ => {
                let whole = ends.iter().rev().find(|(end, _)| *end <= index).unwrap();
                assert_eq!(found, rows[..whole.1], "byte {index}");
                assert_eq!(read.unwrap().dropped_bytes, (bytes.len() - whole.0) as u64);
            }
        }
    }
}

/// Claim: a process that ends without closing its log loses nothing that was flushed.
#[test]
fn a_dropped_writer_keeps_its_rows() {
    let (_keep, trial) = new_trial(1);
    let rows: Vec<Row> = (0..1000).map(|tx| http_row(&mut Seed(tx).rng(), tx)).collect();
    let mut log = trial.row_log().unwrap();
    log.append(&rows).unwrap();
    log.flush().unwrap();
    let (_, found) = read_all(&trial);
    assert_eq!(found, rows, "read while it is still open");
    std::mem::forget(log);
    assert_eq!(read_all(&trial).1, rows);
}

/// Claim: a trial is recorded once; a second log is refused rather than mixed into the first.
#[test]
fn a_second_log_is_refused() {
    let (_keep, trial) = new_trial(1);
    trial.row_log().unwrap().close().unwrap();
    let error = trial.row_log().unwrap_err().to_string();
    assert!(error.contains("rows.log"), "{error}");
}

/// Claim: when sealing meets a full disk, the log stays, no half file does, rows are read from the log, and
/// sealing succeeds once there is room.
#[test]
fn sealing_on_a_full_disk() {
    for name in ["transactions.parquet", "latency.hlog"] {
        let (_keep, trial) = new_trial(1);
        let rows: Vec<Row> = (0..9000).map(|tx| http_row(&mut Seed(tx).rng(), tx)).collect();
        let mut log = trial.row_log().unwrap();
        log.append(&rows).unwrap();
        log.close().unwrap();
        let partial = trial.path().join(format!("{name}.partial"));
        std::os::unix::fs::symlink("/dev/full", &partial).unwrap();
        let error = trial.seal().unwrap_err();
        assert!(matches!(error, RecordError::Full { .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
        assert!(!trial.is_sealed() && fs::symlink_metadata(&partial).is_err());
        let (read, found) = read_all(&trial);
        assert!(read.from_log && found == rows);
        trial.seal().unwrap();
        assert!(!read_all(&trial).0.from_log);
    }
}

/// Claim: a crash between any two steps of sealing leaves a folder that reads the same and can be sealed again.
#[test]
fn a_crash_while_sealing() {
    let (_keep, trial) = new_trial(1);
    let rows: Vec<Row> = (0..5000).map(|tx| http_row(&mut Seed(tx).rng(), tx)).collect();
    let mut log = trial.row_log().unwrap();
    log.append(&rows).unwrap();
    log.close().unwrap();
    let log_path = trial.path().join("rows.log");
    let log_bytes = fs::read(&log_path).unwrap();
    trial.seal().unwrap();
    // Sealed, the log not yet removed.
    fs::write(&log_path, &log_bytes).unwrap();
    assert!(!read_all(&trial).0.from_log);
    // The Parquet file damaged while the log is there.
    let parquet = trial.path().join("transactions.parquet");
    let parquet_bytes = fs::read(&parquet).unwrap();
    fs::write(&parquet, &parquet_bytes[..100]).unwrap();
    assert_eq!(read_all(&trial).1, rows);
    trial.seal().unwrap();
    assert_eq!(fs::read(&parquet).unwrap(), parquet_bytes);
    assert!(!log_path.exists());
    // Files in place, seal.json not yet written.
    fs::write(&log_path, &log_bytes).unwrap();
    fs::remove_file(trial.path().join("seal.json")).unwrap();
    assert!(read_all(&trial).0.from_log);
    trial.seal().unwrap();
    assert!(!log_path.exists() && trial.is_sealed());
}

/// Claim: on a disk that fills up under the load, what was appended before is read back whole and in order,
/// and sealing there fails without harm. Needs the right to mount a file system.
#[test]
fn a_disk_that_fills_up() {
    let mount = tempfile::tempdir().unwrap();
    let Some(_mounted) = Mounted::small(mount.path()) else {
        println!("SKIPPED a_disk_that_fills_up: may not mount a small file system here");
        return;
    };
    let run = RunFolder::create(mount.path(), "full", model::WallTime::from_unix_ns(0)).unwrap();
    let trial = run.trial("default", 0).unwrap();
    trial.write_facts(&crate::rows::facts(1)).unwrap();
    let mut log = trial.row_log().unwrap();
    let mut rng = Seed(2).rng();
    let mut rows = Vec::new();
    let error = loop {
        let batch: Vec<Row> =
            (0..500).map(|tx| http_row(&mut rng, rows.len() as u64 + tx)).collect();
        rows.extend_from_slice(&batch);
        assert!(rows.len() < 1_000_000, "half a megabyte never fills up");
        if let Err(error) = log.append(&batch).and_then(|()| log.flush()) {
            break error;
        }
    };
    assert!(matches!(error, RecordError::Full { .. }), "{error}");
    drop(log);
    let (read, found) = read_all(&trial);
    assert_eq!(read.dropped_bytes, 0, "half a frame was cut off again");
    assert!(found.len() > 20_000 && found == rows[..found.len()], "{}", found.len());
    assert!(matches!(trial.seal(), Err(RecordError::Full { .. })));
    let (read, again) = read_all(&trial);
    assert!(read.from_log && again == found);
}

/// A file system of 512 KiB, unmounted when dropped.
struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    fn small(at: &'a Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=512k", "assay-test"]).arg(at);
        let output = mount.output().ok()?;
        output.status.success().then_some(Self(at))
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}
