//! The events that the node stamped, from its file to whoever keeps them. A record that is cut off or damaged is said,
//! with its place, and those before and behind it are handed over all the same: records have one length.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::time::Duration;

use echo_node::events::{EVENT_BYTES, Event, Stage};
use model::WallTime;
use sut::{NodeEvent, NodeEvents, NodeSpan};

/// Damaged records after which the file is not one of events.
const DAMAGED_MAX: u64 = 1000;

/// Reads the file of the node called `node`.
pub(crate) fn read(path: &Path, node: &str, to: &mut dyn NodeEvents) {
    let file = match File::open(path) {
        Ok(file) => BufReader::with_capacity(1 << 20, file),
        Err(error) => {
            let path = path.display();
            return to.problem(format!("opening the events of `{node}`, {path}: {error}"));
        }
    };
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    for words in read_records(file, node, to) {
        to.problem(format!("the events of `{node}` ({name}): {words}"));
    }
}

/// Hands over every record that is whole, and gives what is wrong with the others.
fn read_records(mut from: impl Read, node: &str, to: &mut dyn NodeEvents) -> Vec<String> {
    let (mut place, mut damaged, mut first_damaged) = (0_u64, 0_u64, 0_u64);
    let mut record = [0; EVENT_BYTES];
    let mut problems = Vec::new();
    loop {
        match fill(&mut from, &mut record) {
            Ok(EVENT_BYTES) => {}
            Ok(0) => break,
            Ok(bytes) => {
                problems.push(format!(
                    "the last record, {place} (from 0), is cut off after {bytes} of {EVENT_BYTES} bytes, as a node that \
                     was killed leaves it; all before it were read"
                ));
                break;
            }
            Err(error) => {
                problems.push(format!("reading on behind {place} records: {error}"));
                break;
            }
        }
        match Event::read(&record) {
            Some(event) => hand_over(&event, node, to),
            None => {
                first_damaged = if damaged == 0 { place } else { first_damaged };
                damaged += 1;
                if damaged > DAMAGED_MAX {
                    problems.push(format!(
                        "more than {DAMAGED_MAX} records are damaged, the first at {first_damaged} (from 0); it was left \
                         at {place}, and is hardly a file of events"
                    ));
                    return problems;
                }
            }
        }
        place += 1;
    }
    if damaged > 0 {
        let records = if damaged == 1 { "record is" } else { "records are" };
        problems.push(format!(
            "{damaged} {records} damaged, the first at {first_damaged} (from 0), and left out; all others were read"
        ));
    }
    problems
}

fn hand_over(event: &Event, node: &str, to: &mut dyn NodeEvents) {
    let stage = event.stage as u32;
    let at = WallTime::from_unix_ns(event.at_unix_ns);
    let took = Duration::from_nanos(event.took_ns);
    // What is received takes no time: that is no length of anything.
    let took = (event.stage != Stage::Received).then_some(took);
    to.event(NodeEvent { stage, node, at, count: 1, took });
    let before = i64::try_from(event.took_ns).unwrap_or(i64::MAX);
    let from = WallTime::from_unix_ns(event.at_unix_ns.saturating_sub(before));
    to.span(NodeSpan { tx: event.tx, stage, node, from, to: at });
}

/// Reads until the record is full or the end is there; gives how many bytes it has.
fn fill(from: &mut impl Read, record: &mut [u8; EVENT_BYTES]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < EVENT_BYTES {
        match from.read(&mut record[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Kept {
        events: u64,
        spans: u64,
        problems: Vec<String>,
    }

    impl NodeEvents for Kept {
        fn event(&mut self, event: NodeEvent<'_>) {
            assert_eq!((event.node, event.count), ("echo", 1));
            self.events += 1;
        }
        fn span(&mut self, span: NodeSpan<'_>) {
            assert!(span.from <= span.to);
            self.spans += 1;
        }
        fn problem(&mut self, words: String) {
            self.problems.push(words);
        }
    }

    fn records(count: u64) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("echo.events");
        let node = echo_node::EchoNode::new(
            echo_node::Options::default(),
            echo_node::ledger::Ledger::nowhere(),
            echo_node::Confession::none(),
            echo_node::events::Events::in_file(&path, false, WallTime::from_unix_ns(0)).unwrap(),
        );
        let mut rehearsal = process::rehearsal::Rehearsal::new(node);
        let connection = rehearsal.open(echo_node::FRAMES_LISTENER);
        for tx in 0..count {
            let mut bytes = Vec::new();
            echo_node::protocol::write_submit(&mut bytes, 1, tx, 0, b"payload");
            rehearsal.send(connection, &bytes);
        }
        rehearsal.advance(clock::Instant::from_ns(1_000_000_000));
        std::fs::read(&path).unwrap()
    }

    fn read_file(bytes: &[u8]) -> Kept {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("echo.events");
        std::fs::write(&path, bytes).unwrap();
        let mut kept = Kept::default();
        read(&path, "echo", &mut kept);
        kept
    }

    /// Claim: a file that is whole says nothing; one that is cut off, damaged in places, of something else or missing
    /// is said with its place, and everything that is whole in it is handed over.
    #[test]
    fn what_is_whole_is_kept() {
        let bytes = records(100);
        assert_eq!(bytes.len(), 400 * EVENT_BYTES);
        let whole = read_file(&bytes);
        assert_eq!((whole.events, whole.spans, whole.problems.len()), (400, 400, 0));
        let cut = read_file(&bytes[..bytes.len() - 5]);
        assert_eq!(cut.events, 399);
        assert!(cut.problems[0].contains("record, 399 (from 0), is cut off after 27 of 32"));
        let mut damaged = bytes.clone();
        damaged[17 * EVENT_BYTES + 3] ^= 4;
        damaged[90 * EVENT_BYTES + 20] ^= 4;
        let damaged = read_file(&damaged);
        assert_eq!(damaged.events, 398);
        let said =
            "the events of `echo` (echo.events): 2 records are damaged, the first at 17 (from 0)";
        assert!(damaged.problems[0].starts_with(said), "{:?}", damaged.problems);
        let other = read_file(&vec![7; 100_000]);
        assert_eq!((other.events, other.problems.len()), (0, 1));
        assert!(other.problems[0].contains("hardly a file of events"), "{:?}", other.problems);
        let mut missing = Kept::default();
        read(Path::new("/nowhere/echo.events"), "echo", &mut missing);
        assert!(missing.problems[0].starts_with("opening the events of `echo`, /nowhere"));
    }
}
