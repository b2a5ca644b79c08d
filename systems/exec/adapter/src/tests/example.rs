//! The example of the book, as a real process: it is the peer of the conformance suite.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clock::Clock;
use model::Seed;
use sut::conformance::{Peer, Subject, session_conformance};
use sut::{Link, Session, Testbed, Workload};

use super::{ids, list, words};
use crate::line::Vocabulary;
use crate::program::Program;
use crate::session::LineSession;
use crate::start::Start;
use crate::workload::Letters;

/// Nothing here takes longer, on a machine however busy.
const LONG: Duration = Duration::from_secs(60);

pub(super) fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../example.py")
}

pub(super) fn start(command: &[&str], channels: u32) -> Start {
    Start {
        name: "exec".to_owned(),
        command: list(command),
        folder: None,
        environment: Vec::new(),
        words: Vocabulary {
            stages: list(&["committed"]),
            kinds: list(&["submit"]),
            steps: Vec::new(),
            keys: None,
        },
        channels,
        in_flight_max: 64,
        start_within: LONG,
        answer_within: LONG,
        options: serde_json::json!({}),
        run_mark: 7,
        seed: Seed(7),
    }
}

/// Our end of a channel.
pub(super) fn socket(program: &Program, index: usize) -> UnixStream {
    let Ok(Link::Channel(channel, _)) = program.link(index) else { panic!("a channel") };
    channel.take().expect("nobody took it before").into()
}

/// Claim: the example of the book passes the conformance suite: the suite's connections are channels of a real process
/// of it.
#[test]
fn the_example_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let mut bed = Testbed::new(folder.path(), Clock::start());
    let path = example().display().to_string();
    // A channel for each connection that the suite makes.
    let program = Program::start(start(&["python3", &path], 200), &mut bed).unwrap();
    assert_eq!(program.facts["exec.says"], "example.py");
    let used = std::cell::Cell::new(0);
    let peer = || -> Peer {
        let channel = socket(&program, used.replace(used.get() + 1));
        channel.set_read_timeout(Some(LONG)).unwrap();
        let mut lines = BufReader::new(channel.try_clone().unwrap());
        Box::new(move |bytes| {
            (&channel).write_all(bytes).unwrap();
            let mut owed = ids(bytes).len();
            let mut answers = String::new();
            while owed > 0 {
                let from = answers.len();
                assert!(lines.read_line(&mut answers).unwrap() > 0, "it closed its channel");
                owed -= answers[from..].matches("\"id\"").count();
            }
            answers.into_bytes()
        })
    };
    let words = words(&["committed"], &["submit"]);
    let make = || -> Box<dyn Session> {
        Box::new(LineSession::new(Arc::clone(&words), Arc::default(), 64))
    };
    let workload = || -> Box<dyn Workload> { Box::new(Letters::of(Seed(1), 9, 1)) };
    session_conformance(&Subject::new(&make, &peer, &workload)).unwrap();
    assert!(used.get() > 10, "each connection was a channel of its own: {}", used.get());

    // What was submitted is in its ledger, and it ends by itself when it has been read.
    let mut ledger = program.ledger(&Arc::default()).unwrap().expect("it has one");
    let mut entries = 0;
    while ledger.next(&mut Vec::new()).unwrap().is_some() {
        entries += 1;
    }
    assert!(entries > 100, "{entries}");
    drop((ledger, program));
    bed.stop_all(LONG).unwrap();
}

/// Claim: the book shows the example as it is, and it has at most 40 lines.
#[test]
fn the_book_shows_the_example() {
    let code = std::fs::read_to_string(example()).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/exec.md");
    let book = std::fs::read_to_string(path).unwrap();
    assert!(
        book.contains(&format!("```python file=example.py\n{code}```\n")),
        "docs/exec.md and example.py differ"
    );
    assert!(code.lines().count() <= 40, "{}", code.lines().count());
}
