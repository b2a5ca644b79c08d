//! Observations on disk: through the log, through the seal, over a crash, and over damage.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;

use crate::rows::{facts, new_trial};
use model::observation::{OBSERVATION_BYTES_MAX, Observation, Observations};
use model::{Seed, Stamp, TxId};
use record::TrialFolder;

type Kept = (TxId, Stamp, Vec<u8>);

/// Observations of every length, the longest and the empty one among them.
fn some(count: u64) -> Vec<Kept> {
    let mut rng = Seed(5).rng();
    let one = |tx: u64| {
        let length = match tx % 1000 {
            7 => OBSERVATION_BYTES_MAX,
            n => usize::try_from(n % 40).unwrap(),
        };
        let at = Stamp::try_from(rng.below(1 << 40)).unwrap() - (1 << 20);
        (tx.wrapping_mul(0x9e37_79b9_7f4a_7c15), at, vec![u8::try_from(tx % 251).unwrap(); length])
    };
    (0..count).map(one).collect()
}

fn write(trial: &TrialFolder, kept: &[Kept]) {
    let mut log = trial.observation_log().unwrap();
    for batch in kept.chunks(700) {
        let mut observations = Observations::default();
        for (tx, at, bytes) in batch {
            observations.push(Observation { tx: *tx, at: *at, bytes });
        }
        log.append(&observations).unwrap();
        log.flush().unwrap();
    }
    log.close().unwrap();
}

fn read(trial: &TrialFolder) -> Vec<Kept> {
    let mut found = Vec::new();
    let keep = |one: &Observation<'_>| found.push((one.tx, one.at, one.bytes.to_vec()));
    let count = trial.for_each_observation(keep).unwrap();
    assert_eq!(count, found.len() as u64);
    found
}

/// Claim: every observation comes back, whole and in its order, from the log and from the sealed file; sealing again
/// changes nothing; and a trial that observed nothing has no file and no observations.
#[test]
fn they_come_back() {
    let (_keep, trial) = new_trial(1);
    trial.write_facts(&facts(1)).unwrap();
    trial.row_log().unwrap().close().unwrap();
    assert_eq!(read(&trial), []);
    // More rows than a group has, and more bytes than one.
    let kept = some(150_000);
    write(&trial, &kept);
    assert!(read(&trial) == kept);
    trial.seal().unwrap();
    assert!(read(&trial) == kept);
    trial.seal().unwrap();
    assert!(read(&trial) == kept);
    let there = |name: &str| trial.path().join(name).exists();
    assert!(there("observations.parquet") && !there("observations.log"));
    let (_keep, silent) = new_trial(1);
    silent.write_facts(&facts(1)).unwrap();
    silent.row_log().unwrap().close().unwrap();
    silent.seal().unwrap();
    assert!(read(&silent).is_empty() && !silent.path().join("observations.parquet").exists());
}

/// Claim: wherever a crash cuts the log off, what stands in whole frames before is read, sealed or not, and nothing else
/// is made up.
#[test]
fn a_torn_tail_costs_the_last_frame() {
    let kept = some(900);
    let (_keep, whole) = new_trial(1);
    write(&whole, &kept);
    let bytes = fs::read(whole.path().join("observations.log")).unwrap();
    let mut lengths = Vec::new();
    for cut in [1, 5, 15, 16, 17, 100, 20_000, bytes.len() / 2, bytes.len() - 1] {
        let (_keep, torn) = new_trial(1);
        torn.write_facts(&facts(1)).unwrap();
        torn.row_log().unwrap().close().unwrap();
        fs::write(torn.path().join("observations.log"), &bytes[..cut]).unwrap();
        let found = read(&torn);
        assert!(kept.starts_with(&found), "cut at {cut}");
        torn.seal().unwrap();
        assert!(read(&torn) == found, "cut at {cut}");
        lengths.push(found.len());
    }
    assert!(lengths.is_sorted() && lengths[0] == 0, "{lengths:?}");
    assert!(lengths[8] > 0 && lengths[8] < kept.len(), "{lengths:?}");
}

/// Claim: a flipped bit in the sealed file is an error that names it; one in the log ends what is read there.
#[test]
fn damage_is_seen() {
    let kept = some(5_000);
    let (_keep, trial) = new_trial(1);
    trial.write_facts(&facts(1)).unwrap();
    trial.row_log().unwrap().close().unwrap();
    write(&trial, &kept);
    let log = trial.path().join("observations.log");
    let good = fs::read(&log).unwrap();
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 1;
    fs::write(&log, &bad).unwrap();
    let found = read(&trial);
    assert!(found.len() < kept.len() && kept.starts_with(&found));
    fs::write(&log, &good).unwrap();
    trial.seal().unwrap();
    let sealed = trial.path().join("observations.parquet");
    let mut bytes = fs::read(&sealed).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&sealed, bytes).unwrap();
    let error = trial.for_each_observation(|_| ()).unwrap_err().to_string();
    assert!(error.contains("observations.parquet"), "{error}");
}
