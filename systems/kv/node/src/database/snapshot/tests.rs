//! Snapshots of a database that changes while they are written.

use super::*;
use crate::database::Limits;
use crate::database::compose::Composer;
use crate::database::fuzz::copy_of;
use crate::database::transaction::Literal;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// One transaction of several operations: lists, maps in maps, long values; some of them fail at their last operation, so that
/// all before is taken back.
fn change(database: &mut Database, random: &mut Random, sequence: u64) {
    let tables: Vec<Vec<u8>> = (0..2).map(|_| vec![b't', b'0' + random.below(4) as u8]).collect();
    let names: Vec<&[u8]> = tables.iter().map(Vec::as_slice).collect();
    let mut bytes = Vec::new();
    let mut composer = Composer::begin(&mut bytes, &names);
    let value = vec![7; [3, 40, 700][random.below(3) as usize]];
    for _ in 0..1 + random.below(5) {
        let table = random.below(2) as u8;
        let key = [b'a' + random.below(6) as u8];
        let inner = [b'a' + random.below(3) as u8];
        match random.below(9) {
            0 | 1 => composer.put(table, &[&key], Literal::Bytes(&value)),
            2 => composer.put(table, &[b"m", &key, &inner], Literal::Bytes(&value)),
            3 => composer.append(table, &[b"m", b"l"], Literal::Bytes(&value)),
            4 | 5 => composer.append(table, &[b"list"], Literal::Bytes(&value)),
            6 => composer.delete(table, &[&key]),
            7 => composer.delete(table, &[[b"m", &b"list"[..]][random.below(2) as usize]]),
            _ => composer.put(table, &[b"m"], Literal::Map),
        };
    }
    if random.below(4) == 0 {
        composer.check_version(0, &[b"nobody"], 99);
    }
    let client = random.below(12);
    database.apply(u64::MAX, client, sequence, &bytes, &mut Vec::new());
}

fn whole(database: &Database) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = SnapshotWriter::new(database);
    while writer.next_chunk(&mut bytes) {}
    bytes
}

/// Claim: the bytes of a database that changes while they are written, record by record, are those that it had when the
/// writing began, whatever is done to it: what is written is changed, taken out, moved, made again and taken back before its
/// turn, in the middle of it, and after.
#[test]
fn a_database_that_goes_on_is_written_as_it_was() {
    let (mut kept, mut between) = (0, 0);
    for seed in 0..300 {
        let mut random = Random(seed);
        let limits = Limits { sessions_max: 8, session_idle_min: 1, ..Limits::default() };
        let mut database = Database::new(limits);
        let mut sequence = 0;
        let mut go_on = |database: &mut Database, random: &mut Random| {
            sequence += 1;
            change(database, random, sequence);
        };
        (0..random.below(150)).for_each(|_| go_on(&mut database, &mut random));
        let expected = whole(&database);
        let mut freeze = Freeze::new(&database);
        let mut records = Vec::new();
        while !freeze.is_over() {
            freeze.write_record(&database.tables, &database.sessions, &mut records);
            for _ in 0..random.below(3) {
                database.frozen = Some(Box::new(freeze));
                go_on(&mut database, &mut random);
                freeze = *database.frozen.take().unwrap();
                between += 1;
            }
            kept += freeze.kept_bytes();
        }
        assert_eq!(freeze.kept_bytes(), 0, "seed {seed}");
        // Of all bytes the records, without the lengths of chunks and the end.
        let mut all = Vec::new();
        let mut rest = &expected[..];
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let (chunk, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
            all.extend_from_slice(chunk);
            rest = behind;
        }
        assert!(records == all[..all.len() - 5], "seed {seed}");
    }
    assert!(kept > 100_000 && between > 10_000, "{kept} {between}");
}

/// Claim: chunk by chunk a database that goes on gives the snapshot that it would have given at once, and is then as it would
/// be without; one that is given up leaves nothing.
#[test]
fn a_database_writes_itself_while_it_goes_on() {
    let mut random = Random(1);
    let mut database = Database::new(Limits::default());
    for key in 0..2_000_u64 {
        let mut bytes = Vec::new();
        let mut composer = Composer::begin(&mut bytes, &[b"t0"]);
        composer.put(0, &[&key.to_le_bytes()], Literal::Bytes(&[7; 400]));
        database.apply(u64::MAX, 99, key + 1, &bytes, &mut Vec::new());
    }
    (1..3_000).for_each(|sequence| change(&mut database, &mut random, sequence));
    let expected = whole(&database);
    database.freeze();
    let (mut bytes, mut sequence) = (Vec::new(), 3_000);
    while database.next_chunk(&mut bytes) {
        (0..50).for_each(|more| change(&mut database, &mut random, sequence + more));
        sequence += 50;
    }
    assert!(bytes == expected && bytes.len() > 2 * CHUNK_BYTES, "{}", bytes.len());
    assert_eq!(copy_of(&database).digest(), database.digest());
    database.freeze();
    database.thaw();
    assert!(!database.next_chunk(&mut bytes) && bytes == expected);
}
