//! The published load tool's payload: made as it makes it, and recognised again.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clock::WallTime;
use model::options::{Options, Problems, Span, Value};
use model::plan::{Arrivals, LoadPlan, Schedule};
use model::quantity::Rate;
use model::{Seed, TxId};
use std::path::Path;
use std::time::Duration;
use sut::{Marks, Request, Role, System as _, Transaction};

use super::{RUN_MARK, system, table, text};
use crate::hexadecimal;
use crate::ledger::{Place, entry};
use crate::loadtime::{Head, Loadtime, Stamp};
use crate::settle::Use;
use crate::system::CometBft;
use crate::transaction::Claim;

const ID: [u8; 16] = *b"\x10\x32\x54\x76\x98\xba\x4c\xfe\x81\x23\x45\x67\x89\xab\xcd\xef";

/// Connections, rate, size, seconds, nanoseconds; then what `payload.NewBytes` of CometBFT 0.38.19 made of them
/// and of [`ID`]: everything before the padding's content, the padding's bytes, the transaction's.
type Made = (u64, u64, usize, i64, i64, &'static str, usize, usize);
const MADE_BY_THE_TOOL: [Made; 6] = [
    (
        1,
        200,
        1024,
        1_795_000_000,
        123_456_789,
        "a=080110c801188008220b08c08df6d70610959aef3a2a101032547698ba4cfe8123456789abcdef32d503",
        469,
        1024,
    ),
    (
        2,
        800,
        1024,
        1_795_000_000,
        987_654_321,
        "a=080210a006188008220c08c08df6d70610b1d1f9d6032a101032547698ba4cfe8123456789abcdef32d403",
        468,
        1024,
    ),
    (
        4,
        0,
        250,
        1_795_000_000,
        5,
        "a=080418fa01220808c08df6d70610052a101032547698ba4cfe8123456789abcdef3258",
        88,
        248,
    ),
    (
        300,
        100_000,
        10_001,
        1_795_000_000,
        0,
        "a=08ac0210a08d0618914e220608c08df6d7062a101032547698ba4cfe8123456789abcdef32e026",
        4960,
        10_000,
    ),
    (1, 25, 200, 0, 0, "a=0801101918c80122002a101032547698ba4cfe8123456789abcdef3245", 69, 198),
    (
        1,
        1,
        20_000,
        1_795_000_000,
        300_000,
        "a=0801100118a09c01220a08c08df6d70610e0a7122a101032547698ba4cfe8123456789abcdef32e64d",
        9958,
        20_000,
    ),
];

/// A transaction of `form`, as it stands in a block.
fn written(form: &Loadtime, tx: TxId, due: WallTime) -> Vec<u8> {
    let mut padding = Vec::new();
    form.workload(Seed(5), 0).next(tx, None, &mut padding);
    let (mut message, mut base64) = (Vec::new(), Vec::new());
    let given = WallTime::from_unix_ns(due.unix_ns() + 1_000);
    let transaction = Transaction { due, given, ..Transaction::new(tx, 0, &padding) };
    let bytes = form.write(&transaction, &mut message, &mut base64);
    let decoded = STANDARD.decode(base64).unwrap();
    assert_eq!(decoded.len(), bytes);
    decoded
}

/// Claim: for the same numbers and time, every byte before the padding's content and every length is the
/// published tool's; and what the tool made is read back as what it was made of.
#[test]
fn payloads_are_the_tools_byte_for_byte() {
    for (connections, rate, size_bytes, seconds, ns, head, padding, bytes) in MADE_BY_THE_TOOL {
        let form = Loadtime {
            connections,
            rate,
            size_bytes,
            id: ID,
            ..Loadtime::new(None, size_bytes, RUN_MARK, Stamp::Due)
        };
        let time = WallTime::from_unix_ns(seconds * 1_000_000_000 + ns);
        let ours = written(&form, 7, time);
        assert_eq!(std::str::from_utf8(&ours[..head.len()]), Ok(head));
        assert_eq!((ours.len(), ours.len() - head.len()), (bytes, 2 * padding));
        let theirs = format!("{head}{}", "5a".repeat(padding));
        let read = Head::read(theirs.as_bytes()).unwrap();
        assert_eq!(
            (read.connections, read.rate, read.size),
            (connections, rate, size_bytes as u64)
        );
        assert_eq!((read.time, read.id), (time, ID));
        assert!(!read.holds(theirs.as_bytes()), "no mark of ours");
    }
}

/// Claim: the beginning of a transaction that the published tool itself (0.38.19, one connection, 200 a second)
/// submitted to a network is read as what it was asked for and when; it carries no mark of any run of ours.
#[test]
fn a_transaction_of_the_tools_own() {
    let submitted = "a=080110c801188008220b08f1eb87d80610aed0c3102a10d93f3e748ad54dbb\
        86094e59ef53edbe32d503368538da1f55921fe1daf3b5926564ec30e8e5f3b902d7c155a79d\
        c708e67fdba3cc0f9bda9c8270716c6d18411a692d940225f2a09ba0b22a";
    let read = Head::read(submitted.as_bytes()).unwrap();
    assert_eq!((read.connections, read.rate, read.size), (1, 200, 1024));
    assert_eq!(read.time, WallTime::from_unix_ns(1_795_290_609_034_662_446));
    assert_eq!(read.id[6] >> 4, 4, "a random UUID");
    assert!(!read.holds(submitted.as_bytes()));
}

/// Claim: a transaction of any size from the least on is recognised in blocks, with its time to the nanosecond,
/// by its beginning alone and whole.
#[test]
fn they_are_recognised() {
    let least = Loadtime::new(None, 1024, RUN_MARK, Stamp::Due).bytes_min();
    for size in [least, least + 1, 250, 500, 1024, 4096, 740_000] {
        for ns in [0, 1, 999_999_999, 1_795_000_000_123_456_789, i64::MAX, -1, i64::MIN] {
            for tx in [0, 1, 1 << 40, u64::MAX] {
                let form = Loadtime::new(None, size, RUN_MARK, Stamp::Due);
                let bytes = written(&form, tx, WallTime::from_unix_ns(ns.min(i64::MAX - 1_000)));
                assert!(bytes.len().abs_diff(size) <= 3, "{} for {size}", bytes.len());
                let claim = Claim::read_base64(&STANDARD.encode(&bytes)).unwrap();
                assert_eq!((claim.run_mark, claim.tx), (RUN_MARK, tx));
                let time = WallTime::from_unix_ns(ns.min(i64::MAX - 1_000));
                assert_eq!(claim.submitted, Some(time));
                assert_eq!(Claim::read(&bytes), Some(claim));
                assert!(claim.holds(&bytes));
                assert_eq!(bytes.iter().filter(|byte| matches!(byte, b'=' | b':')).count(), 1);
            }
        }
    }
}

/// Claim: a single byte that is altered makes the entry nobody's, and no damage is a panic.
#[test]
fn an_altered_one_is_nobodys() {
    let form = Loadtime::new(None, 250, RUN_MARK, Stamp::Due);
    let whole = written(&form, 42, WallTime::from_unix_ns(1_795_000_000_123_456_789));
    let recorded = Some(WallTime::from_unix_ns(1_795_000_001_000_000_000));
    let place = Place { height: 9, recorded, run_mark: RUN_MARK, usage: Use::Own };
    let read = |bytes: &[u8]| entry(&STANDARD.encode(bytes), 0, place).unwrap().unwrap();
    let found = read(&whole);
    assert!(found.ours && found.tx == 42 && found.block == 9 && found.recorded == recorded);
    assert_eq!(found.submitted.map(WallTime::unix_ns), Some(1_795_000_000_123_456_789));
    for at in 0..whole.len() {
        for flip in [1, 0x20, 0x80] {
            let mut altered = whole.clone();
            altered[at] ^= flip;
            assert!(!read(&altered).ours, "byte {at} ^ {flip:#x}");
            Claim::read_base64(&STANDARD.encode(&altered));
        }
        assert!(!read(&whole[..at]).ours, "cut at {at}");
    }
}

/// Claim: hexadecimal and base64 in one step are what they are in two.
#[test]
fn one_step_is_two_steps() {
    let bytes: Vec<u8> = (0..200_u8).map(|n| n.wrapping_mul(89)).collect();
    for count in 0..bytes.len() {
        let digits: String = bytes[..count].iter().map(|byte| format!("{byte:02x}")).collect();
        let mut out = b"before".to_vec();
        hexadecimal::write_base64(*b"a=", &bytes[..count], &mut out);
        let expected = format!("before{}", STANDARD.encode(format!("a={digits}")));
        assert_eq!(String::from_utf8(out), Ok(expected));
    }
}

fn load(schedule: Schedule, connections: u32) -> LoadPlan {
    LoadPlan::plain(Arrivals::Open { schedule }, connections, Duration::from_secs(10))
}

fn under(load: Option<&LoadPlan>, workload: &[(&str, Value)]) -> Result<CometBft, Vec<String>> {
    let (deploy, workload) =
        (Options { value: table(&[]).value, span: Span::default() }, table(workload));
    let folder = Path::new("/experiments");
    let request =
        Request { deploy: &deploy, workload: &workload, folder, run_mark: RUN_MARK, load };
    let mut problems = Problems::default();
    let system = crate::options::read(&request, &mut problems);
    system.ok_or_else(|| problems.list.into_iter().map(|problem| problem.message).collect())
}

/// Claim: payloads say the plan's connections and its rate on each of them a second, to the nearest whole number.
#[test]
fn the_plan_stands_in_the_payload() {
    let burst = Schedule::Burst { rate: Rate::per_second(1600), every: Duration::from_secs(1) };
    let ramp = Schedule::Ramp { from: Rate::per_second(10), to: Rate::per_second(21) };
    let trace = Schedule::Trace { due_ns: vec![0; 70] };
    for (schedule, connections, rate) in [(burst, 2, 800), (ramp, 1, 16), (trace, 3, 2)] {
        let plan = load(schedule, connections);
        let system = under(Some(&plan), &[("kind", text("loadtime"))]).unwrap();
        let form = system.loadtime.unwrap();
        assert_eq!((form.connections, form.rate), (u64::from(connections), rate));
    }
}

/// Claim: a session sends what the workload and the time make, the time being the one that the experiment chose,
/// and only that choice is a fidelity switch.
#[test]
fn sessions_write_the_time() {
    for (stamp, expected, switches) in [(None, 1_000, 0), (Some("given"), 2_000, 1)] {
        let mut options = vec![("kind", text("loadtime")), ("size", text("500B"))];
        options.extend(stamp.map(|word| ("stamp", text(word))));
        let system = under(None, &options).unwrap();
        assert_eq!(system.fidelity().len(), switches);
        let mut session = system.session(Role::Submit, 0, "127.0.0.1:26657".parse().unwrap());
        let mut payload = Vec::new();
        system.workload(Seed(1), 0, 1).next(3, None, &mut payload);
        let (due, given) = (WallTime::from_unix_ns(1_000), WallTime::from_unix_ns(2_000));
        let transaction = Transaction { due, given, ..Transaction::new(3, 0, &payload) };
        let mut out = Vec::new();
        assert_eq!(session.submit(&transaction, &mut out), 500);
        let mut reader = wire::websocket::MessageReader::new(
            wire::websocket::Sender::Client,
            wire::websocket::Limits::CLIENT,
        );
        let progress = reader.read(&out).unwrap();
        let Some(wire::websocket::Event::Text(request)) = progress.event else { panic!() };
        let request: serde_json::Value = serde_json::from_str(request).unwrap();
        let claim = Claim::read_base64(request["params"]["tx"].as_str().unwrap()).unwrap();
        assert_eq!((claim.tx, claim.submitted), (3, Some(WallTime::from_unix_ns(expected))));
        session.receive(b"", &mut Vec::new(), &mut Marks::default()).unwrap_err();
    }
}

/// Claim: a payload too short for its mark is refused with the least that it takes, and a stamp where there is
/// none to choose is too.
#[test]
fn mistakes_are_named() {
    let least = Loadtime::new(None, 1024, RUN_MARK, Stamp::Due).bytes_min();
    for (workload, words) in [
        (
            vec![("kind", text("loadtime")), ("size", text("100B"))],
            format!("`workload.size` must lie between {least}B"),
        ),
        (vec![("stamp", text("due"))], "only those of `kind = \"loadtime\"`".to_owned()),
        (vec![("kind", text("loadtime")), ("stamp", text("sent"))], "stamp".to_owned()),
    ] {
        let problems = system(&[], &workload).map(|_| ()).unwrap_err();
        assert!(problems.iter().any(|problem| problem.contains(&words)), "{words}: {problems:?}");
    }
    assert!(system(&[], &[("kind", text("loadtime")), ("size", text("200B"))]).is_ok());
}
