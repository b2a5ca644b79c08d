//! What is published (sdh21/dstore, `docs/benchmark.md`), and which setting of which experiment asks the same.

/// The experiments, in the order of their tables.
pub(super) const FILES: [&str; 5] = ["proposals", "plain", "batching", "far", "far-batching"];

/// A published table.
pub(super) struct Table {
    pub(super) title: &'static str,
    /// The experiment.
    pub(super) file: &'static str,
    /// Labels that all its settings have.
    pub(super) of: &'static [(&'static str, &'static str)],
    /// The axis down the side.
    pub(super) rows: &'static str,
    pub(super) cells: &'static [Cell],
}

/// A line of it.
pub(super) struct Cell {
    pub(super) label: &'static str,
    /// Transactions a second in the slowest and in the fastest ten seconds.
    pub(super) min: u32,
    pub(super) max: u32,
}

const fn cell(label: &'static str, min: u32, max: u32) -> Cell {
    Cell { label, min, max }
}

const fn table(
    title: &'static str,
    file: &'static str,
    of: &'static [(&'static str, &'static str)],
    rows: &'static str,
    cells: &'static [Cell],
) -> Table {
    Table { title, file, of, rows, cells }
}

pub(super) const TABLES: &[Table] = &[
    table(
        "Proposals a second, 16 in flight, here on one connection; published on 3 machines of 36 virtual processors",
        "proposals",
        &[("connections", "1")],
        "value",
        &[cell("1KiB", 20224, 21396), cell("4KiB", 17429, 17512), cell("16KiB", 9501, 9623)],
    ),
    table(
        "Proposals a second, 16 in flight, here on a connection each; published on 3 machines of 36",
        "proposals",
        &[("connections", "16")],
        "value",
        &[cell("1KiB", 20224, 21396), cell("4KiB", 17429, 17512), cell("16KiB", 9501, 9623)],
    ),
    table(
        "Proposals a second, 16 in flight, here on one connection; published on 3 machines of 4",
        "proposals",
        &[("connections", "1")],
        "value",
        &[cell("1KiB", 8143, 8557), cell("4KiB", 7669, 7813), cell("16KiB", 5140, 5212)],
    ),
    table(
        "Transactions a second, 1 KiB, one at a time; published on 3 machines of 36",
        "plain",
        &[("value", "1KiB")],
        "clients",
        &[
            cell("1", 1255, 1271),
            cell("4", 5418, 5477),
            cell("16", 14130, 14295),
            cell("64", 18537, 18840),
        ],
    ),
    table(
        "Transactions a second, 4 KiB, one at a time; published on 3 machines of 36",
        "plain",
        &[("value", "4KiB")],
        "clients",
        &[
            cell("1", 1108, 1138),
            cell("4", 4962, 5007),
            cell("16", 11582, 11669),
            cell("64", 11141, 11588),
        ],
    ),
    table(
        "Transactions a second, 1 KiB, one at a time; published on 3 machines of 4",
        "plain",
        &[("value", "1KiB")],
        "clients",
        &[
            cell("1", 892, 913),
            cell("4", 3140, 3292),
            cell("16", 4538, 4926),
            cell("64", 5347, 5519),
        ],
    ),
    table(
        "Transactions a second, 4 KiB, one at a time; published on 3 machines of 4",
        "plain",
        &[("value", "4KiB")],
        "clients",
        &[
            cell("1", 854, 876),
            cell("4", 3097, 3171),
            cell("16", 4396, 4550),
            cell("64", 4772, 5077),
        ],
    ),
    table(
        "Transactions a second, 16 KiB, one at a time; published on 3 machines of 4",
        "plain",
        &[("value", "16KiB")],
        "clients",
        &[
            cell("1", 775, 788),
            cell("4", 2416, 2515),
            cell("16", 3176, 3352),
            cell("64", 3561, 3801),
        ],
    ),
    table(
        "Transactions a second, 16 B, batched in 16 queues; published on 3 machines of 36",
        "batching",
        &[("value", "16B"), ("queues", "16")],
        "clients",
        &[
            cell("1024", 153_967, 157_244),
            cell("4096", 196_163, 204_414),
            cell("16384", 229_715, 241_046),
        ],
    ),
    table(
        "Transactions a second, 1 KiB, batched in 16 queues; published on 3 machines of 36",
        "batching",
        &[("value", "1KiB"), ("queues", "16")],
        "clients",
        &[
            cell("64", 29373, 29514),
            cell("256", 57923, 59253),
            cell("1024", 75330, 76922),
            cell("4096", 101_046, 103_288),
            cell("16384", 108_876, 122_239),
        ],
    ),
    table(
        "Transactions a second, 1 KiB, batched in 4 queues; published on 3 machines of 4",
        "batching",
        &[("value", "1KiB"), ("queues", "4")],
        "clients",
        &[cell("64", 21195, 22209), cell("256", 39313, 41130), cell("1024", 52243, 56021)],
    ),
    table(
        "Transactions a second, 1 KiB, one at a time, the other replicas 200 ms away; published on 3 machines of 4",
        "far",
        &[],
        "clients",
        &[cell("64", 297, 307), cell("512", 2190, 2375), cell("1024", 3021, 3297)],
    ),
    table(
        "Transactions a second, 1 KiB, batched in 256 queues, the other replicas 200 ms away; published on 3 machines of 4",
        "far-batching",
        &[],
        "clients",
        &[cell("2048", 4221, 4413), cell("8192", 4357, 4736)],
    ),
];
