//! `assay serve kv --replicas N`: a whole group on this machine, a process for each replica, with a development authority.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use kv_node::Words;

use crate::{certificates, votes};

/// Where the group keeps its data unless told otherwise.
const DATA: &str = "kv-data";

/// Options of one replica, which several cannot have in common.
const OF_ONE: [&str; 8] = [
    "--replica",
    "--peers",
    "--peer",
    "--listen",
    "--metrics",
    "--ledger",
    "--tls",
    "--parent-pipe",
];

/// How long the others are without a leader before they want to lead: twice as long as a replica that is not told.
const LATER_MS: u32 = 2000;

/// The most replicas.
const REPLICAS_MAX: u8 = 15;

const USAGE: &str = "\
Several at once:

  --replicas COUNT    starts so many replicas on this machine, with certificates of an authority made for them, says where
                      they are, and ends when its standard input ends or a replica does; other options hold for each
  --data FOLDER       where all of them keep what they keep (kv-data); certificates in FOLDER/tls, which clients need, too
";

/// Runs a replica, or several, until told to end.
pub(crate) fn serve(words: &[String]) -> ExitCode {
    let has = |name: &str| words.iter().any(|word| word.split('=').next() == Some(name));
    if has("--votes") {
        return votes::ask(words);
    }
    if !has("--replicas") {
        let ended = kv_node::serve(words);
        if has("--help") {
            print!("\n{USAGE}\n{}", votes::USAGE);
        }
        return ended;
    }
    match Several::read(words).and_then(|several| several.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("assay serve kv: {why}");
            ExitCode::FAILURE
        }
    }
}

/// What is asked for.
#[derive(Debug)]
struct Several {
    count: u8,
    data: String,
    /// What holds for each.
    common: Vec<String>,
}

impl Several {
    fn read(words: &[String]) -> Result<Self, String> {
        let mut several = Self { count: 0, data: DATA.to_owned(), common: Vec::new() };
        let mut words = Words::new(words);
        while let Some(name) = words.next_word() {
            match name.as_str() {
                "--replicas" => {
                    let text = words.text()?;
                    let count = text.parse().ok().filter(|n| (1..=REPLICAS_MAX).contains(n));
                    several.count = count
                        .ok_or(format!("--replicas takes 1 to {REPLICAS_MAX}, not `{text}`"))?;
                }
                "--data" => several.data = words.text()?,
                name if OF_ONE.contains(&name) => {
                    return Err(format!("{name} is for one replica, not for --replicas"));
                }
                _ => several.common.push(words.word()),
            }
        }
        Ok(several)
    }

    fn run(&self) -> Result<(), String> {
        let data = Path::new(&self.data);
        let tls = data.join("tls");
        if !tls.join(certificates::CLIENT).exists() {
            certificates::make(&tls, self.count)?;
        }
        let ports =
            free_ports(self.count).map_err(|error| format!("finding free ports: {error}"))?;
        let mut children = Vec::new();
        for own in 0..ports.len() {
            let mut words = vec![
                format!("--replica={own}"),
                format!("--data={}", data.join(format!("replica{own}")).display()),
                format!("--tls={}", tls.display()),
                format!("--peers=127.0.0.1:{}", ports[own]),
            ];
            let others = ports.iter().enumerate().filter(|(other, _)| *other != own);
            words.extend(others.map(|(other, port)| format!("--peer={other}=127.0.0.1:{port}")));
            // The first waits least for a leader, so it leads when the group begins; what is said for all holds.
            words.extend((own > 0).then(|| format!("--election-timeout-ms={LATER_MS}")));
            words.extend(self.common.iter().cloned());
            children.push(start(&words)?);
        }
        let ended = wait(&mut children);
        // Their standard inputs end with these, and with them they.
        drop(children);
        ended
    }
}

/// Says where the replicas are, and waits for one of them to end, or for nobody to be left who wants them.
fn wait(children: &mut [Child]) -> Result<(), String> {
    let mut outputs = Vec::new();
    for (replica, child) in children.iter_mut().enumerate() {
        let mut output = BufReader::new(child.stdout.take().ok_or("it has no standard output")?);
        let mut line = String::new();
        output.read_line(&mut line).map_err(|error| error.to_string())?;
        let line = line.trim().strip_prefix("ready ");
        let line = line.ok_or(format!("replica {replica} did not start; it said why above"))?;
        println!("replica{replica} {line}");
        outputs.push(output);
    }
    std::io::stdout().flush().map_err(|error| error.to_string())?;
    // A replica's standard output ends with it.
    let (ended, end) = std::sync::mpsc::channel();
    for mut output in outputs {
        let ended = ended.clone();
        std::thread::spawn(move || {
            let _ = output.read_to_end(&mut Vec::new());
            let _ = ended.send(());
        });
    }
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = ended.send(());
    });
    end.recv().map_err(|error| error.to_string())
}

fn start(words: &[String]) -> Result<Child, String> {
    let own = std::env::current_exe().map_err(|error| format!("finding this program: {error}"))?;
    Command::new(own)
        .args(["serve", "kv", "--parent-pipe"])
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("starting a replica: {error}"))
}

/// Ports that nobody listens on now.
fn free_ports(count: u8) -> std::io::Result<Vec<u16>> {
    let bind = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let held: Vec<TcpListener> = (0..count).map(bind).collect::<Result<_, _>>()?;
    held.iter().map(|listener| listener.local_addr().map(|address| address.port())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Result<Several, String> {
        Several::read(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    /// Claim: what holds for each replica is handed on, and what is one replica's alone is refused by its name.
    #[test]
    fn words_are_read() {
        let several = said("--replicas 3 --data=x --window=2 --wait-for-all").unwrap();
        assert_eq!((several.count, several.data.as_str()), (3, "x"));
        assert_eq!(several.common, ["--window=2", "--wait-for-all"]);
        for (line, words) in [
            ("--replicas=16", "1 to 15"),
            ("--replicas", "needs a value"),
            ("--replicas 3 --peer 1=1:1", "--peer is for one replica"),
        ] {
            let why = said(line).unwrap_err();
            assert!(why.contains(words), "{line}: {why}");
        }
    }
}
