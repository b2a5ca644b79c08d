//! The checker against Porcupine (A. Athalye, github.com/anishathalye/porcupine, MIT), which searches for an order as J. Wing
//! and C. Gong and G. Lowe do: histories too long for a search of all orders. Where Go or the module cannot be had the
//! test is left out, and says so.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use isolation::Effect;
use model::Seed;

use crate::histories::{Did, Tx, check, draw, of_some_store};

/// A history as the program reads it. What was refused never happened; what nobody knows of never returned.
fn json(history: &[Tx]) -> String {
    let happened = history.iter().filter(|tx| tx.effect != Effect::None);
    let transactions = happened.map(|tx| {
        let is_known = tx.effect == Effect::Certain;
        let ops = tx.ops.iter().map(|did| match did {
            Did::Append(key, element) => format!(r#"{{"Key":{key},"Append":{element}}}"#),
            Did::Read(key, list) => format!(r#"{{"Key":{key},"Read":{list:?}}}"#),
        });
        format!(
            r#"{{"Call":{},"Return":{},"Known":{is_known},"Ops":[{}]}}"#,
            tx.invoked,
            if is_known { tx.completed } else { i64::MAX },
            ops.collect::<Vec<_>>().join(",")
        )
    });
    format!("[{}]", transactions.collect::<Vec<_>>().join(","))
}

/// What Porcupine says of each; an error says why it cannot be asked.
fn porcupine(histories: &[Vec<Tx>]) -> Result<Vec<bool>, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/list_append/porcupine");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("porcupine");
    let build =
        Command::new("go").arg("build").arg("-o").arg(&program).current_dir(source).output();
    let build = build.map_err(|error| format!("go: {error}"))?;
    if !build.status.success() {
        return Err(String::from_utf8_lossy(&build.stderr).into_owned());
    }
    let lines: Vec<String> = histories.iter().map(|history| json(history) + "\n").collect();
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("what was built starts");
    let mut input = child.stdin.take().expect("it is piped");
    let writer = std::thread::spawn(move || input.write_all(lines.concat().as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("it reads everything");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let said = String::from_utf8(output.stdout).expect("words");
    Ok(said.lines().map(|line| line == "true").collect())
}

/// Claim: of two thousand random histories of ten to seventeen transactions, half of them of one operation on one list, checker
/// and Porcupine say the same.
#[test]
fn as_porcupine_says() {
    let histories: Vec<Vec<Tx>> = (0..2_000)
        .map(|seed| {
            let mut rng = Seed(seed).split("porcupine").rng();
            let count = 10 + draw(&mut rng, 8);
            match seed % 2 {
                0 => of_some_store(&mut rng, count, 3, 3, 250),
                _ => of_some_store(&mut rng, count, 1, 1, 250),
            }
        })
        .collect();
    let said = match porcupine(&histories) {
        Ok(said) => said,
        Err(why) => {
            println!("SKIPPED porcupine::as_porcupine_says: {why}");
            return;
        }
    };
    assert_eq!(said.len(), histories.len());
    let mut seen = [[0; 2]; 2];
    for (seed, (history, expected)) in histories.iter().zip(said).enumerate() {
        let verdict = check(history, &mut Seed(seed as u64).rng());
        assert_eq!(
            verdict.is_strict_serializable(),
            expected,
            "history {seed}: {verdict:#?}\nof {history:#?}"
        );
        seen[seed % 2][usize::from(expected)] += 1;
    }
    assert!(seen.iter().flatten().all(|count| *count > 100), "{seen:?}");
}
