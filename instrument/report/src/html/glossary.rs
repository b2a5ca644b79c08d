//! The words of the page and what they mean: those of GLOSSARY.md, read from it, and those that only the report uses.
//!
//! It must never define a word twice: what GLOSSARY.md says is what the page says.

use model::result::AuditFacts;

/// GLOSSARY.md as it is.
const GLOSSARY: &str = include_str!("../../data/GLOSSARY.md");

/// Rows of GLOSSARY.md that define several words at once in a sentence about all of them; each has its own below.
const SPLIT_BELOW: &[&str] = &["offered, sent, accepted, committed, verified rate"];

/// Words of GLOSSARY.md that are also plain English in most sentences: they are listed, and not marked in the text.
const NOT_MARKED: &[&str] = &[
    "system", "check", "run", "row", "level", "plan", "ready", "sent", "session", "class",
    "matrix", "kind", "profile", "seal", "driver", "node", "pacing", "the wall", "span", "machine",
    "shell", "peer", "log", "record", "trim", "segment", "cell", "value",
];

/// Words that only the report uses: forms and meaning. GLOSSARY.md wins where it has the word too.
const OF_THE_REPORT: &[(&str, &str)] = &[
    (
        "offered",
        "transactions that fell due, a second: what was asked of the system, whether or not it could take it",
    ),
    (
        "accepted",
        "the stage at which the system has taken a transaction in, and promised nothing yet",
    ),
    ("committed", "reached the final stage: what the experiment counts as done"),
    ("verified", "the stage at which the client itself has seen the transaction in the ledger"),
    ("unknown", "no answer within the timeout: neither a success nor a failure"),
    ("shed", "due, and never sent: the backlog was full, or the wait exceeded the timeout"),
    ("rejected", "refused or failed; the class says why"),
    ("limited", "refused by a rate limiter"),
    ("overloaded", "refused by a full queue, pool or server"),
    (
        "transport",
        "the connection failed: refused, reset, closed, or an answer that is not of the protocol",
    ),
    (
        "client-side",
        "what went wrong on this machine or on the way, and is no answer of the system",
    ),
    ("lost", "acknowledged, and not in the ledger"),
    ("duplicate, duplicates", "in the ledger more than once"),
    ("phantom", "in the ledger, never submitted"),
    (
        "reordered",
        "placed in the ledger before a transaction that was acknowledged before this one was sent",
    ),
    (
        "percentile, p50, p90, p95, p99, p99.9, p99.99",
        "p99 is the value that 99 of 100 samples do not exceed; p50 is the median",
    ),
    ("quantile", "a percentile written as a fraction of one: the 0.99 quantile is p99"),
    ("median", "the value in the middle: half of the samples do not exceed it"),
    (
        "percentile curve",
        "latency against the percentile, with more room the nearer to 100 %: how slow the slowest 1 in N is",
    ),
    (
        "latency",
        "how long a transaction takes; without another word: the response time, counted from the moment it was due",
    ),
    ("throughput", "transactions completed a second"),
    (
        "of all due",
        "counted over everything that fell due, where no answer counts as infinitely long (inf)",
    ),
    ("inf, ∞", "infinite: no answer came"),
    ("achieved", "goodput as a share of the offered rate"),
    ("outstanding", "due, and not ended yet"),
    (
        "samples beyond",
        "how many samples lie above the percentile; with fewer than ten it is a hint, marked ~ and greyed",
    ),
    ("density", "how many transactions fell into each cell of time and latency: darker is more"),
    ("histogram", "counts of values by how large they are"),
    (
        "HdrHistogram",
        "a form of histogram that keeps three significant digits over the whole range of values",
    ),
    (
        "ECDF",
        "empirical cumulative distribution: for each latency the share of transactions that took no longer",
    ),
    ("vegeta", "a widely used load generator; its report counts from the moment of sending"),
    ("open loop", "load whose arrivals do not wait for answers"),
    ("closed loop", "load of N clients, each of which waits for its answer before it sends again"),
    (
        "seed",
        "the number from which all randomness of a run is drawn: the same seed gives the same load",
    ),
    ("timeout", "how long a transaction may take before it counts as unknown"),
    ("generator", "the part of Assay that makes the load; a busy one would measure itself"),
    ("cpu_cores", "processor time used, in cores: 1 is one core kept busy"),
    (
        "processor time",
        "how long processors worked for a process: one that is kept busy for a second is a second, however long the process waited",
    ),
    ("steal", "processor time that the host of a virtual machine gave to others"),
    ("run queue, run_queue", "threads that run or wait for a processor"),
    (
        "governor",
        "how the kernel chooses the processor's clock rate; only performance gives steady numbers",
    ),
    ("rss_bytes, rss", "memory that a process really occupies"),
    ("io_uring", "how Linux lets a program do many input and output operations at once"),
    ("epoll", "how Linux tells a program which connections have something to read"),
    ("CRC-32", "a checksum: a file whose checksum differs is not the one that was measured"),
    ("exit code", "the number that the command ends with, for scripts and CI"),
    ("baseline", "the earlier run that this one is compared with"),
    ("saturated", "beyond saturation: more offered load brings no more goodput"),
    ("goodput", "rate of transactions that reached the final stage in time"),
    ("clock source", "the hardware counter that the kernel reads the time from"),
    ("load average", "how many threads wanted to run on the host, on average, before the run"),
    ("utilisation", "the share of the time that a server is busy"),
    (
        "conservation",
        "everything that fell due is accounted for: committed, rejected, unknown or shed",
    ),
    ("n", "how many samples the numbers of a row rest on"),
    ("tx", "short for transaction; the number after it is its id"),
    ("redacted", "replaced by a mark, so that the report does not disclose it"),
    ("ceil", "rounded up to a whole number"),
    (
        "batch means",
        "the means of a few long stretches of time: how much they differ says how sure a mean over all is, even where neighbours are alike",
    ),
    (
        "Student's t",
        "the distribution that the mean of few samples follows: it makes their intervals wider",
    ),
    (
        "order statistics",
        "the samples sorted by size: the limits of a quantile's interval are two of them",
    ),
    ("hypervisor", "the program that runs this virtual machine beside others on one host"),
    (
        "steal_share, steal_cores",
        "processor time that the hypervisor gave to others, as a share and in cores",
    ),
    ("cpu_mhz", "clock rate of the processor: one that falls makes everything slower"),
    ("memory_available_bytes", "memory of the host that programs can still have"),
    ("load1", "the load average of the last minute"),
    (
        "listen_drops_per_second, listen drops",
        "connections that the host refused because the queue of new ones was full",
    ),
    (
        "tcp_retransmits_per_second, TCP retransmits",
        "packets that the host sent again because no confirmation came in time",
    ),
    ("tsc", "the processor's own counter of time: the usual source of the clock, and an exact one"),
    ("stationary", "without a trend: its mean is the same at the start and at the end"),
    (
        "Little's law",
        "the number in flight equals rate × time; if it does not, something was not counted",
    ),
];

/// The entry of an audit: what it asks, as the result says.
pub(super) fn audit(of: &AuditFacts) -> Entry {
    Entry {
        forms: vec![format!("audit {}", of.name)],
        meaning: of.question.clone(),
        is_marked: false,
    }
}

/// A word with its meaning.
pub(super) struct Entry {
    /// Ways to write it, the first one stands in the list.
    pub(super) forms: Vec<String>,
    /// Its meaning: plain text.
    pub(super) meaning: String,
    /// Whether its occurrences are marked.
    pub(super) is_marked: bool,
}

impl Entry {
    /// The id of its definition in the document.
    pub(super) fn id(&self) -> String {
        let letters = self.forms[0].to_lowercase();
        let id: String =
            letters.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        format!("g-{}", id.trim_matches('-'))
    }
}

/// All entries, those of GLOSSARY.md first, each form once; then what the audits of these runs ask.
pub(super) fn entries<'a>(asked: impl Iterator<Item = &'a AuditFacts>) -> Vec<Entry> {
    let mut known: Vec<String> = Vec::new();
    let mut entries = Vec::new();
    let of_file =
        rows(GLOSSARY).into_iter().filter(|(words, _)| !SPLIT_BELOW.contains(&words.as_str()));
    let of_report = OF_THE_REPORT.iter().map(|(words, it)| ((*words).to_owned(), (*it).to_owned()));
    for (words, meaning) in of_file.chain(of_report) {
        let forms: Vec<String> = words.split(", ").map(|word| plain(word.trim())).collect();
        let forms: Vec<String> =
            forms.into_iter().filter(|form| !known.contains(&form.to_lowercase())).collect();
        if forms.is_empty() {
            continue;
        }
        known.extend(forms.iter().map(|form| form.to_lowercase()));
        let is_marked = !NOT_MARKED.contains(&forms[0].as_str());
        entries.push(Entry { forms, meaning: plain(&meaning), is_marked });
    }
    for entry in asked.map(audit) {
        if !entries.iter().any(|known: &Entry| known.forms == entry.forms) {
            entries.push(entry);
        }
    }
    entries
}

/// Word and meaning of each row of the tables of a Markdown text.
fn rows(markdown: &str) -> Vec<(String, String)> {
    let row = |line: &str| {
        let (word, meaning) = line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ")?;
        let is_data = word != "word" && !word.starts_with("---");
        is_data.then(|| (word.to_owned(), meaning.to_owned()))
    };
    markdown.lines().filter_map(|line| row(line.trim())).collect()
}

/// Without the marks of Markdown.
fn plain(of: &str) -> String {
    of.replace(['`', '*'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: every row of GLOSSARY.md is an entry, with its own words for a meaning, and ids are unique.
    #[test]
    fn the_glossary_is_the_page_s() {
        let entries = entries(std::iter::empty());
        let rows = rows(GLOSSARY);
        assert!(rows.len() > 60, "{} rows", rows.len());
        for (words, meaning) in
            rows.iter().filter(|(words, _)| !SPLIT_BELOW.contains(&words.as_str()))
        {
            for word in words.split(", ") {
                let form = plain(word);
                let entry = entries.iter().find(|it| it.forms.contains(&form));
                assert_eq!(entry.map(|it| it.meaning.clone()), Some(plain(meaning)), "{form}");
            }
        }
        let mut ids: Vec<String> = entries.iter().map(Entry::id).collect();
        ids.sort();
        let all = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), all, "{ids:?}");
        for split in SPLIT_BELOW {
            assert!(rows.iter().any(|(words, _)| words == split), "{split} is a row no more");
        }
    }
}
