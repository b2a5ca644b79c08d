//! Programs that do not do what they should before the load: each ends the trial's deployment with words that say what
//! it did, and its own last lines.

use std::sync::Arc;
use std::time::Duration;

use clock::Clock;
use sut::Testbed;

use super::example::start;
use super::list;
use crate::program::Program;

/// What starting a shell script comes to.
fn starting(script: &str, change: impl FnOnce(&mut crate::Start)) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let mut bed = Testbed::new(folder.path(), Clock::start());
    let mut start = start(&["bash", "-c", script], 1);
    change(&mut start);
    let started = Program::start(start, &mut bed).map(drop).map_err(|error| error.to_string());
    bed.stop_all(Duration::from_secs(1)).unwrap();
    started
}

/// Lines on the control channel.
const SAY: &str = "IFS=, read control load <<< $ASSAY_EXEC_FDS; read -r _ <&$control; say() { echo \"$1\" >&$control; };";

/// Claim: a program that ends, says nothing, another thing, or too much when it is asked what it is, is told of in words,
/// with the last lines that it wrote itself.
#[test]
fn before_the_load() {
    let described =
        r#"say '{"did":"describe","version":1,"stages":["committed"],"kinds":["submit"]}';"#;
    let right =
        format!("{SAY} {described} read -r _ <&$control; say '{{\"did\":\"deploy\"}}'; read");
    starting(&right, |_| ()).unwrap();
    let failed =
        format!("{SAY} {described} read -r _ <&$control; say '{{\"failed\":\"no disk\"}}'; read");
    for (script, words) in [
        (
            "echo one >&2; echo the end >&2; exit 3".to_owned(),
            vec!["closed the control channel", "the end"],
        ),
        (format!("{SAY} say hello; read"), vec!["a line that cannot be read", "hello"]),
        (format!("{SAY} say '{{\"did\":\"deploy\"}}'; read"), vec!["it answered `deploy`"]),
        (
            format!("{SAY} say '{{\"did\":\"describe\",\"version\":2}}'; read"),
            vec!["speaks version 2"],
        ),
        (
            format!("{SAY} say '{{\"did\":\"describe\",\"version\":1}}'; read"),
            vec!["it says stages = []"],
        ),
        (format!("{SAY} head -c 3000000 /dev/zero >&$control; read"), vec!["a line of more than"]),
        (failed, vec!["it says that it failed: no disk"]),
    ] {
        let said = starting(&script, |_| ()).unwrap_err();
        for words in words {
            assert!(said.contains(words), "{script}: {said}");
        }
    }
    let said =
        starting("read", |start| start.start_within = Duration::from_millis(50)).unwrap_err();
    assert!(said.contains("no answer within 50ms"), "{said}");
    let said = starting("", |start| start.command = list(&["/no/such/program"])).unwrap_err();
    assert!(said.contains("/no/such/program"), "{said}");
}

/// Claim: a program that ends takes with it what it has started, and nothing of it holds a channel open.
#[test]
fn a_child_that_stays() {
    let script = format!("{SAY} sleep 1000 & echo $! >&2; exit 1");
    let folder = tempfile::tempdir().unwrap();
    let mut bed = Testbed::new(folder.path(), Clock::start());
    let said =
        Program::start(start(&["bash", "-c", &script], 1), &mut bed).err().unwrap().to_string();
    assert!(said.contains("closed the control channel"), "{said}");
    let child = bed.nodes();
    assert_eq!(child.len(), 1, "the child is nobody's node");
    let control = Arc::new(bed.control());
    assert!(control.ended("exec").unwrap().is_some_and(|how| how.contains("status 1")));
    bed.stop_all(Duration::from_secs(1)).unwrap();
}
