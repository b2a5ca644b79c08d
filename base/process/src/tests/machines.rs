//! Several machines of one node: what they pass arrives, in order and within bounds, and they end together.

use std::os::fd::OwnedFd;
use std::path::Path;

use clock::{Clock, Instant};

use crate::shell::{Bounds, Facts, Machine, Shell, ShellError, Until, run_machines};
use crate::store::{Store, StoreOptions};
use crate::{Input, Node, Outputs};

/// A machine that is a closure.
struct Part<F>(F);

impl<F: FnMut(Instant, Input<'_, u64>, &mut Outputs<u64>)> Node<u64> for Part<F> {
    fn step(&mut self, now: Instant, input: Input<'_, u64>, out: &mut Outputs<u64>) {
        (self.0)(now, input, out);
    }
}

fn shell() -> Shell {
    Shell::bind(&[], Bounds::default()).unwrap()
}

fn run(machines: Vec<Machine<'_, u64>>) -> Result<Vec<Facts>, ShellError> {
    run_machines(machines, 7, Clock::start(), &[])
}

/// Passes on what waits, in order, as far as there is room.
fn pass_on(waiting: &mut std::collections::VecDeque<u64>, to: usize, out: &mut Outputs<u64>) {
    while let Some(next) = waiting.pop_front() {
        if let Err(back) = out.pass(to, next) {
            waiting.push_front(back);
            return;
        }
    }
}

/// Claim: messages go round three machines in order and none is lost, though each queue takes seven and each
/// machine wants to pass thousands; a full queue refuses, and its sender is told when it has room; a machine has
/// no queue to itself.
#[test]
fn in_order_through_narrow_queues() {
    let count = 20_000;
    let (until, pipe) = std::io::pipe().unwrap();
    let mut pipe = Some(pipe);
    let (mut next, mut back, mut refused) = (0, 0, 0);
    let mut first = Part(|_, input: Input<'_, u64>, out: &mut Outputs<u64>| {
        if let Input::Message { from, message } = input {
            assert_eq!((from, message), (2, back));
            back += 1;
            if back == count {
                pipe = None;
            }
        }
        assert_eq!(out.pass(0, 1), Err(1));
        while next < count {
            if out.pass(1, next).is_err() {
                refused += 1;
                return;
            }
            next += 1;
        }
    });
    let relay = |to: usize| {
        let mut waiting = std::collections::VecDeque::new();
        Part(move |_, input: Input<'_, u64>, out: &mut Outputs<u64>| {
            if let Input::Message { message, .. } = input {
                waiting.push_back(message);
            }
            pass_on(&mut waiting, to, out);
        })
    };
    let (mut second, mut third) = (relay(2), relay(0));
    let machines = vec![
        Machine::new("first", shell(), &mut first),
        Machine::new("second", shell(), &mut second),
        Machine::new("third", shell(), &mut third),
    ];
    let until = [Until::EndOfFile(OwnedFd::from(until))];
    let facts = run_machines(machines, 7, Clock::start(), &until).unwrap();
    assert_eq!((back, next), (count, count));
    assert!(refused > 0);
    let ends: Vec<&str> = facts.iter().map(|facts| facts.ended_by.as_str()).collect();
    assert_eq!(ends[0], "the end of the parent's pipe");
    assert_eq!(ends[1..], ["the end of another machine"; 2]);
}

/// Claim: a machine whose disk fails ends all of them with its error.
#[test]
fn one_error_ends_all() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(
        folder.path(),
        &["log"],
        &["cell"],
        StoreOptions { segment_bytes: 4096, ..StoreOptions::default() },
    )
    .unwrap();
    std::os::unix::fs::symlink(Path::new("/dev/null"), folder.path().join("cell.new")).unwrap();
    let mut stopped = false;
    let mut waits = Part(|_, input: Input<'_, u64>, _: &mut Outputs<u64>| {
        stopped |= input == Input::Stop;
    });
    let mut fails = Part(|_, input: Input<'_, u64>, out: &mut Outputs<u64>| match input {
        Input::Wake => out.replace(0, b"content".to_vec()),
        other => panic!("{other:?}"),
    });
    let machines = vec![
        Machine::new("waits", shell(), &mut waits),
        Machine::new("fails", shell().keeping(store), &mut fails),
    ];
    let error = run(machines).unwrap_err();
    assert!(matches!(&error, ShellError::Store(_)), "{error}");
    assert!(error.to_string().contains("cell.new"), "{error}");
    assert!(stopped);
}

/// Claim: a machine that panics ends all of them, and the panic is not lost.
#[test]
#[should_panic(expected = "on purpose")]
fn one_panic_ends_all() {
    let mut waits = Part(|_, _: Input<'_, u64>, _: &mut Outputs<u64>| {});
    let mut panics = Part(|_, _: Input<'_, u64>, _: &mut Outputs<u64>| panic!("on purpose"));
    let machines = vec![
        Machine::new("waits", shell(), &mut waits),
        Machine::new("panics", shell(), &mut panics),
    ];
    let _ = run(machines);
}
