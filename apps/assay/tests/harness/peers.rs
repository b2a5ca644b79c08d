//! Servers of others in Python, with the packages that `cargo xtask test` installs.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{Place, Server, say};

/// A script of a folder of these tests, with a Python that has what it imports; `None`, said by name, if there is none.
pub fn python(test: &str, script: &str) -> Option<Command> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script);
    let Some(python) = std::env::var_os("ASSAY_TEST_PYTHON").map(PathBuf::from) else {
        say(&format!(
            "SKIPPED {test}: ASSAY_TEST_PYTHON names no Python (cargo xtask test makes one)"
        ));
        return None;
    };
    let tried = Command::new(&python).arg(&script).arg("--imports").output();
    match tried {
        Ok(output) if output.status.success() => {
            let mut command = Command::new(python);
            command.arg(script);
            Some(command)
        }
        Ok(output) => {
            let words = String::from_utf8_lossy(&output.stderr);
            say(&format!("SKIPPED {test}: {}", words.lines().last().unwrap_or("no reason")));
            None
        }
        Err(error) => {
            say(&format!("SKIPPED {test}: {error}"));
            None
        }
    }
}

/// Starts it with these words, in which `HOST:PORT` is one and `HOST PORT` two words of its address.
pub fn start(mut command: Command, is_one_word: bool, more: &[&Path]) -> Server {
    let address = Server::free_address();
    if is_one_word {
        command.arg(address.to_string());
    } else {
        command.arg(address.ip().to_string()).arg(address.port().to_string());
    }
    Server::start(command.args(more), address)
}

/// Runs every `$ assay run` of a page, with `port` of the page replaced by the server's address, and the files that it lays out
/// (blocks with `file=`) in a place. Gives how many there were.
pub fn follow(place: &Place, page: &str, port: &str, address: &str) -> usize {
    let (mut file, mut text, mut count) = (None::<String>, String::new(), 0);
    for line in page.lines().map(|line| line.replace(port, address)) {
        if let Some(info) = line.strip_prefix("```") {
            if let Some(name) = file.take() {
                place.write(&name, std::mem::take(&mut text));
            }
            file = info
                .split_whitespace()
                .find_map(|word| word.strip_prefix("file="))
                .map(str::to_owned);
        } else if file.is_some() {
            text.push_str(&line);
            text.push('\n');
        } else if let Some(command) = line.strip_prefix("$ ") {
            let command =
                command.replace("assay run", &format!("{} run", super::ASSAY)).replace("30s", "1s");
            let output = Command::new("sh")
                .args(["-c", &format!("{command} --no-calibration --progress none")])
                .current_dir(place.path())
                .output();
            let output = output.expect("a shell starts");
            let words = String::from_utf8_lossy(&output.stderr);
            assert!(
                matches!(output.status.code(), Some(0 | 97)),
                "{command}: {words}{}",
                String::from_utf8_lossy(&output.stdout)
            );
            count += 1;
        }
    }
    count
}

/// The result document of a hostile server's experiment over one connection, through a driver: five requests that wait for a
/// moment, or, where an answer is earned, one that waits for it as long as a busy machine may take.
pub fn loaded_by(
    driver: &str,
    place: &Place,
    experiment: &str,
    is_earned: bool,
) -> Result<Value, String> {
    let (rate, patience) = if is_earned { ("1/s", "\"10s\"") } else { ("5/s", "\"400ms\"") };
    let text = experiment
        .replace("\"10s\"", patience)
        .replace("connections = 2", "connections = 1")
        .replace("50/s", rate);
    place.write("experiment.toml", text);
    let quietly = ["run", "experiment.toml", "--json", "--progress", "none", "--no-calibration"];
    let output = place
        .command(&quietly)
        .env("ASSAY_DRIVER", driver)
        .output()
        .map_err(|error| error.to_string())?;
    serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("no document: {}", String::from_utf8_lossy(&output.stderr)))
}
