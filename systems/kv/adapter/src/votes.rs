//! `assay serve kv --votes ADDRESS…`: an operator asks who has a vote in a group, gives one or takes one. It ends when that is
//! so, and starts nothing.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use kv_node::protocol::{KEY_BYTES, NOBODY, Why};
use kv_node::{Words, operator_key};
use sut::Tls;
use sut::asker::Clock;

use crate::certificates;
use crate::control::{Control, Votes};

/// How often the leader is asked, and how often at most: a replica that has a gigabyte to catch up with takes a while.
const ASK_EVERY: Duration = Duration::from_millis(200);
const ASKED_MAX: u32 = 600;

pub(crate) const USAGE: &str = "\
Votes of a group:

  --votes ADDRESS     where clients connect to a replica; once for each that may lead. Says who has a vote
  --give NUMBER       gives the replica of this number a vote, once it has caught up; it and all others were started with
                      --peer for each other
  --take NUMBER       takes its vote; it can be ended afterwards
  --operator-key FILE what the replicas were told with --operator-key
  --tls FOLDER        ca.pem, client.pem and client.key
";

/// An operator's command line.
#[derive(Debug, Default)]
struct Asked {
    replicas: Vec<SocketAddr>,
    change: Option<(u8, bool)>,
    key: Option<PathBuf>,
    tls: Option<PathBuf>,
}

pub(crate) fn ask(words: &[String]) -> ExitCode {
    match Asked::read(words).and_then(|asked| asked.run()) {
        Ok(voters) => {
            let voters: Vec<String> = voters.iter().map(u8::to_string).collect();
            println!("votes: {}", voters.join(" "));
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("assay serve kv: {why}");
            ExitCode::FAILURE
        }
    }
}

impl Asked {
    fn read(words: &[String]) -> Result<Self, String> {
        let mut asked = Self::default();
        let mut words = Words::new(words);
        while let Some(name) = words.next_word() {
            match name.as_str() {
                "--votes" => asked.replicas.push(words.address()?),
                "--give" | "--take" if asked.change.is_some() => {
                    return Err("votes change one at a time: write one --give or --take".to_owned());
                }
                "--give" => asked.change = Some((words.number()?, true)),
                "--take" => asked.change = Some((words.number()?, false)),
                "--operator-key" => asked.key = Some(words.text()?.into()),
                "--tls" => asked.tls = Some(words.text()?.into()),
                name => {
                    return Err(format!("there is no option `{name}` beside --votes; see --help"));
                }
            }
        }
        Ok(asked)
    }

    fn run(&self) -> Result<Vec<u8>, String> {
        let key = self.key.as_deref().ok_or("an operator shows a key: --operator-key FILE")?;
        let key = operator_key(key)?;
        let tls = self.tls.as_deref().map(certificates::client).transpose()?;
        let mut last = String::new();
        for _ in 0..ASKED_MAX {
            match self.once(&key, tls.as_ref())? {
                Ok(voters) if self.is_so(&voters) => return Ok(voters),
                Ok(voters) => last = format!("{voters:?} have a vote"),
                Err(why) => last = why,
            }
            std::thread::sleep(ASK_EVERY);
        }
        let seconds = (ASK_EVERY * ASKED_MAX).as_secs();
        Err(format!("it is not so after {seconds} s: {last}"))
    }

    fn is_so(&self, voters: &[u8]) -> bool {
        self.change.is_none_or(|(number, has_vote)| voters.contains(&number) == has_vote)
    }

    /// Asks whoever leads. Outside: an error that waiting does not clear; inside: one that may be gone soon.
    fn once(
        &self,
        key: &[u8; KEY_BYTES],
        tls: Option<&Tls>,
    ) -> Result<Result<Vec<u8>, String>, String> {
        // A process of its own, beside any trial and its clock.
        let clock = Clock::with_origin(0);
        let mut last = "no replica was named: --votes ADDRESS".to_owned();
        for address in &self.replicas {
            let said = Control::open(*address, tls, clock);
            let said = said.and_then(|mut it| it.votes(self.change, key));
            match said {
                Ok(Votes::Of(voters)) => return Ok(Ok(voters)),
                Ok(Votes::Refused { why: Why::NotLeader, leader: NOBODY }) => {
                    last = format!("{address} is not the leader, and knows of none");
                }
                Ok(Votes::Refused { why: Why::NotLeader, leader }) => {
                    last = format!("{address} does not lead, replica {leader} does");
                }
                Ok(Votes::Refused { why: Why::NotOperator, .. }) => {
                    return Err(format!(
                        "{address} was started with another --operator-key, or with none"
                    ));
                }
                Ok(Votes::Refused { why: Why::UnknownReplica, .. }) => {
                    return Err(format!(
                        "{address} knows no replica of this number; start it with --peer NUMBER=ADDRESS"
                    ));
                }
                Ok(Votes::Refused { why: Why::LastVote, .. }) => {
                    return Err("it is the only one that has a vote".to_owned());
                }
                Ok(Votes::Refused { why: Why::WouldStop, .. }) => {
                    return Err(
                        "of those that would be left no majority is there, so nothing could be decided any more; start those that are \
                         gone, or take the vote of one of them"
                            .to_owned(),
                    );
                }
                Ok(Votes::Refused { why, .. }) => last = format!("{address} refuses: {why:?}"),
                Err(error) => last = format!("{address}: {error}"),
            }
        }
        if self.replicas.is_empty() { Err(last) } else { Ok(Err(last)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: words that say no change, or two, or no number are refused with what was expected.
    #[test]
    fn words_are_read() {
        let said =
            |line: &str| Asked::read(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let asked =
            said("--votes 127.0.0.1:1 --votes=127.0.0.1:2 --give 3 --operator-key k").unwrap();
        assert_eq!((asked.replicas.len(), asked.change), (2, Some((3, true))));
        assert!(asked.is_so(&[0, 3]) && !asked.is_so(&[0, 1]));
        for (line, words) in [
            ("--votes here", "expected an address"),
            ("--votes 127.0.0.1:1 --take x", "--take: expected a whole number"),
            ("--votes 127.0.0.1:1 --take 1 --give 2", "one at a time"),
            ("--votes 127.0.0.1:1 --data x", "no option `--data`"),
        ] {
            let why = said(line).unwrap_err();
            assert!(why.contains(words), "{line}: {why}");
        }
        let why = said("--votes 127.0.0.1:1").unwrap().run().unwrap_err();
        assert!(why.contains("--operator-key"), "{why}");
    }
}
