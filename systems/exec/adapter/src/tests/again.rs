//! Programs that a fault ends and starts again: each life has channels of its own, and deploys before it is loaded.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use clock::Clock;
use sut::{Channel, Link, Testbed};

use super::example::{example, socket, start};
use crate::program::Program;

/// Nothing here takes longer, on a machine however busy.
const LONG: Duration = Duration::from_secs(60);

fn channel(program: &Program) -> Channel {
    let Ok(Link::Channel(channel, _)) = program.link(0) else { panic!("a channel") };
    channel
}

/// Submits one transaction; gives the line that answers it, which is empty where the program has ended.
fn submit(channel: &UnixStream, id: u64) -> String {
    channel.set_read_timeout(Some(LONG)).unwrap();
    let mut to = channel;
    let _ = writeln!(to, "{{\"do\":\"submit\",\"tx\":[{{\"id\":{id}}}]}}");
    let mut answer = String::new();
    let _ = BufReader::new(channel).read_line(&mut answer);
    answer
}

/// Claim: after a restart the end of the first life is the plan's, the second life's channels take the load and its control
/// channel is asked for the ledger; it is told which life it is.
#[test]
fn a_second_life() {
    let folder = tempfile::tempdir().unwrap();
    let mut bed = Testbed::new(folder.path(), Clock::start());
    let path = example().display().to_string();
    let telling = "import os, sys; code = open(sys.argv[1]).read(); \
                   code = code.replace('return [{\"did\": question', \
                   'print(question, flush=True); return [{\"did\": question'); exec(code)";
    let program = Program::start(start(&["python3", "-c", telling, &path], 2), &mut bed).unwrap();
    let first = socket(&program, 0);
    assert!(submit(&first, 1).contains("committed"));
    bed.restart("exec").unwrap();
    assert_eq!(submit(&first, 2), "", "the first life has ended");
    assert!(channel(&program).fail("it closed its channel").is_planned);
    let mut ledger = program.ledger(&Arc::default()).unwrap().expect("it has one");
    assert!(ledger.next(&mut Vec::new()).unwrap().is_none(), "the example keeps nothing");
    let second = socket(&program, 0);
    assert!(submit(&second, 3).contains("committed"));
    let mut ledger = program.ledger(&Arc::default()).unwrap().expect("it has one");
    assert_eq!(ledger.next(&mut Vec::new()).unwrap().unwrap().tx, 3);
    let said = std::fs::read_to_string(&program.node().log).unwrap();
    let lives: Vec<bool> = said
        .lines()
        .filter(|line| line.contains("'deploy'"))
        .map(|line| line.contains("'life': 2"))
        .collect();
    assert_eq!(lives, [false, true], "{said}");
    drop((ledger, program));
    bed.stop_all(LONG).unwrap();
}

/// Claim: a program that does not come up again has failed as a client, with its own words.
#[test]
fn one_that_stays_down() {
    let script = "IFS=, read control load <<< $ASSAY_EXEC_FDS; read -r _ <&$control; \
                  test -e again && { echo the log is torn >&2; exit 1; }; touch again; \
                  echo '{\"did\":\"describe\",\"version\":1,\"stages\":[\"committed\"],\"kinds\":[\"submit\"],\"ledger\":true}' >&$control; \
                  read -r _ <&$control; echo '{\"did\":\"deploy\"}' >&$control; read -r _ <&$control";
    let folder = tempfile::tempdir().unwrap();
    let mut bed = Testbed::new(&folder.path().join("bed"), Clock::start());
    let mut start = start(&["bash", "-c", script], 1);
    start.folder = Some(folder.path().to_owned());
    let program = Program::start(start, &mut bed).unwrap();
    let channel = channel(&program);
    assert!(channel.take().is_some());
    bed.restart("exec").unwrap();
    let refused = program.ledger(&Arc::default()).err().unwrap().to_string();
    assert!(refused.contains("control channel"), "{refused}");
    let failure = channel.fail("");
    assert!(channel.take().is_none() && !failure.is_planned, "{failure:?}");
    assert!(failure.words.contains("exec: started again, answering `describe`"), "{failure:?}");
    assert!(failure.words.contains("the log is torn"), "{failure:?}");
    bed.stop_all(LONG).unwrap();
}
