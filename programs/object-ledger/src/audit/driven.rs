//! The audit, driven in lines of JSON over an inherited socket (docs/exec.md): what it is, where it is to read, and then
//! every transaction. It does nothing until it is asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Audit, Stopped};

/// The variable with the numbers of the sockets.
const SOCKETS: &str = "ASSAY_EXEC_FDS";
/// A line has at most so many bytes, and one of entries is closed when it has as many as the second says: another of the
/// longest transactions, however it is written, still fits.
const LINE_BYTES_MAX: u64 = 1 << 20;
const LINE_BYTES_ENOUGH: usize = 256 << 10;

#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
enum Asked {
    Describe { versions: Vec<u32> },
    Deploy { options: Options },
    Ledger,
    Stop,
}

/// What `deploy` brings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    name: String,
    timestamp: String,
    sequencer: String,
    buckets: Vec<String>,
}

/// Serves until the channel ends or says so.
pub(super) fn run() -> Result<(), String> {
    let numbers = std::env::var(SOCKETS)
        .map_err(|_| format!("{SOCKETS} has no number of a socket; see audit --help"))?;
    let control = crate::inherited::sockets(&numbers)?.into_iter().next();
    let control = control.ok_or("there is no control channel")?;
    let failed = |error: std::io::Error| format!("the control channel: {error}");
    let mut reads = BufReader::new(control.try_clone().map_err(failed)?);
    let mut says = Says { control, line: Vec::new() };
    let mut audit = None;
    let mut line = String::new();
    loop {
        line.clear();
        let count = reads.by_ref().take(LINE_BYTES_MAX).read_line(&mut line).map_err(failed)?;
        if count == 0 {
            return Ok(());
        }
        let asked = serde_json::from_str(&line).map_err(|error| format!("a question: {error}"))?;
        match asked {
            Asked::Describe { versions } => says.say(&description(&versions))?,
            Asked::Deploy { options } => {
                let Options { name, timestamp, sequencer, buckets } = options;
                match Audit::new(&name, &timestamp, &sequencer, &buckets) {
                    Ok(made) => {
                        audit = Some(made);
                        says.say(&json!({"did": "deploy"}))?;
                    }
                    Err(why) => says.say(&json!({"failed": why}))?,
                }
            }
            Asked::Ledger => match &audit {
                Some(audit) => ledger(audit, &mut says)?,
                None => says.say(&json!({"failed": "it was not said where to read"}))?,
            },
            // It ends with the channel, when whoever drives it ends: a node of a trial that ends before looks as if it had
            // failed.
            Asked::Stop => says.say(&json!({"did": "stop"}))?,
        }
    }
}

fn description(versions: &[u32]) -> Value {
    if !versions.contains(&1) {
        return json!({"failed": "this audit speaks version 1"});
    }
    json!({
        "did": "describe",
        "version": 1,
        "name": concat!("object-ledger audit ", env!("CARGO_PKG_VERSION")),
        "stages": [],
        "kinds": [],
        "ledger": true,
        "way": "from the folders of the buckets alone, each transaction verified: its proof, two signatures, the main chain",
    })
}

/// All that is on the main chain; what is refused is said instead of the end.
fn ledger(audit: &Audit, says: &mut Says) -> Result<(), String> {
    let mut entries: Vec<Value> = Vec::new();
    let mut bytes = 0;
    let read = audit.read(|it, transaction| {
        entries.push(json!({"block": it.height, "content": String::from_utf8_lossy(transaction)}));
        bytes += transaction.len() + 64;
        if bytes >= LINE_BYTES_ENOUGH {
            bytes = 0;
            says.say(&json!({"entries": std::mem::take(&mut entries)}))?;
        }
        Ok(())
    });
    match read {
        Ok(_) => {
            says.say(&json!({"entries": entries}))?;
            says.say(&json!({"did": "ledger"}))
        }
        Err(Stopped::Refused(why)) => says.say(&json!({"refused": why})),
        Err(Stopped::Unread(why)) => says.say(&json!({"failed": why})),
    }
}

/// The writing end.
struct Says {
    control: UnixStream,
    line: Vec<u8>,
}

impl Says {
    fn say(&mut self, value: &Value) -> Result<(), String> {
        self.line.clear();
        let written = writeln!(self.line, "{value}");
        written
            .and_then(|()| self.control.write_all(&self.line))
            .map_err(|error| format!("the control channel: {error}"))
    }
}
