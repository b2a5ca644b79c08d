//! Servers that do what they must not: every behaviour of the list, played to the built binary on one of its connections
//! while the others are served, with each driver.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Place, Running, alone, beside_others, pass, say, trial};

#[path = "../../../systems/http/adapter/src/tests/hostile_list.rs"]
mod list;

use list::BEHAVIOURS;
use sut::conformance::{Behaviour, Seen, Step};

/// Runs side by side: they wait most of their time.
const SIDE_BY_SIDE: usize = 8;
/// Where each of the servers floods.
const FEW_SIDE_BY_SIDE: usize = 3;
/// A run of 0.4 s with a timeout of 0.4 s takes no longer than this on the busiest machine.
const RUN_LIMIT: Duration = Duration::from_secs(30);
/// The most memory that a run may take, bytes.
const MEMORY_MAX: f64 = 256e6;
const DRIVERS: [&str; 2] = ["epoll", "io_uring"];
const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A server; every `every`-th connection of its is hostile.
struct Hostile {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
}

impl Hostile {
    fn start(behaviour: &'static Behaviour<'static>, every: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a port");
        let address = listener.local_addr().expect("it is bound");
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        std::thread::spawn(move || {
            for (nth, stream) in listener.incoming().enumerate() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let over = Arc::clone(&over);
                let hostile = (nth % every == every - 1).then_some(behaviour);
                std::thread::spawn(move || Talk { stream, over }.serve(hostile));
            }
        });
        Self { address, is_over }
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.address));
    }
}

/// One connection. Every step says whether it goes on.
struct Talk {
    stream: TcpStream,
    over: Arc<AtomicBool>,
}

impl Talk {
    fn serve(mut self, hostile: Option<&Behaviour<'_>>) {
        let _ = self.stream.set_nodelay(true);
        let pause = Some(Duration::from_millis(50));
        self.stream
            .set_read_timeout(pause)
            .and_then(|()| self.stream.set_write_timeout(pause))
            .expect("a time");
        let steps = hostile.map_or(&[Step::Say(GOOD)][..], |it| it.answers);
        let greets = hostile.map_or(&[][..], |it| it.greets);
        let mut goes_on = greets.iter().all(|step| self.step(*step));
        // A connection that is closed with bytes that were never read is reset (RFC 1122, 4.2.2.13).
        let reads = !steps.iter().any(|step| matches!(step, Step::Reset));
        while goes_on && self.await_request(reads) {
            goes_on = steps.iter().all(|step| self.step(*step));
        }
    }

    fn await_request(&mut self, reads: bool) -> bool {
        let mut buffer = [0; 4096];
        while !self.over.load(Ordering::Relaxed) {
            match self.stream.peek(&mut buffer) {
                Ok(0) => return false,
                Ok(count) if buffer[..count].ends_with(b"\r\n\r\n") => {
                    return !reads || self.stream.read_exact(&mut buffer[..count]).is_ok();
                }
                Ok(_) => std::thread::yield_now(),
                Err(error) if is_timeout(&error) => {}
                Err(_) => return false,
            }
        }
        false
    }

    fn step(&mut self, step: Step<'_>) -> bool {
        match step {
            Step::Say(bytes) => self.say(bytes),
            Step::Right => self.say(GOOD),
            Step::Drip(bytes, pause_ms) => bytes.iter().all(|byte| {
                std::thread::sleep(Duration::from_millis(pause_ms));
                self.say(&[*byte])
            }),
            Step::Flood(first, more) => {
                let more = more.repeat(8192 / more.len());
                let mut goes_on = self.say(first);
                while goes_on {
                    goes_on = self.say(&more);
                }
                false
            }
            Step::Wait(ms) => {
                std::thread::sleep(Duration::from_millis(ms));
                true
            }
            Step::Hush => {
                let mut buffer = [0; 64];
                while !self.over.load(Ordering::Relaxed) {
                    match self.stream.read(&mut buffer) {
                        Ok(1..) => {}
                        Err(error) if is_timeout(&error) => {}
                        _ => return false,
                    }
                }
                false
            }
            Step::Close | Step::Reset => false,
        }
    }

    /// Says all of it, however long no peer reads.
    fn say(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() && !self.over.load(Ordering::Relaxed) {
            match self.stream.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if is_timeout(&error) => {}
                Err(_) => return false,
            }
        }
        !self.over.load(Ordering::Relaxed)
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Why a run does not show what it must; `None` where it does, or where the host lacks the driver. On a busy machine neither a
/// good answer nor a strange one need come within the first run's time: the second has ten times of that.
fn complaint(behaviour: &'static Behaviour<'static>, driver: &str) -> Option<String> {
    let first = complaint_within(behaviour, driver, "400ms")?;
    say(&format!("{} through {driver} again, for longer: {first}", behaviour.name));
    complaint_within(behaviour, driver, "4s")
}

fn complaint_within(
    behaviour: &'static Behaviour<'static>,
    driver: &str,
    time: &str,
) -> Option<String> {
    let server = Hostile::start(behaviour, 4);
    let place = Place::new();
    // An answer that comes has time to come, however busy the machine.
    let timeout = if matches!(behaviour.seen, Seen::Fine) { "20s" } else { time };
    let text = format!(
        "[system]\nkind = \"http\"\n[system.deploy]\nurl = \"http://{}/\"\n[workload]\npreflight = false\n[load]\n\
         rate = \"100/s\"\nconnections = 4\nconnections_max = 4\nwarmup = \"0s\"\nduration = \"{time}\"\ntimeout = \"{timeout}\"\n",
        server.address
    );
    place.write("x.toml", text);
    let words = ["run", "x.toml", "--json", "--progress", "none", "--no-calibration"];
    let mut command = place.command(&words);
    let running = Running::start(command.env("ASSAY_DRIVER", driver));
    let said = running.finish_within(RUN_LIMIT);
    if said.stderr.contains("setting up the io_uring event loop") {
        return None;
    }
    let Ok(document) = serde_json::from_str::<Value>(&said.stdout) else {
        return Some(format!("exit code {}, and no result: {}", said.code, said.stderr));
    };
    let trial = trial(&document);
    let (health, counts) = (&trial["health"], &trial["counts"]);
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let (due, committed) = (number(&counts["due"]), number(&counts["committed"]));
    let broken = number(&health["protocol_errors"]) + number(&health["unasked_bytes"]);
    let is_seen = match behaviour.seen {
        Seen::Broken | Seen::BrokenBehind => broken > 0,
        Seen::Failed => committed < due,
        Seen::Fine => committed == due && broken == 0,
    };
    let memory = trial["resources"]["generator.rss_bytes"][2].as_f64().unwrap_or(0.0);
    let is_starved = committed * 2 < due;
    (!is_seen || is_starved || memory > MEMORY_MAX).then(|| {
        format!(
            "seen: {is_seen}; committed {committed} of {due}; {memory} bytes; {health}; code {}",
            said.code
        )
    })
}

/// Claim: whatever a server does on one of four connections, the run ends, sees it, takes no more memory than it may, and
/// the other connections have their answers; what is strange and right is not held against it. With both drivers.
#[test]
fn every_behaviour_is_seen() {
    let _machine = beside_others();
    let complaints = each_with_both(BEHAVIOURS.iter(), SIDE_BY_SIDE, complaint);
    assert!(complaints.is_empty(), "{}:\n{}", complaints.len(), complaints.join("\n"));
}

/// Complaints about behaviours with each driver, so many side by side.
fn each_with_both(
    behaviours: impl Iterator<Item = &'static Behaviour<'static>> + Clone,
    side_by_side: usize,
    complaint: impl Fn(&'static Behaviour<'static>, &str) -> Option<String> + Sync,
) -> Vec<String> {
    let all: Vec<_> =
        DRIVERS.iter().flat_map(|driver| behaviours.clone().map(move |it| (it, *driver))).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some((behaviour, driver)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let said = complaint(behaviour, driver);
            found.extend(said.map(|said| {
                format!("{} ({}) through {driver}: {said}", behaviour.name, behaviour.does)
            }));
        }
        found
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..side_by_side).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no run panics")).collect()
    })
}

fn named(name: &str) -> &'static Behaviour<'static> {
    BEHAVIOURS.iter().find(|it| it.name == name).expect("it is in the list")
}

/// The wait that a person accepts.
const SECOND: Duration = Duration::from_secs(1);
/// The wait on a machine of which others take most: still a sixth of the load's timeout.
const ON_A_BUSY_MACHINE: Duration = Duration::from_secs(10);

/// Starts a run against a server all of whose connections are hostile, lets it run for half a second and sends signals;
/// from the last of them on it has so long. Gives the exit code.
fn interrupted(
    behaviour: &'static Behaviour<'static>,
    driver: &str,
    more: &str,
    signals: usize,
    limit: Duration,
) -> i32 {
    let server = Hostile::start(behaviour, 1);
    let place = Place::new();
    let text = format!(
        "[system]\nkind = \"http\"\n[system.deploy]\nurl = \"http://{}/\"\n{more}\n[load]\nrate = \"100/s\"\n\
         connections = 4\nconnections_max = 4\nwarmup = \"0s\"\nduration = \"60s\"\ntimeout = \"60s\"\n",
        server.address
    );
    place.write("x.toml", text);
    let words = ["run", "x.toml", "--json", "--progress", "none", "--no-calibration"];
    let running = Running::start(place.command(&words).env("ASSAY_DRIVER", driver));
    pass(Duration::from_millis(700));
    for _ in 1..signals {
        running.signal(Signal::INT);
        pass(Duration::from_millis(150));
    }
    running.signal(Signal::INT);
    running.finish_within(limit).code
}

/// Claim: the first Ctrl-C ends a run, whatever the server does without end, in the preflight pass and in the load, whose
/// timeout is a minute. With both drivers.
#[test]
fn ctrl_c_is_heard() {
    let _machine = beside_others();
    all_hear(ON_A_BUSY_MACHINE);
}

mod timing {
    /// Claim: it does so within a second.
    #[test]
    fn ctrl_c_is_heard_within_a_second() {
        let _alone = super::alone();
        super::all_hear(super::SECOND);
    }
}

fn all_hear(limit: Duration) {
    let goes_on = |step: &Step<'_>| matches!(step, Step::Flood(..) | Step::Hush);
    let endless = BEHAVIOURS.iter().filter(|it| it.answers.iter().any(goes_on));
    assert!(endless.clone().count() >= 15);
    let no_preflight = "[workload]\npreflight = false";
    let complaints = each_with_both(endless, FEW_SIDE_BY_SIDE, |behaviour, driver| {
        let code = interrupted(behaviour, driver, no_preflight, 1, limit);
        (code != 130 && code != 1).then(|| format!("exit code {code}"))
    });
    assert!(complaints.is_empty(), "{}:\n{}", complaints.len(), complaints.join("\n"));
    assert_eq!(interrupted(named("silence"), "epoll", "", 1, limit), 130);
    assert_eq!(interrupted(named("silence"), "epoll", no_preflight, 2, limit), 130);
}
