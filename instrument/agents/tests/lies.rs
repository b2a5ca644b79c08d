//! Agents, coordinators and their lies, over a server of NATS of the test's own, which knows whole subjects only: one that
//! says what cannot be costs its own part and never the process of another.

use std::cell::Cell;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use agents::AgentsError;
use agents::agent::{Agent, Work};
use agents::coordinator::{Ended, Follower, Spread, Untaken};
use agents::messages::{Counts, Finished, Incoming, Job, Order, Said, decode, encode};
use agents::nats::{Credentials, Nats, Server};
use clock::{Clock, Instant, WallTime};
use model::Seed;
use model::facts::{Event, LoadFacts};
use model::plan::{Arrivals, LoadPlan, SettingPlan};
use model::quantity::Rate;

const GROUP: &str = "g";
const RUN: &str = "r";
/// The agent that lies, and the one that does not.
const LIAR: &str = "a-liar";
const HONEST: &str = "b-honest";
const WAIT: Duration = Duration::from_millis(5);

type Subscribers = Arc<Mutex<Vec<(String, String, TcpStream)>>>;

/// A server of NATS; its thread ends with the process.
fn nats() -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("nats://{}", listener.local_addr().expect("it is bound"));
    let subscribers = Subscribers::default();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, subscribers) = (stream.expect("a client"), Arc::clone(&subscribers));
            std::thread::spawn(move || serve(stream, &subscribers));
        }
    });
    Server::new(&url, None, Credentials::default()).expect("a URL")
}

/// Serves one client to its end. All that is written is written under one lock.
fn serve(mut stream: TcpStream, subscribers: &Mutex<Vec<(String, String, TcpStream)>>) {
    stream.write_all(b"INFO {}\r\n").expect("it listens");
    let mut lines = BufReader::new(stream.try_clone().expect("one more file"));
    let mut line = String::new();
    while lines.read_line(&mut line).is_ok_and(|count| count > 0) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["SUB", subject, id] => {
                let own = stream.try_clone().expect("one more file");
                subscribers.lock().expect("none panics").push((
                    subject.to_owned(),
                    id.to_owned(),
                    own,
                ));
            }
            ["PING"] => {
                let _lock = subscribers.lock().expect("none panics");
                let _ = stream.write_all(b"PONG\r\n");
            }
            ["PUB", subject, length] => {
                let mut payload = vec![0; length.parse::<usize>().expect("a length") + 2];
                lines.read_exact(&mut payload).expect("it is whole");
                for (of, id, to) in subscribers.lock().expect("none panics").iter_mut() {
                    if of == subject {
                        let mut message = format!("MSG {of} {id} {length}\r\n").into_bytes();
                        message.extend_from_slice(&payload);
                        let _ = to.write_all(&message);
                    }
                }
            }
            _ => {}
        }
        line.clear();
    }
}

fn finished() -> Finished {
    let (facts, events) = (LoadFacts::default(), Vec::new());
    Finished { facts, events, cpu: Duration::ZERO, row_bytes: 0 }
}

fn job(part: u32, of: u32) -> Job {
    let load =
        LoadPlan::plain(Arrivals::constant(Rate::per_second(100)), 1, Duration::from_secs(1));
    let setting = SettingPlan::plain("echo", load);
    Job { part, of, setting, seed: Seed(1), run_mark: 1, endpoints: Vec::new() }
}

/// An agent without a load: it says all that one says, each thing as `lie` turns it. `pass` is called with each turn, and
/// with the start.
fn agent(
    server: &Server,
    name: &'static str,
    clock: Clock,
    is_over: &Arc<AtomicBool>,
    mut lie: impl FnMut(Said) -> Said + Send + 'static,
    mut pass: impl FnMut(bool) + Send + 'static,
) -> JoinHandle<()> {
    let subjects = [format!("assay.{GROUP}.call"), format!("assay.{GROUP}.agent.{name}")];
    let nats = Nats::connect(server.clone(), &subjects, clock).expect("it listens");
    let is_over = Arc::clone(is_over);
    std::thread::spawn(move || {
        let publisher = nats.publisher();
        let mut say = |said| {
            let message = encode(name, RUN, &lie(said), &[]);
            publisher.publish(&format!("assay.{GROUP}.run.{RUN}"), &message);
        };
        let mut lives = None;
        while !is_over.load(SeqCst) {
            pass(lives.is_some());
            let message = nats.next(WAIT);
            let order =
                message.and_then(|it| decode::<Order>(&it.payload, it.at).expect("this version"));
            match order {
                Some(Incoming { content: Order::Call, .. }) => say(Said::Hello),
                Some(Incoming { content: Order::Job(_), .. }) => say(Said::Ready),
                Some(Incoming { content: Order::Ask { number }, at, .. }) => {
                    let (heard_ns, answered_ns) = (at.as_ns(), at.as_ns());
                    say(Said::Clock { number, heard_ns, answered_ns });
                }
                Some(Incoming { content: Order::Start { .. }, .. }) => {
                    lives.get_or_insert(0);
                }
                Some(_) => {}
                None => match &mut lives {
                    Some(count @ 0..3) => {
                        *count += 1;
                        let counts = Counts { has_started: true, offered: 1, ..Counts::default() };
                        say(Said::Live(counts));
                    }
                    Some(_) => say(Said::Done(Box::new(finished()))),
                    None => {}
                },
            }
        }
    })
}

/// The coordinator's side of the test.
struct Watcher {
    clock: Clock,
    started: Cell<Option<Instant>>,
    quits: bool,
    counts: Counts,
}

impl Follower for Watcher {
    fn rows(&mut self, part: u32, _: &[u8]) -> Result<(), Untaken> {
        match part {
            0 => Err(Untaken::Wrong("nonsense".to_owned())),
            _ => Ok(()),
        }
    }

    fn started(&mut self, at: Instant) {
        self.started.set(Some(at));
    }

    fn counts(&mut self, all: &Counts) {
        self.counts = *all;
    }

    fn say(&mut self, _: &str) {}

    fn stopped(&self) -> Option<bool> {
        let at = self.started.get()?;
        let waited = self.clock.now().saturating_since(at);
        assert!(waited < Duration::from_secs(120), "an agent is waited for without end");
        self.quits.then_some(true)
    }
}

/// A trial of the honest agent and the liar: its end, and the last counts.
fn trial(
    lie: impl FnMut(Said) -> Said + Send + 'static,
) -> (Result<Vec<Ended>, AgentsError>, Counts) {
    let (server, clock) = (nats(), Clock::start());
    let is_over = Arc::new(AtomicBool::new(false));
    let threads = [
        agent(&server, LIAR, clock, &is_over, lie, |_| ()),
        agent(&server, HONEST, clock, &is_over, |said| said, |_| ()),
    ];
    let mut watcher =
        Watcher { clock, started: Cell::default(), quits: false, counts: Counts::default() };
    let ended = spread(server, clock, 2, Duration::from_millis(100))
        .carry_out(&|part| job(part, 2), &mut watcher);
    is_over.store(true, SeqCst);
    threads.into_iter().for_each(|thread| thread.join().expect("it only lies"));
    (ended.map(|(_, ended)| ended), watcher.counts)
}

fn spread(server: Server, clock: Clock, count: u32, load: Duration) -> Spread<'static> {
    let drain_max = Duration::from_millis(100);
    Spread { server, group: GROUP, run: RUN, count, clock, load, drain_max }
}

/// The liar is lost for this reason, and the honest agent is not.
fn assert_lost(ended: Result<Vec<Ended>, AgentsError>, why: &str) {
    let ended = ended.expect("the load goes on");
    assert_eq!((ended[0].name.as_str(), ended[1].name.as_str()), (LIAR, HONEST));
    assert!(ended[0].lost.contains(why), "{}", ended[0].lost);
    assert_eq!(ended[1].lost, "");
    assert!(ended[1].finished.is_some());
}

/// Claim: counters at their bounds beside those of another agent are shown as the largest number, and the trial goes on.
#[test]
fn counters_at_their_bounds() {
    let (ended, counts) = trial(|said| match said {
        Said::Live(counts) => {
            let (most, offered) = (u64::MAX, u64::MAX);
            let (sent, committed, failed, outstanding, backlog) = (most, most, most, most, most);
            Said::Live(Counts { offered, sent, committed, failed, outstanding, backlog, ..counts })
        }
        other => other,
    });
    assert!(ended.unwrap().iter().all(|part| part.lost.is_empty()));
    assert_eq!((counts.offered, counts.backlog), (u64::MAX, u64::MAX));
}

/// Claim: a clock that no host can have refuses the agent before the load and loses it afterwards, with its readings.
#[test]
fn clocks_at_their_bounds() {
    for ns in [i64::MAX, i64::MIN] {
        let far = move |said| match said {
            Said::Clock { number, .. } => Said::Clock { number, heard_ns: ns, answered_ns: ns },
            other => other,
        };
        let error = trial(far).0.unwrap_err().to_string();
        assert!(error.contains(LIAR) && error.contains(&ns.to_string()), "{error}");
        let mut has_started = false;
        let later = move |said| {
            has_started |= matches!(said, Said::Live(_));
            if has_started { far(said) } else { said }
        };
        assert_lost(trial(later).0, "expected its clock within 36 years of this one");
    }
}

/// Claim: rows and results that no trial can have lose their agent, not the load.
#[test]
fn results_at_their_bounds() {
    let rows = |said| match said {
        Said::Done(_) => Said::Rows { offset: 0 },
        other => other,
    };
    assert_lost(trial(rows).0, "its rows are wrong: nonsense");
    let event = Event { at: i64::MIN, name: String::new(), tx: None, detail: String::new() };
    for (cut_at, drain_end, events) in [
        (Some(i64::MIN), 0, Vec::new()),
        (None, i64::MAX, Vec::new()),
        (None, 0, vec![event.clone()]),
    ] {
        let results = move |said| match said {
            Said::Done(_) => {
                let facts = LoadFacts { cut_at, drain_end, ..LoadFacts::default() };
                Said::Done(Box::new(Finished { facts, events: events.clone(), ..finished() }))
            }
            other => other,
        };
        assert_lost(trial(results).0, "expected results with stamps within 36 years");
    }
}

/// Claim: an agent that answers the questions of another has no clock of its own by it, and takes none from the other.
#[test]
fn answers_for_another() {
    let (ended, _) = trial(|said| match said {
        Said::Clock { number, heard_ns, answered_ns } => {
            Said::Clock { number: number ^ 1, heard_ns, answered_ns }
        }
        other => other,
    });
    let error = ended.unwrap_err().to_string();
    assert!(error.contains(LIAR) && error.contains("no answer when its clock"), "{error}");
}

/// Claim: an agent that speaks for ever and delivers nothing is lost some time after the longest drain, or after a request to
/// wait for no answers, however long the load would still go on.
#[test]
fn one_that_only_speaks_is_lost() {
    let speaks: fn(Said) -> Said = |said| match said {
        Said::Done(_) => Said::Live(Counts { has_started: true, ..Counts::default() }),
        other => other,
    };
    let delivers_nothing: fn(Said) -> Said = |said| match said {
        Said::Done(_) => Said::Done(Box::new(Finished { row_bytes: 1, ..finished() })),
        other => other,
    };
    let moments = Duration::from_millis(100);
    for (lie, load, quits) in [
        (speaks, moments, false),
        (delivers_nothing, moments, false),
        (speaks, Duration::from_secs(3_600), true),
    ] {
        let (clock, mut hand) = Clock::by_hand(Instant::ZERO, WallTime::from_unix_ns(0));
        let (server, is_over) = (nats(), Arc::new(AtomicBool::new(false)));
        // Time passes by what the agent does, and faster once there is nothing but its words to wait for.
        let pass = move |has_started| {
            let step = Duration::from_millis(if has_started { 50 } else { 5 });
            hand.move_to(hand.now().plus(step));
        };
        let thread = agent(&server, LIAR, clock, &is_over, lie, pass);
        let (started, counts) = (Cell::default(), Counts::default());
        let mut watcher = Watcher { clock, started, quits, counts };
        let ended = spread(server, clock, 1, load).carry_out(&|part| job(part, 1), &mut watcher);
        is_over.store(true, SeqCst);
        thread.join().unwrap();
        let lost = &ended.unwrap().1[0].lost;
        // Its words may all be taken late on a busy machine.
        let is_silent = lost.starts_with("silent for");
        assert!(lost.contains("alive, but without progress") || is_silent, "{lost}");
    }
}

/// A coordinator's dialogue with one agent.
struct Dialogue {
    nats: Nats,
    is_over: Arc<AtomicBool>,
    agent: JoinHandle<Result<(), AgentsError>>,
}

impl Dialogue {
    fn begin() -> Self {
        let (server, clock) = (nats(), Clock::start());
        let subject = format!("assay.{GROUP}.run.{RUN}");
        let nats = Nats::connect(server.clone(), &[subject], clock).expect("it listens");
        let work: Work = Arc::new(|_, part| match part.await_start() {
            Some(_) => Ok(finished()),
            None => Err("called off".to_owned()),
        });
        let (group, name) = (GROUP.to_owned(), HONEST.to_owned());
        let agent = Agent { server, group, name, clock, work };
        let is_over = Arc::new(AtomicBool::new(false));
        let of = Arc::clone(&is_over);
        let agent = std::thread::spawn(move || agent.serve(&of, &|_| ()));
        Self { nats, is_over, agent }
    }

    fn order(&self, order: &Order) {
        let subject = match order {
            Order::Call => format!("assay.{GROUP}.call"),
            _ => format!("assay.{GROUP}.agent.{HONEST}"),
        };
        self.nats.publisher().publish(&subject, &encode("coordinator", RUN, order, &[]));
    }

    /// Orders until the agent says what is wanted.
    fn until<T>(&self, order: &Order, wanted: impl Fn(Said) -> Option<T>) -> T {
        for _ in 0..500 {
            self.order(order);
            while let Some(message) = self.nats.next(Duration::from_millis(50)) {
                let said = decode::<Said>(&message.payload, message.at).expect("this version");
                if let Some(found) = said.and_then(|said| wanted(said.content)) {
                    return found;
                }
            }
        }
        panic!("expected an answer to {order:?}, got none");
    }

    fn end(self) {
        self.is_over.store(true, SeqCst);
        self.agent.join().expect("it does not panic").expect("it served");
    }
}

fn hello(said: Said) -> Option<()> {
    matches!(said, Said::Hello).then_some(())
}

fn refused(said: Said) -> Option<String> {
    match said {
        Said::Refused { why } => Some(why),
        _ => None,
    }
}

/// Claim: an agent refuses a part that no run has, and a start that no clock of its own can name, in words, and waits for the
/// next run.
#[test]
fn orders_at_their_bounds() {
    let dialogue = Dialogue::begin();
    for (part, of) in [(u32::MAX, u32::MAX), (u32::MAX, 2), (2, 2), (0, 0), (0, u32::MAX)] {
        let why = dialogue.until(&Order::Job(Box::new(job(part, of))), refused);
        assert!(why.contains(&format!("got part {part} of {of}")), "{why}");
        dialogue.until(&Order::Call, hello);
    }
    for at_ns in [i64::MAX, i64::MIN] {
        let ready = |said| matches!(said, Said::Ready).then_some(());
        dialogue.until(&Order::Job(Box::new(job(1, 2))), ready);
        let why = dialogue.until(&Order::Start { at_ns }, refused);
        assert!(why.contains("expected a start within a day"), "{why}");
        dialogue.order(&Order::Bye);
        dialogue.until(&Order::Call, hello);
    }
    dialogue.end();
}
