//! What a bucket did.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper ends of the histograms' classes, milliseconds.
const CLASSES_MS: [u64; 10] = [2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500];

/// Times of one kind of request.
#[derive(Default)]
struct Times {
    count: AtomicU64,
    sum_ns: AtomicU64,
    classes: [AtomicU64; CLASSES_MS.len()],
}

impl Times {
    fn add(&self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.count.fetch_add(1, Relaxed);
        self.sum_ns.fetch_add(ns, Relaxed);
        for (end, class) in CLASSES_MS.iter().zip(&self.classes) {
            if ns <= end * 1_000_000 {
                class.fetch_add(1, Relaxed);
            }
        }
    }
}

/// Counters of one bucket.
#[derive(Default)]
pub(super) struct Counts {
    puts: Times,
    gets: Times,
    /// Attempts to write that failed.
    pub(super) put_failed: AtomicU64,
    /// Attempts to read that failed.
    pub(super) get_failed: AtomicU64,
    /// Pieces that were given up.
    pub(super) left_out: AtomicU64,
    /// Pieces that were read and could not be used.
    pub(super) unusable: AtomicU64,
    /// Pieces that were not written because something else stands under their name.
    pub(super) taken: AtomicU64,
    /// Pieces that were missing and were written later.
    pub(super) repaired: AtomicU64,
    /// Pieces that are kept until the bucket takes them.
    pub(super) missing: AtomicU64,
}

impl Counts {
    pub(super) fn put(&self, took: Duration) {
        self.puts.add(took);
    }

    pub(super) fn got(&self, took: Duration) {
        self.gets.add(took);
    }
}

/// All buckets in Prometheus's text format.
pub(super) fn text<'a>(buckets: impl Iterator<Item = (&'a str, &'a Counts)> + Clone) -> String {
    let mut text = String::new();
    type Of = fn(&Counts) -> &AtomicU64;
    let counters: [(&str, &str, Of); 7] = [
        ("put_failures_total", "Attempts to write a piece that failed.", |it| &it.put_failed),
        ("get_failures_total", "Attempts to read a piece that failed.", |it| &it.get_failed),
        ("left_out_total", "Pieces that were given up.", |it| &it.left_out),
        ("unusable_total", "Pieces that were read and could not be used.", |it| &it.unusable),
        ("taken_total", "Pieces whose name something else has.", |it| &it.taken),
        ("repaired_total", "Pieces that were missing and were written later.", |it| &it.repaired),
        ("missing", "Pieces that wait until the bucket takes them.", |it| &it.missing),
    ];
    let counters = counters.map(|(name, help, of)| {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        (name, help, kind, of)
    });
    for (name, help, kind, of) in counters {
        let _ = write!(
            text,
            "# HELP ledger_bucket_{name} {help}\n# TYPE ledger_bucket_{name} {kind}\n"
        );
        for (bucket, counts) in buckets.clone() {
            let value = of(counts).load(Relaxed);
            let _ = writeln!(text, "ledger_bucket_{name}{{bucket=\"{bucket}\"}} {value}");
        }
    }
    type TimesOf = fn(&Counts) -> &Times;
    let times: [(&str, &str, TimesOf); 2] = [
        ("put_seconds", "How long a piece took to be durable in its bucket.", |it| &it.puts),
        ("get_seconds", "How long a bucket took to answer.", |it| &it.gets),
    ];
    for (name, help, of) in times {
        let _ = write!(
            text,
            "# HELP ledger_bucket_{name} {help}\n# TYPE ledger_bucket_{name} histogram\n"
        );
        for (bucket, counts) in buckets.clone() {
            let times = of(counts);
            for (end, class) in CLASSES_MS.iter().zip(&times.classes) {
                let (end, value) = (*end as f64 / 1e3, class.load(Relaxed));
                let _ = writeln!(
                    text,
                    "ledger_bucket_{name}_bucket{{bucket=\"{bucket}\",le=\"{end}\"}} {value}"
                );
            }
            let count = times.count.load(Relaxed);
            let sum = times.sum_ns.load(Relaxed) as f64 / 1e9;
            let _ = writeln!(
                text,
                "ledger_bucket_{name}_bucket{{bucket=\"{bucket}\",le=\"+Inf\"}} {count}"
            );
            let _ = writeln!(text, "ledger_bucket_{name}_sum{{bucket=\"{bucket}\"}} {sum}");
            let _ = writeln!(text, "ledger_bucket_{name}_count{{bucket=\"{bucket}\"}} {count}");
        }
    }
    text
}
