//! `[disk]` of one setting, read in full: which nodes keep their files on a disk of the testbed's own, and what it is
//! like.

use std::time::Duration;

use model::options::Options;
use model::plan::{DiskPlan, DisksPlan, NamesRule};
use model::quantity::parse_size;

use crate::keys;
use crate::links::check_pattern;
use crate::table::{Reading, Table};

/// The smallest disk: a small file and room for another.
const SIZE_MIN: u64 = 64 << 10;
/// The largest. What a disk holds is in the instrument's memory, what is not synced twice.
const SIZE_MAX: u64 = 64 << 30;
/// No disk takes longer for anything.
const DELAY_MAX: Duration = Duration::from_secs(60);

/// Reads `[disk]`; `None` if there is none. Whatever it returns counts only if no problem was added.
pub(crate) fn read(root: &Options, reading: &mut Reading<'_>) -> Option<DisksPlan> {
    let options = root.get("disk")?;
    let mut table = Table::open(options, "disk", reading);
    let nodes = table.strings("nodes", reading);
    let nodes = table.require("nodes", nodes, "nodes = [\"node0\", \"full*\"]", reading);
    if let Some(nodes) = &nodes {
        table.note("nodes", Some(nodes.join(" ")), reading);
        if nodes.is_empty() {
            table.reject(
                "nodes",
                "this gives a disk to no node",
                Some("name one, or remove [disk]"),
                reading,
            );
        }
        for name in nodes {
            check_pattern(&table, "nodes", name, reading);
        }
    }
    let size = size(&mut table, reading);
    let words = ["journal", "strict"];
    let names = match table.one_of_or("names", &words, keys::fixed("disk.names"), reading) {
        Some("strict") => NamesRule::Strict,
        _ => NamesRule::Journal,
    };
    let mut delay = |key: &'static str, name: &'static str| {
        let delay = table.duration_or(key, keys::fixed_duration(name), reading);
        if delay > DELAY_MAX {
            table.reject(key, "expected at most a minute", None, reading);
        }
        delay
    };
    let disk = DiskPlan {
        size,
        names,
        sync_delay: delay("sync_delay", "disk.sync_delay"),
        read_delay: delay("read_delay", "disk.read_delay"),
        write_delay: delay("write_delay", "disk.write_delay"),
    };
    table.finish(reading);
    let nodes = nodes?.into_iter().map(str::to_owned).collect();
    Some(DisksPlan { nodes, disk })
}

fn size(table: &mut Table<'_>, reading: &mut Reading<'_>) -> u64 {
    let fallback = keys::fixed("disk.size");
    let size = match table.size("size", reading) {
        Some(size) => size,
        None => {
            let size = parse_size(fallback).expect("the table of keys has a size there");
            if table.given("size").is_none() {
                table.note_derived("size", (), fallback.to_owned(), reading);
            }
            size
        }
    };
    if !(SIZE_MIN..=SIZE_MAX).contains(&size) {
        let message = "a disk has 64KiB to 64GiB; what it holds is in Assay's memory";
        table.reject("size", message, None, reading);
    }
    size
}
