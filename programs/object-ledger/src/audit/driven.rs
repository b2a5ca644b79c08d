//! The audit, driven in lines of JSON over an inherited socket (docs/exec.md): what it is, where it is to read, and then
//! every transaction. It does nothing until it is asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Audit, Stopped};

/// The variable with the numbers of the sockets.
const SOCKETS: &str = "ASSAY_EXEC_FDS";
/// A line has at most so many bytes, and one of entries is closed when it has as many as the second says: another of the
/// longest transactions, however it is written, still fits.
const LINE_BYTES_MAX: u64 = 1 << 20;
const LINE_BYTES_ENOUGH: usize = 256 << 10;
/// How often pieces are looked for that are still being written, and how long between.
const LOOKS_MAX: u32 = 20;
const LOOK_EVERY: Duration = Duration::from_millis(250);

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
    #[serde(default)]
    name: String,
    #[serde(default)]
    timestamp: String,
    #[serde(default)]
    sequencer: String,
    #[serde(default)]
    buckets: Vec<String>,
    /// The ledger's file, whose stores are read instead of folders.
    #[serde(default)]
    ledger: Option<PathBuf>,
    /// Pieces that an object has to have beyond those that rebuild it.
    #[serde(default)]
    margin: usize,
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
                let Options { name, timestamp, sequencer, buckets, ledger, margin } = options;
                let made = match ledger {
                    Some(file) => Audit::of_stores(&file),
                    None => Audit::new(&name, &timestamp, &sequencer, &buckets),
                };
                match made {
                    Ok(made) => {
                        audit = Some(Audit { margin, ..made });
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

/// Waits until every object has its pieces, for a while: the last ones are written in the background.
fn settle(audit: &Audit) {
    for _ in 0..LOOKS_MAX {
        match audit.read(|_, _| Ok(()), |_, _| Ok(())) {
            Ok(sum) if sum.is_whole().is_err() => std::thread::sleep(LOOK_EVERY),
            _ => return,
        }
    }
}

/// All that is on the main chain; what is refused is said instead of the end.
fn ledger(audit: &Audit, says: &mut Says) -> Result<(), String> {
    if audit.margin > 0 {
        settle(audit);
    }
    let mut entries: Vec<Value> = Vec::new();
    let mut bytes = 0;
    let each = |it: &crate::verify::Verified, transaction: &[u8]| {
        entries.push(match std::str::from_utf8(transaction) {
            Ok(text) => json!({"block": it.height, "content": text}),
            Err(_) => {
                json!({"block": it.height, "content_base64": crate::note::base64(transaction)})
            }
        });
        bytes += transaction.len() + 64;
        if bytes >= LINE_BYTES_ENOUGH {
            bytes = 0;
            says.say(&json!({"entries": std::mem::take(&mut entries)}))?;
        }
        Ok(())
    };
    let read = audit.read(each, |_, _| Ok(()));
    match read.and_then(|sum| sum.is_whole()) {
        Ok(()) => {
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
