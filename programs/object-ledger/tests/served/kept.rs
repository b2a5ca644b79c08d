//! A client that keeps and exports, a witness that cosigns, and a stranger who verifies a proof with a few lines of Python.

use std::fs;
use std::process::Command;

use crate::STORAGE;
use crate::programs::{Ledger, transactions};

/// A stranger's verifier: the standard library of Python alone, so hashes and no signatures.
const STRANGER: &str = r#"
import sys, json, base64, hashlib
d = json.load(open(sys.argv[1])); b = {k: base64.b64decode(d[k]) for k in ("transaction", "proof", "proposal", "attestation")}
h = lambda *p: hashlib.sha256(b"".join(p)).digest()
batch, count, root = b["proposal"][4:20], int.from_bytes(b["proposal"][20:24], "big"), b["proposal"][24:56]
index, way = int.from_bytes(b["proof"][4:8], "big"), [b["proof"][i:i+32] for i in range(9, len(b["proof"]), 32)]
top, at, size = h(b"\0", batch, b["transaction"]), index, count
while size > 1:
    if at & 1: top = h(b"\1", way.pop(0), top)
    elif at + 1 < size: top = h(b"\1", top, way.pop(0))
    at, size = at >> 1, (size + 1) // 2
assert not way and h(b"\2", batch, count.to_bytes(4, "big"), top) == root, "not in the block"
assert h(b"\x10", b["proposal"][:88]) == b["proposal"][92:124], "another block's token"
assert h(b"\x11", b["proposal"][88:]) == b["attestation"][12:44], "another token's number"
head, note = d["log_proof"].split("\n\n", 1); head = head.split("\n"); at = int(head[1][6:])
way, (origin, size, want) = [base64.b64decode(x) for x in head[2:]], note.split("\n")[:3]
top, last = h(b"\0", b["attestation"], d["height"].to_bytes(8, "big")), int(size) - 1
for w in way:
    if at & 1 or at == last:
        top = h(b"\1", w, top)
        while not at & 1 and at: at >>= 1; last >>= 1
    else: top = h(b"\1", top, w)
    at >>= 1; last >>= 1
assert last == 0 and top == base64.b64decode(want), "not under the checkpoint"
print("in the tree of", origin, "at height", d["height"], b["transaction"].decode())
"#;

/// Claim: a proof is exported, verified by a command without the ledger and by a stranger's few lines; the witness has cosigned
/// its checkpoint; a changed transaction or place, another key and a witness that did not cosign are refused.
#[test]
fn exported_proofs() {
    let mut ledger = Ledger::start(STORAGE);
    let (data, sequencer) = (ledger.path("witness"), ledger.at("sequencer", "key"));
    let words =
        ["serve", "witness", "--data", &data, "--name", "served", "--sequencer", &sequencer];
    ledger.also("witness", &words);
    for round in 0..3 {
        let all = transactions(&format!("p{round}"), 5);
        ledger.submit(&all);
        ledger.wait_for(&all);
    }
    ledger.wait_for_metric("queue", "ledger_done_total 15");
    let address = ledger.at("witness", "requests");
    let note = ledger.said(&["checkpoint", "--witness", &address]);
    assert!(
        note.starts_with("object-ledger/served\n") && note.contains("\u{2014} witness "),
        "{note}"
    );
    let proof = ledger.said(&["prove", "p1-3", "--witness", &address]);
    let file = ledger.path("proof.json");
    fs::write(&file, &proof).unwrap();
    let timestamp = ledger.at("timestamp", "key");
    let witness = format!("witness={}", ledger.at("witness", "key"));
    let verify = |file: &str, timestamp: &str, witness: &str| {
        let words = ["proof", file, "--timestamp", timestamp, "--sequencer", &sequencer];
        ledger.runs(&[&words[..], &["--witness", witness]].concat())
    };
    let (code, said) = verify(&file, &timestamp, &witness);
    assert!(code == 0 && said.starts_with("verified number="), "{said}");
    let (code, said) = verify(&file, &sequencer, &witness);
    assert!(code != 0 && said.contains("not signed by the timestamp service"), "{said}");
    let (code, said) = verify(&file, &timestamp, &format!("witness={sequencer}"));
    assert!(code != 0 && said.contains("has not cosigned"), "{said}");
    let stranger = || {
        let ran = Command::new("python3").args(["-c", STRANGER, &file]).output().expect("Python");
        (ran.status.success(), String::from_utf8_lossy(&ran.stdout).into_owned())
    };
    let (holds, said) = stranger();
    assert!(holds && said.contains("p1-3"), "{said}");
    let changed = proof.replace("\"transaction\": \"cDEtM", "\"transaction\": \"cDEtN");
    assert_ne!(changed, proof);
    fs::write(&file, changed).unwrap();
    let (code, said) = verify(&file, &timestamp, &witness);
    assert!(code != 0 && said.contains("does not lead from the transaction"), "{said}");
    assert!(!stranger().0);
    // No number follows the last one that can be written.
    let (head, rest) = proof.split_once("\\nindex ").unwrap();
    let (_, rest) = rest.split_once("\\n").unwrap();
    fs::write(&file, format!("{head}\\nindex {}\\n{rest}", u64::MAX)).unwrap();
    let (code, said) = verify(&file, &timestamp, &witness);
    assert!(
        code != 0 && said.contains("refused: the number is not under the checkpoint"),
        "{said}"
    );
}

/// Claim: what was verified once is kept, verified again from the folder, and not read again: with all buckets away a kept
/// number still has its height; bytes that were changed there are not believed.
#[test]
fn kept() {
    let mut ledger = Ledger::start(STORAGE);
    // Not text, and with a line's end in it.
    let binary = ledger.path("binary");
    fs::write(&binary, [0xFF, b'\n', 0]).unwrap();
    ledger.said(&["submit", "--file", &binary]);
    let all = transactions("k", 4);
    ledger.submit(&all);
    ledger.wait_for_metric("queue", "ledger_done_total 5");
    let keep = ledger.path("kept");
    let read =
        |words: &[&str]| ledger.said(&[words, &["--keep", &keep, "--within", "60s"]].concat());
    assert!(read(&["verify", "--file", &binary]).starts_with("verified"));
    assert!(ledger.said(&["ledger"]).contains("\"transaction_base64\":\"/woA\""));
    let requests = |ledger: &Ledger| {
        let text = ledger.metrics("bucket3");
        let line = text.lines().find(|it| it.starts_with("ledger_gets_total ")).unwrap();
        line.split(' ').nth(1).unwrap().parse::<u64>().unwrap()
    };
    for name in ["pipeline0", "pipeline1", "watcher"] {
        ledger.kill(name);
    }
    let verify = |ledger: &Ledger, keep: &str| {
        let before = requests(ledger);
        assert!(ledger.said(&["verify", "k-1", "--keep", keep]).starts_with("verified"));
        requests(ledger) - before
    };
    verify(&ledger, &keep);
    // The end of the numbers and the one batch are read, and nothing else.
    let again = verify(&ledger, &keep);
    assert!(again <= 3, "{again}");
    for entry in fs::read_dir(&keep).unwrap().flatten() {
        let mut bytes = fs::read(entry.path()).unwrap();
        bytes.iter_mut().for_each(|byte| *byte ^= 1);
        fs::write(entry.path(), bytes).unwrap();
    }
    assert!(verify(&ledger, &keep) > again);
}
