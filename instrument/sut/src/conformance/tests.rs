//! Broken sessions, each of which the suite must catch with the right words, and a good one that it must let
//! pass. All speak one line protocol: `ID\n` out, `ID\n` back.

use std::collections::VecDeque;
use std::time::Duration;

use model::{Class, Outcome, Seed, TxId};

use super::*;
use crate::{
    Abandon, Deployment, Kind, Link, Made, Marks, NodeStage, ProtocolError, Role, SutError, System,
    Testbed, Transaction,
};

/// The ways to break the contract.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Flaw {
    #[default]
    None,
    WritesNothing,
    HoldsTheLast,
    PipelinesOne,
    AllowsNothing,
    AnswersTwice,
    EndsAfterReaching,
    AnswersForOthers,
    NeverAnswers,
    ReadsOneAnswerAReceipt,
    SaysCommittedAsAnEnd,
    StageBeyondTheLadder,
    PanicsOnNonsense,
    LoopsOnNonsense,
    ClaimsTooMuch,
    DependsOnPieces,
    DependsOnPiecesOfNonsense,
    KeepsUnreadOverReset,
    KeepsOutstandingOverReset,
    RewritesTheBuffer,
    IsNeverReady,
    PollsWithoutPause,
    WritesOtherBytesEachTime,
    MismatchesAfterAbandon,
    ClaimsPayload,
    RefusesHonestAnswers,
    MarksAtIdleClose,
    RenamesLaterAttempts,
    ObservesForOthers,
    ObservesPieces,
    GathersOnlyTheFirst,
    GathersFromTheLastTime,
    GathersWhatIsNot,
    KeepsTheBatchOverReset,
    AbandonsTheWholeBatch,
}

/// The line protocol; answers are matched in order where `by_order` is set, else by id.
#[derive(Default)]
struct Mock {
    flaw: Flaw,
    by_order: bool,
    in_flight_max: u32,
    outstanding: VecDeque<TxId>,
    held: Vec<u8>,
    /// What is to leave together, where that is framed.
    batch: Option<Vec<u8>>,
    given_up: bool,
    kept: Vec<u8>,
    calls: u32,
    nonce: u64,
}

impl Mock {
    fn answer(&mut self, line: &[u8], marks: &mut Marks) -> Result<(), ProtocolError> {
        let strange = || ProtocolError("not a number".to_owned());
        let text = std::str::from_utf8(line).map_err(|_| strange())?;
        let said: TxId = text.parse().map_err(|_| strange())?;
        let tx =
            if self.by_order { self.outstanding.pop_front().ok_or_else(strange)? } else { said };
        match self.flaw {
            Flaw::NeverAnswers => {}
            Flaw::ObservesForOthers => {
                marks.observed(tx + 1000, line);
                marks.reached(tx, 0, 0, 0);
            }
            Flaw::AbandonsTheWholeBatch if self.given_up => {}
            Flaw::AnswersForOthers => marks.reached(tx + 1000, 0, 0, 0),
            Flaw::SaysCommittedAsAnEnd => marks.ended(tx, Outcome::Committed, 0, 0, ""),
            Flaw::StageBeyondTheLadder => marks.reached(tx, 3, 0, 0),
            Flaw::AnswersTwice => (0..2).for_each(|_| marks.reached(tx, 0, 0, 0)),
            Flaw::EndsAfterReaching => {
                marks.reached(tx, 0, 0, 0);
                marks.ended(tx, Outcome::Rejected(Class::Server), 0, 0, "why");
            }
            _ => marks.reached(tx, 0, 0, 0),
        }
        Ok(())
    }
}

impl Session for Mock {
    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        let renamed = self.flaw == Flaw::RenamesLaterAttempts && tx.attempt > 1;
        let id = if renamed { tx.id + 500 } else { tx.id };
        let mut line = format!("{id}\n").into_bytes();
        self.outstanding.push_back(tx.id);
        match self.flaw {
            Flaw::WritesNothing => return 0,
            Flaw::HoldsTheLast => {
                let split = line.len() - 1;
                out.append(&mut self.held);
                self.held = line.split_off(split);
            }
            Flaw::PipelinesOne if self.outstanding.len() > 1 => return 0,
            Flaw::RewritesTheBuffer => out.clear(),
            Flaw::WritesOtherBytesEachTime => {
                line.splice(0..0, self.nonce.to_string().bytes()).for_each(drop)
            }
            _ => {}
        }
        match &mut self.batch {
            Some(batch) => batch.extend_from_slice(&line),
            None => out.extend_from_slice(&line),
        }
        if self.flaw == Flaw::ClaimsPayload { 1000 } else { 0 }
    }

    fn gathered(&mut self, out: &mut Vec<u8>) {
        let Some(batch) = &mut self.batch else { return };
        match self.flaw {
            Flaw::GathersWhatIsNot if batch.is_empty() => out.extend_from_slice(b"x\n"),
            Flaw::GathersOnlyTheFirst => {
                let end = batch.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                out.extend_from_slice(&batch[..end]);
                batch.clear();
            }
            Flaw::GathersFromTheLastTime => {
                // The last of several stays for the next time.
                let mut ends = batch.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
                let first = ends.next().map_or(0, |(at, _)| at + 1);
                let last = ends.next_back().map_or(first, |_| first);
                out.extend(batch.drain(..last));
            }
            _ => out.append(batch),
        }
    }

    fn receive(
        &mut self,
        bytes: &[u8],
        _: &mut Vec<u8>,
        marks: &mut Marks,
    ) -> Result<usize, ProtocolError> {
        self.calls += 1;
        let bytes = &[self.kept.as_slice(), bytes].concat()[..];
        let is_nonsense = bytes.contains(&0xff);
        match self.flaw {
            Flaw::PanicsOnNonsense if is_nonsense => panic!("index out of bounds"),
            Flaw::LoopsOnNonsense if is_nonsense => loop {
                std::thread::park();
            },
            Flaw::ClaimsTooMuch => return Ok(bytes.len() + 1),
            Flaw::DependsOnPieces if self.calls > 1 => return Ok(bytes.len()),
            Flaw::DependsOnPiecesOfNonsense if is_nonsense && bytes.len() > 5 => {
                marks.reached(5, 0, 0, 0);
            }
            // What was seen of an answer, however little of it has come.
            Flaw::ObservesPieces => marks.observed(0, bytes),
            Flaw::RefusesHonestAnswers => return Err(ProtocolError("no".to_owned())),
            _ => {}
        }
        let mut used = 0;
        while let Some(length) = bytes[used..].iter().position(|byte| *byte == b'\n') {
            self.answer(&bytes[used..used + length], marks)?;
            used += length + 1;
            if self.flaw == Flaw::ReadsOneAnswerAReceipt {
                break;
            }
        }
        let unread = bytes.len() - used;
        if unread > 10_000 {
            return Err(ProtocolError("a line that never ends".to_owned()));
        }
        if matches!(self.flaw, Flaw::KeepsUnreadOverReset) {
            let kept_before = self.kept.len();
            self.kept = bytes[used..].to_vec();
            return Ok(bytes.len() - kept_before);
        }
        Ok(used)
    }

    fn is_ready(&self) -> bool {
        self.flaw != Flaw::IsNeverReady
    }

    fn closed(&mut self, marks: &mut Marks) {
        if self.flaw == Flaw::MarksAtIdleClose {
            marks.reached(0, 0, 0, 0);
        }
    }

    fn abandon(&mut self, tx: TxId) -> Abandon {
        if self.by_order && self.flaw != Flaw::MismatchesAfterAbandon {
            return Abandon::Close;
        }
        self.outstanding.retain(|known| *known != tx);
        self.given_up = true;
        Abandon::Keep
    }

    fn in_flight_max(&self) -> u32 {
        if self.flaw == Flaw::AllowsNothing { 0 } else { self.in_flight_max }
    }

    fn poll(&mut self, _: &mut Vec<u8>) -> Option<Duration> {
        (self.flaw == Flaw::PollsWithoutPause).then_some(Duration::ZERO)
    }

    fn reset(&mut self) {
        if self.flaw != Flaw::KeepsOutstandingOverReset {
            self.outstanding.clear();
        }
        if let Some(batch) =
            self.batch.as_mut().filter(|_| self.flaw != Flaw::KeepsTheBatchOverReset)
        {
            batch.clear();
        }
    }
}

/// Says every whole line back.
fn line_peer() -> Peer {
    let mut kept = Vec::new();
    Box::new(move |bytes| {
        kept.extend_from_slice(bytes);
        let whole = kept.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        kept.drain(..whole).collect()
    })
}

struct NoPayload;

impl Workload for NoPayload {
    fn next(&mut self, _: TxId, client: Option<u32>, _: &mut Vec<u8>) -> Made {
        Made::of(0, client)
    }
}

fn verdict(flaw: Flaw, by_order: bool, in_flight_max: u32) -> Result<(), Breaches> {
    let made = std::cell::Cell::new(0);
    let session = || {
        made.set(made.get() + 1);
        let nonce = made.get();
        let gathers = [
            Flaw::GathersOnlyTheFirst,
            Flaw::GathersFromTheLastTime,
            Flaw::GathersWhatIsNot,
            Flaw::KeepsTheBatchOverReset,
        ];
        let batch = gathers.contains(&flaw).then(Vec::new);
        Box::new(Mock { flaw, by_order, in_flight_max, nonce, batch, ..Mock::default() })
            as Box<dyn Session>
    };
    session_conformance(&Subject::new(&session, &line_peer, &|| Box::new(NoPayload)))
}

/// Claim: sessions that keep the contract pass, answers matched by id or by order, one or many in flight.
#[test]
fn good_sessions_pass() {
    for (by_order, in_flight_max) in
        [(false, 1), (false, 64), (true, 1), (true, 64), (false, u32::MAX)]
    {
        verdict(Flaw::None, by_order, in_flight_max).unwrap();
    }
}

/// Claim: every broken session is caught, in the scenario and with the words that name its flaw.
#[test]
fn every_flaw_is_caught() {
    for (flaw, by_order, scenario, words) in [
        (
            Flaw::WritesNothing,
            false,
            "one transaction at a time",
            "submit wrote nothing for transaction 0: a session that holds a request back hides a queue",
        ),
        (
            Flaw::HoldsTheLast,
            false,
            "one transaction at a time",
            "the peer had nothing to say to what submit wrote for transaction 0: part of the request was held back",
        ),
        (
            Flaw::PipelinesOne,
            true,
            "as many as may be in flight",
            "submit wrote nothing for transaction 1: a session that holds a request back hides a queue",
        ),
        (Flaw::AllowsNothing, false, "one transaction at a time", "allows no transaction at all"),
        (
            Flaw::AnswersTwice,
            false,
            "one transaction at a time",
            "marked stage 0 of transaction 0 twice",
        ),
        (
            Flaw::EndsAfterReaching,
            false,
            "one transaction at a time",
            "marked the end of transaction 0 twice",
        ),
        (
            Flaw::RenamesLaterAttempts,
            false,
            "another attempt",
            "sent the 2. time, on a new connection: answered for transaction 500, which it was never given",
        ),
        (
            Flaw::AnswersForOthers,
            false,
            "one transaction at a time",
            "answered for transaction 1000, which it was never given",
        ),
        (
            Flaw::NeverAnswers,
            false,
            "one transaction at a time",
            "never answered transaction 0, although the peer did (2 bytes)",
        ),
        (
            Flaw::ReadsOneAnswerAReceipt,
            false,
            "as many as may be in flight",
            "never answered transaction 1, although the peer did",
        ),
        (
            Flaw::SaysCommittedAsAnEnd,
            false,
            "one transaction at a time",
            "ended transaction 0 as committed",
        ),
        (
            Flaw::StageBeyondTheLadder,
            false,
            "one transaction at a time",
            "marked stage 3 of transaction 0, but the ladder has 1 stages",
        ),
        (
            Flaw::PanicsOnNonsense,
            false,
            "arbitrary bytes",
            "panicked: index out of bounds; bytes \"",
        ),
        (
            Flaw::ClaimsTooMuch,
            false,
            "one transaction at a time",
            "receive says that it used 3 bytes of 2",
        ),
        (
            Flaw::DependsOnPieces,
            false,
            "an answer in other pieces",
            "found something else when the same 16 bytes came in pieces of 1, 1, 1, 1, 1, 1, 1, 1, …: 0 marks instead of 8 marks",
        ),
        (
            Flaw::ObservesForOthers,
            false,
            "one transaction at a time",
            "observed what transaction 1000 returned, which it was never given",
        ),
        (
            Flaw::ObservesPieces,
            false,
            "an answer in other pieces",
            "16 observations instead of 8 marks and 1 observations",
        ),
        (
            Flaw::DependsOnPiecesOfNonsense,
            false,
            "arbitrary bytes",
            "found something else when the same",
        ),
        (
            Flaw::KeepsUnreadOverReset,
            false,
            "a reset",
            "after a reset with part of an answer read: ",
        ),
        (
            Flaw::KeepsOutstandingOverReset,
            true,
            "a reset",
            "after a reset with transactions outstanding: answered for transaction 0, which it was never given",
        ),
        (
            Flaw::RewritesTheBuffer,
            false,
            "one transaction at a time",
            "submit changed bytes of the output buffer that other calls had written",
        ),
        (
            Flaw::IsNeverReady,
            false,
            "one transaction at a time",
            "is not ready for transactions after its handshake",
        ),
        (
            Flaw::PollsWithoutPause,
            false,
            "the same transactions again",
            "poll wants to ask again at once",
        ),
        (
            Flaw::WritesOtherBytesEachTime,
            true,
            "the same transactions again",
            "wrote other bytes for the same transactions",
        ),
        (
            Flaw::MismatchesAfterAbandon,
            true,
            "an abandoned transaction",
            "after transaction 0 was abandoned with `Keep`: refused what an honest peer answered",
        ),
        (
            Flaw::ClaimsPayload,
            false,
            "one transaction at a time",
            "submit wrote 2 bytes for transaction 0 and says that 1000 of them are payload",
        ),
        (
            Flaw::RefusesHonestAnswers,
            false,
            "one transaction at a time",
            "refused what an honest peer answered as not of the protocol: no",
        ),
        (
            Flaw::MarksAtIdleClose,
            false,
            "a connection that is closed",
            "answered for transaction 0, which it was never given",
        ),
        (
            Flaw::GathersOnlyTheFirst,
            false,
            "transactions that leave together",
            "of 2 that left together: never answered transaction 2, although the peer did",
        ),
        (
            Flaw::GathersFromTheLastTime,
            false,
            "transactions that leave together",
            "although nothing had been submitted since the last time",
        ),
        (
            Flaw::GathersWhatIsNot,
            false,
            "transactions that leave together",
            "gathered wrote 2 bytes although nothing had been submitted since the last time",
        ),
        (
            Flaw::KeepsTheBatchOverReset,
            false,
            "a reset",
            "after a reset with a transaction submitted and not gathered: gathered wrote",
        ),
        (
            Flaw::AbandonsTheWholeBatch,
            false,
            "one of a batch abandoned",
            "after transaction 1 of 0 to 2 that left together was abandoned with `Keep`: never answered",
        ),
    ] {
        let breaches = verdict(flaw, by_order, 64).expect_err(&format!("{flaw:?} passed"));
        let found = breaches.list.iter().find(|breach| breach.scenario == scenario);
        let said = found.map_or("nothing", |breach| breach.words.as_str());
        assert!(said.contains(words), "{flaw:?}: `{scenario}` said: {said}\nall: {breaches}");
    }
}

/// Claim: a session that never returns from bytes that it does not expect is named, and does not hang the test.
#[test]
fn a_loop_is_caught() {
    let session = || {
        Box::new(Mock { flaw: Flaw::LoopsOnNonsense, in_flight_max: 1, ..Mock::default() })
            as Box<dyn Session>
    };
    let words = replay::with_patience(Duration::from_millis(300), || {
        session_conformance(&Subject::new(&session, &line_peer, &|| Box::new(NoPayload)))
    })
    .expect_err("a session that loops passed");
    assert_eq!(words.list.len(), 1, "{words}");
    assert!(words.to_string().contains("it loops; bytes \""), "{words}");
}

/// Claim: an observer that misses what the system sent, or finds it twice, is caught; a good one passes.
#[test]
fn observers() {
    let check = |flaw: Flaw, watched: &[TxId]| {
        let session =
            || Box::new(Mock { flaw, in_flight_max: 1, ..Mock::default() }) as Box<dyn Session>;
        observer_conformance(&session, b"5\n6\n7\n", watched, 1, 0).map_err(|b| b.to_string())
    };
    assert_eq!(check(Flaw::None, &[5, 6, 7]), Ok(()));
    let missed = check(Flaw::NeverAnswers, &[5, 6, 7]).unwrap_err();
    assert!(missed.contains("never answered 3 transactions, although the peer did"), "{missed}");
    let twice = check(Flaw::AnswersTwice, &[5, 6, 7]).unwrap_err();
    assert!(twice.contains("marked stage 0 of transaction 5 twice"), "{twice}");
    let invented = check(Flaw::None, &[5, 6]).unwrap_err();
    assert!(
        invented.contains("answered for transaction 7, which it was never given"),
        "{invented}"
    );
}

/// A system that is wrong in what can be seen without starting it.
struct Paper {
    stages: Vec<&'static str>,
    node_stages: Vec<&'static str>,
    kinds: Vec<&'static str>,
    kind: u32,
    is_random: bool,
    forgets_clients: bool,
}

impl System for Paper {
    fn stages(&self) -> Vec<String> {
        self.stages.iter().map(ToString::to_string).collect()
    }
    fn node_stages(&self) -> Vec<NodeStage> {
        let label = |name: &str| if name == "mute" { "" } else { "what a node does" };
        self.node_stages.iter().map(|name| NodeStage::new(name, label(name))).collect()
    }
    fn kinds(&self) -> Vec<Kind> {
        self.kinds.iter().copied().map(Kind::recorded).collect()
    }
    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        Ok(Deployment::new(bed.clock()))
    }
    fn workload(&self, seed: Seed, _: u32, _: u32) -> Box<dyn Workload> {
        static CALLS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let salt = CALLS.fetch_add(u64::from(self.is_random), std::sync::atomic::Ordering::Relaxed);
        struct Source(u64, u32, bool);
        impl Workload for Source {
            fn next(&mut self, tx: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
                payload.extend_from_slice(&(tx ^ self.0).to_le_bytes());
                Made::of(self.1, client.filter(|_| !self.2))
            }
        }
        Box::new(Source(seed.0 ^ salt, self.kind, self.forgets_clients))
    }
    fn connect(&self, _: &Deployment, _: Role, _: u32) -> Result<Link, SutError> {
        Err(SutError::Deploy("on paper only".to_owned()))
    }
}

/// Claim: a ladder, kinds or a workload that break the contract are caught with the right words; good ones pass.
#[test]
fn systems() {
    let good = || Paper {
        stages: vec!["accepted", "committed"],
        node_stages: vec!["raft.send", "stored"],
        kinds: vec!["put"],
        kind: 0,
        is_random: false,
        forgets_clients: false,
    };
    system_conformance(&good()).unwrap();
    for (system, words) in [
        (Paper { stages: vec![], ..good() }, "has 0 stages; 1 to 4 are possible"),
        (Paper { stages: vec!["a", "b", "c", "d", "e"], ..good() }, "has 5 stages"),
        (Paper { stages: vec!["Committed!"], ..good() }, "calls a stage `Committed!`"),
        (Paper { stages: vec!["a", "a"], ..good() }, "has two stages called `a`"),
        (Paper { node_stages: vec!["Raft"], ..good() }, "calls a node stage `Raft`"),
        (Paper { node_stages: vec!["raft."], ..good() }, "calls a node stage `raft.`"),
        (Paper { node_stages: vec!["mute"], ..good() }, "what its node stage `mute` is"),
        (Paper { node_stages: vec!["x"; 33], ..good() }, "has 33 node stages; at most 32"),
        (Paper { node_stages: vec!["committed"], ..good() }, "has two stages called `committed`"),
        (Paper { kinds: vec![], ..good() }, "has no kind of transaction"),
        (Paper { kinds: vec!["x", "x"], ..good() }, "has two kinds called `x`"),
        (Paper { kind: 1, ..good() }, "made transaction 0 of kind 1, but there are 1 kinds"),
        (Paper { is_random: true, ..good() }, "made another transaction 0 from the same seed"),
        (
            Paper { forgets_clients: true, ..good() },
            "transaction 0 of client 3 and made one of client 0",
        ),
    ] {
        let said = system_conformance(&system).expect_err(words).to_string();
        assert!(said.contains(words), "{said}");
    }
}

/// Claim: an adapter whose nodes mean different things by one name, keep two metrics under one, or call one what no
/// threshold can write, is told which; one that does not passes.
#[test]
fn series_that_nodes_mean_differently() {
    use crate::{Scrape, ScrapeSeries};
    use model::series::{SeriesFacts, SeriesUnit};

    let backlog = SeriesFacts::of_node("backlog", "what waits", SeriesUnit::Number).adding_up();
    let node = |source: &str, series: &[SeriesFacts]| Scrape {
        source: source.to_owned(),
        address: ([127, 0, 0, 1], 1).into(),
        path: "/metrics".to_owned(),
        series: series
            .iter()
            .map(|series| ScrapeSeries {
                metric: "queue".to_owned(),
                series: series.clone(),
                per_second: false,
            })
            .collect(),
    };
    let alike =
        [node("a", std::slice::from_ref(&backlog)), node("b", std::slice::from_ref(&backlog))];
    series_conformance(&alike).expect("they agree");
    let other = SeriesFacts { unit: SeriesUnit::Bytes, ..backlog.clone() };
    let dotted = SeriesFacts { name: "back.log".to_owned(), ..backlog.clone() };
    let liar = [node("a", &[backlog.clone(), backlog]), node("b", &[other, dotted])];
    let said = series_conformance(&liar).expect_err("three rules are broken").to_string();
    for words in [
        "two metrics are kept as `backlog`",
        "b: the series `backlog` is declared twice",
        "`back.log`",
    ] {
        assert!(said.contains(words), "{said}");
    }
}
