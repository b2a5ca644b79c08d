//! `assay watch --web`: the report's page of a run that goes on, around it a page that is told each second by server-sent events
//! how it goes. On loopback anybody of this host may look; at another address only who has the token. Nothing that is asked
//! here reaches the run: what is served was made before.

use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clock::Clock;

use crate::served::{self, Answer, Asked};

/// The most connections at a time: a reader has two or three.
const CONNECTIONS_MAX: usize = 32;
/// Something is sent at least this often, so that a reader who has gone is noticed.
const QUIET_MAX: Duration = Duration::from_secs(5);
/// Those who look get so long at the end to fetch the report.
const LAST_FETCH: Duration = Duration::from_secs(5);
/// Bytes of a token.
const TOKEN_BYTES: usize = 16;

/// The server; it ends with the process.
pub struct Web {
    shown: Arc<Shown>,
    url: String,
}

/// The page, the figures and their readers.
struct Shown {
    /// The token that a request must bring; absent: none.
    token: Option<String>,
    state: Mutex<State>,
    changed: Condvar,
    connections: AtomicUsize,
}

#[derive(Default)]
struct State {
    /// How often those who look were told.
    told: u64,
    figures: Arc<str>,
    page: Option<Arc<str>>,
    is_over: bool,
    /// Readers of events.
    readers: usize,
    /// Of these, who has been told of the end and has not fetched the report yet.
    waited_for: usize,
}

impl Web {
    /// Listens, and serves until the process ends.
    ///
    /// # Errors
    /// When the address cannot be listened at.
    pub fn serve(address: SocketAddr) -> Result<Self, String> {
        let token = if address.ip().is_loopback() { None } else { Some(token()?) };
        let query = token.as_ref().map_or_else(String::new, |token| format!("?token={token}"));
        let shown = Arc::new(Shown {
            token,
            state: Mutex::default(),
            changed: Condvar::new(),
            connections: AtomicUsize::new(0),
        });
        let serving = Arc::clone(&shown);
        let bound = served::listen("--web", address, move |stream| serving.connection(stream))?;
        Ok(Self { shown, url: format!("http://{bound}/{query}") })
    }

    /// Where to look, with the token.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether anybody looks.
    pub fn is_looked_at(&self) -> bool {
        self.shown.state().readers > 0
    }

    /// Tells those who look: a JSON document in one line.
    pub fn tell(&self, figures: &str) {
        let mut state = self.shown.state();
        state.told += 1;
        state.figures = figures.into();
        self.shown.changed.notify_all();
    }

    /// The page from now on.
    pub fn page(&self, page: String) {
        self.shown.state().page = Some(page.into());
        self.shown.changed.notify_all();
    }

    /// The run is over: tells those who look, and waits a while until they have the report.
    pub fn end(self, page: String, clock: Clock) {
        let mut state = self.shown.state();
        state.page = Some(page.into());
        state.is_over = true;
        state.waited_for = state.readers;
        self.shown.changed.notify_all();
        let deadline = clock.now().plus(LAST_FETCH);
        loop {
            let left = deadline.saturating_since(clock.now());
            let is_done = state.waited_for == 0 && self.shown.connections.load(SeqCst) == 0;
            if is_done || left.is_zero() {
                return;
            }
            state = self.shown.wait(state, left);
        }
    }
}

impl Shown {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, at_most: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, at_most).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Answers on a thread of its own; that there are too many is said by as many threads again.
    fn connection(self: &Arc<Self>, mut stream: TcpStream) {
        let others = self.connections.load(SeqCst);
        if others >= 2 * CONNECTIONS_MAX {
            return;
        }
        let is_one_too_many = others >= CONNECTIONS_MAX;
        self.connections.fetch_add(1, SeqCst);
        let this = Arc::clone(self);
        let work = move || {
            // A reader that is gone is no concern of anybody's.
            let _ = match is_one_too_many {
                true => {
                    this.refuse(&mut stream, "503 Service Unavailable", "too many look already")
                }
                false => this.answer(&mut stream),
            };
            // The answer must not be lost to bytes that were left unread.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read(&mut [0; 256]);
            let _here = this.state();
            this.connections.fetch_sub(1, SeqCst);
            this.changed.notify_all();
        };
        if std::thread::Builder::new().name("web".to_owned()).spawn(work).is_err() {
            self.connections.fetch_sub(1, SeqCst);
        }
    }

    fn answer(&self, stream: &mut TcpStream) -> io::Result<()> {
        let Some(asked) = served::asked(stream)? else { return Ok(()) };
        if !self.is_allowed(&asked) {
            let why = "expected the token that `assay watch` printed: open the whole address, with ?token=…";
            return self.refuse(stream, "403 Forbidden", why);
        }
        if asked.method != "GET" {
            return self.refuse(stream, "405 Method Not Allowed", "expected GET");
        }
        match asked.path.as_str() {
            "/" => page(stream, &asked, &report::live_page()),
            "/report" => self.report(stream, &asked),
            "/events" => self.events(stream),
            _ => self.refuse(stream, "404 Not Found", "the page is at /"),
        }
    }

    /// With a token whoever has it; without one who asks this host by its own name: a page from elsewhere, whose name leads
    /// here, has another.
    fn is_allowed(&self, asked: &Asked) -> bool {
        match &self.token {
            Some(token) => asked
                .query
                .split('&')
                .any(|pair| pair.strip_prefix("token=").is_some_and(|given| is_same(given, token))),
            None => is_own_name(&asked.host),
        }
    }

    #[expect(clippy::unused_self, reason = "beside the other answers")]
    fn refuse(&self, stream: &mut TcpStream, status: &str, why: &str) -> io::Result<()> {
        let body = format!("{why}\n");
        let kind = "text/plain; charset=utf-8";
        let answer = Answer { status, kind, fields: "", body: &body };
        served::answer(stream, &Asked::default(), &answer)
    }

    /// The page as it is; who asks before there is one waits a moment.
    fn report(&self, stream: &mut TcpStream, asked: &Asked) -> io::Result<()> {
        let mut state = self.state();
        if state.page.is_none() {
            state = self.wait(state, QUIET_MAX);
        }
        let (shown, is_over) = (state.page.clone(), state.is_over);
        drop(state);
        let Some(shown) = shown else {
            let why = "no transaction has ended yet, so there is no page; ask again";
            return self.refuse(stream, "503 Service Unavailable", why);
        };
        page(stream, asked, &shown)?;
        if is_over {
            let mut state = self.state();
            state.waited_for = state.waited_for.saturating_sub(1);
            self.changed.notify_all();
        }
        Ok(())
    }

    /// Events until the end of the run or of the reader.
    fn events(&self, stream: &mut TcpStream) -> io::Result<()> {
        stream.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
        )?;
        self.state().readers += 1;
        let sent = self.tell(stream);
        let mut state = self.state();
        state.readers -= 1;
        if sent.is_err() && state.is_over {
            state.waited_for = state.waited_for.saturating_sub(1);
        }
        sent
    }

    fn tell(&self, stream: &mut TcpStream) -> io::Result<()> {
        let mut told = 0;
        loop {
            let mut state = self.state();
            if !state.is_over && state.told == told {
                state = self.wait(state, QUIET_MAX);
            }
            let (is_over, is_new, figures) =
                (state.is_over, state.told != told, Arc::clone(&state.figures));
            told = state.told;
            drop(state);
            let mut text = String::new();
            if is_new {
                let _ = write!(text, "event: figures\ndata: {figures}\n\n");
            }
            if is_over {
                text.push_str("event: over\ndata: {}\n\n");
            }
            if text.is_empty() {
                text.push_str(": the run goes on\n\n");
            }
            stream.write_all(text.as_bytes())?;
            if is_over {
                return Ok(());
            }
        }
    }
}

fn page(stream: &mut TcpStream, asked: &Asked, body: &str) -> io::Result<()> {
    let fields = "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Frame-Options: SAMEORIGIN\r\n";
    let answer = Answer { status: "200 OK", kind: "text/html; charset=utf-8", fields, body };
    served::answer(stream, asked, &answer)
}

/// Whether a request asks this host by an address of its own or the name that only means itself.
fn is_own_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// In a time that does not say how much of it was right.
fn is_same(given: &str, token: &str) -> bool {
    let differing =
        given.bytes().zip(token.bytes()).fold(0, |sum, (one, other)| sum | (one ^ other));
    given.len() == token.len() && differing == 0
}

fn token() -> Result<String, String> {
    let mut bytes = [0; TOKEN_BYTES];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| format!("--web: drawing a token from /dev/urandom: {error}"))?;
    Ok(bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serve(address: &str) -> (Web, SocketAddr) {
        let web = Web::serve(address.parse().expect("an address")).expect("it can be listened at");
        let at = web.url().trim_start_matches("http://").split('/').next().expect("a host");
        let port: SocketAddr = at.parse().expect("an address");
        let here = SocketAddr::from(([127, 0, 0, 1], port.port()));
        (web, here)
    }

    fn ask(address: SocketAddr, target: &str, host: &str) -> String {
        let mut stream = TcpStream::connect(address).expect("it listens");
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    /// Claim: on loopback pages are given to who asks this host by its own name; every other address is refused without the
    /// token, or with a part of it, for each path.
    #[test]
    fn who_may_look() {
        let (web, address) = serve("127.0.0.1:0");
        web.page("<p>so far</p>".to_owned());
        assert!(!web.url().contains("token"), "{}", web.url());
        for host in ["127.0.0.1:9", "localhost", "LOCALHOST:1", "[::1]:80"] {
            assert!(ask(address, "/report", host).ends_with("\r\n\r\n<p>so far</p>"), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example:80", "", "10.0.0.1"] {
            assert!(ask(address, "/report", host).starts_with("HTTP/1.1 403 "), "{host}");
        }
        assert!(ask(address, "/other", "localhost").starts_with("HTTP/1.1 404 "));

        let (web, address) = serve("0.0.0.0:0");
        web.page("<p>so far</p>".to_owned());
        let (_, token) = web.url().split_once("?token=").expect("a token");
        assert_eq!(token.len(), 2 * TOKEN_BYTES);
        for path in ["/", "/report", "/events", "/other"] {
            for query in ["", "?token=", &format!("?token={}", &token[1..]), "?token=x&y"] {
                let said = ask(address, &format!("{path}{query}"), "localhost");
                assert!(said.starts_with("HTTP/1.1 403 ") && said.contains("the token"), "{said}");
            }
        }
        let said = ask(address, &format!("/report?page=1&token={token}"), "host.example");
        assert!(said.ends_with("<p>so far</p>"), "{said}");
    }

    /// Claim: who reads the events is told what is new, in order, and of the end; the report can be fetched after it, and the
    /// end waits for that.
    #[test]
    fn events_to_the_end() {
        let (web, address) = serve("127.0.0.1:0");
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it reads");
        let mut head = [0; 15];
        stream.read_exact(&mut head).expect("it answers");
        while !web.is_looked_at() {
            std::thread::yield_now();
        }
        web.tell("{\"n\":1}");
        web.page("<p>so far</p>".to_owned());
        let reader = std::thread::spawn(move || {
            let mut said = String::new();
            stream.read_to_string(&mut said).expect("events");
            drop(stream);
            (said, ask(address, "/report", "localhost"))
        });
        web.end("<p>the end</p>".to_owned(), Clock::start());
        let (said, report) = reader.join().expect("a reader");
        let events: Vec<&str> =
            said.split("\r\n\r\n").nth(1).expect("a head").split("\n\n").collect();
        assert_eq!(events.first(), Some(&"event: figures\ndata: {\"n\":1}"));
        assert_eq!(events[events.len() - 2], "event: over\ndata: {}");
        assert!(report.ends_with("<p>the end</p>"), "{report}");
    }

    /// Claim: a bound of readers is kept; who comes beyond it is told so, and is left although he stays and says nothing.
    #[test]
    fn not_too_many() {
        let (web, address) = serve("127.0.0.1:0");
        let held: Vec<TcpStream> = (0..CONNECTIONS_MAX)
            .map(|_| {
                let mut stream = TcpStream::connect(address).expect("it listens");
                let request = b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n";
                stream.write_all(request).expect("it reads");
                stream.read_exact(&mut [0; 15]).expect("it answers");
                stream
            })
            .collect();
        assert!(ask(address, "/", "localhost").starts_with("HTTP/1.1 503 "));
        let idle: Vec<TcpStream> = (0..CONNECTIONS_MAX / 2)
            .map(|_| {
                let mut stream = TcpStream::connect(address).expect("it listens");
                let mut answer = String::new();
                stream.read_to_string(&mut answer).expect("it answers");
                assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
                stream
            })
            .collect();
        while web.shown.connections.load(SeqCst) > CONNECTIONS_MAX {
            std::thread::yield_now();
        }
        drop((held, idle));
    }
}
