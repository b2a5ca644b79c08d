//! The probe, driven as an instrument would.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use serde_json::{Value, json};

use crate::STORAGE;
use crate::programs::{Ledger, transactions};

struct Driven {
    child: Child,
    channels: Vec<BufReader<UnixStream>>,
}

impl Drop for Driven {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Driven {
    /// With a control channel and one load channel.
    fn start() -> Self {
        let pairs: Vec<_> = (0..2).map(|_| UnixStream::pair().expect("a pair")).collect();
        for (_, theirs) in &pairs {
            fcntl_setfd(theirs, FdFlags::empty()).expect("it is open");
        }
        let numbers: Vec<String> = pairs.iter().map(|(_, it)| it.as_raw_fd().to_string()).collect();
        let child = Command::new(env!("CARGO_BIN_EXE_object-ledger"))
            .arg("probe")
            .env("ASSAY_EXEC_FDS", numbers.join(","))
            .spawn()
            .expect("the program starts");
        let channels = pairs.into_iter().map(|(ours, _)| {
            ours.set_read_timeout(Some(Duration::from_secs(90))).expect("a time");
            BufReader::new(ours)
        });
        Self { child, channels: channels.collect() }
    }

    fn say(&mut self, channel: usize, line: &Value) {
        let text = format!("{line}\n");
        self.channels[channel].get_mut().write_all(text.as_bytes()).expect("it reads");
    }

    fn hear(&mut self, channel: usize) -> Value {
        let mut line = String::new();
        self.channels[channel].read_line(&mut line).expect("it speaks in time");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("`{line}`: {error}"))
    }
}

/// Claim: a probe says of each transaction when it was accepted, durable, on the main chain and verified, in this order and
/// once, and of what parts its time was made, which follow each other without a gap; what is refused it says, too; and it
/// ends when it is told to.
#[test]
fn probe() {
    let ledger = Ledger::start(STORAGE);
    let mut driven = Driven::start();
    driven.say(0, &json!({"do": "describe", "versions": [1]}));
    let described = driven.hear(0);
    assert_eq!(described["stages"], json!(["accepted", "durable", "on_main_chain", "verified"]));
    driven.say(0, &json!({"do": "deploy", "run": "0", "seed": 1, "folder": "/", "options": {"ledger": "/none"}}));
    assert!(driven.hear(0)["failed"].as_str().unwrap().contains("/none"));
    let options =
        json!({"ledger": ledger.file(), "push": true, "listen": "127.0.0.1:0", "omc_ms": 10});
    driven
        .say(0, &json!({"do": "deploy", "run": "0", "seed": 1, "folder": "/", "options": options}));
    assert_eq!(driven.hear(0), json!({"did": "deploy"}));
    let some = transactions("p", 3);
    let each: Vec<Value> =
        (1..).zip(&some).map(|(id, it)| json!({"id": id, "payload": it})).collect();
    driven.say(1, &json!({"do": "submit", "tx": each}));
    let mut reached = vec![Vec::new(); 3];
    while reached.iter().any(|stages: &Vec<String>| stages.len() < 4) {
        for it in driven.hear(1)["observed"].as_array().unwrap() {
            let place = usize::try_from(it["id"].as_u64().unwrap()).unwrap() - 1;
            reached[place]
                .push(it["reached"].as_str().unwrap_or_else(|| panic!("{it}")).to_owned());
            let Some(steps) = it["steps"].as_array() else { continue };
            let mut end = steps[0][1].as_i64().unwrap();
            for step in steps {
                assert_eq!(step[1].as_i64(), Some(end), "{steps:?}");
                end += step[2].as_i64().unwrap();
            }
            assert_eq!(steps.last().unwrap()[0], "checked");
        }
    }
    for stages in reached {
        assert_eq!(stages, ["accepted", "durable", "on_main_chain", "verified"]);
    }
    driven.say(1, &json!({"do": "submit", "tx": [{"id": 9, "payload": ""}]}));
    let observed = &driven.hear(1)["observed"][0];
    assert_eq!((&observed["id"], &observed["ended"]), (&json!(9), &json!("bad_request")));
    driven.say(0, &json!({"do": "stop"}));
    assert_eq!(driven.hear(0), json!({"did": "stop"}));
    assert!(driven.child.wait().unwrap().success());
}
