//! A small shop: users log in for a session cookie and a token, look at items, fill a cart, find a CSRF token in a page and pay.
//! One payment in fifty is made twice, unless it says the key that the cart's page gave. It counts what it did.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// Its counts.
#[derive(Default)]
pub struct Counts {
    pub requests: AtomicU64,
    pub logins: AtomicU64,
    pub redirects: AtomicU64,
    pub pages: AtomicU64,
    /// Payments that were asked for, and that were made.
    pub orders: AtomicU64,
    pub payments: AtomicU64,
    /// Requests that were refused.
    pub refused: AtomicU64,
}

/// A running shop; it ends with the test's process.
pub struct Shop {
    pub address: SocketAddr,
    pub counts: Arc<Counts>,
}

#[derive(Default)]
struct Session {
    token: String,
    in_cart: u64,
    csrf: String,
    key: String,
}

#[derive(Clone)]
struct State {
    counts: Arc<Counts>,
    sessions: Arc<Mutex<HashMap<String, Session>>>,
}

impl Shop {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let state = State { counts: Arc::default(), sessions: Arc::default() };
        let counts = Arc::clone(&state.counts);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = state.clone();
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        Self { address, counts }
    }
}

/// A request, as far as the shop looks at it.
struct Asked<'a> {
    method: &'a str,
    path: &'a str,
    head: &'a str,
    body: &'a str,
}

impl Asked<'_> {
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.into_iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    fn cookie(&self, name: &str) -> Option<&str> {
        let cookies = self.header("cookie")?.split("; ");
        cookies.filter_map(|pair| pair.split_once('=')).find(|(n, _)| *n == name).map(|(_, v)| v)
    }

    fn form(&self, name: &str) -> &str {
        let pairs = self.body.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(n, _)| *n == name).map_or("", |(_, value)| value)
    }
}

fn serve(mut stream: TcpStream, state: &State) {
    let (mut received, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let end = received.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        let whole = end.and_then(|end| {
            let head = String::from_utf8_lossy(&received[..end]).into_owned();
            let length = head
                .to_ascii_lowercase()
                .split("content-length: ")
                .nth(1)?
                .lines()
                .next()?
                .parse()
                .ok();
            Some((end, head, length))
        });
        let (end, head, length) = match (end, whole) {
            (Some(_), Some((end, head, Some(length)))) => (end, head, length),
            (Some(end), _) => (end, String::from_utf8_lossy(&received[..end]).into_owned(), 0),
            (None, _) => (usize::MAX, String::new(), 0_usize),
        };
        if end == usize::MAX || received.len() < end + length {
            match stream.read(&mut piece) {
                Ok(count @ 1..) => received.extend_from_slice(&piece[..count]),
                _ => return,
            }
            continue;
        }
        let body = String::from_utf8_lossy(&received[end..end + length]).into_owned();
        let mut words = head.split(' ');
        let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let answer = state.answer(&Asked { method, path, head: &head, body: &body });
        received.drain(..end + length);
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn said(status: &str, head: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{head}Content-Length: {}\r\n\r\n{body}", body.len())
}

impl State {
    fn answer(&self, asked: &Asked<'_>) -> String {
        self.counts.requests.fetch_add(1, SeqCst);
        let path = asked.path.split('?').next().unwrap_or("");
        match (asked.method, path) {
            ("POST", "/login") => self.login(asked),
            ("GET", "/items") if self.is_token(asked) => {
                self.counts.pages.fetch_add(1, SeqCst);
                let page = asked.path.rsplit('=').next().unwrap_or("0");
                said("200 OK", "", &format!("{{\"items\":[{{\"id\":{page}7}}],\"page\":{page}}}"))
            }
            ("GET", "/") => {
                self.counts.redirects.fetch_add(1, SeqCst);
                said("302 Found", "Location: /welcome\r\n", "")
            }
            ("GET", "/welcome") => said("200 OK", "", "<h1>Welcome</h1>"),
            ("POST", "/cart") => self.cart(asked),
            ("GET", "/cart") => self.cart_page(asked),
            ("POST", "/pay") => self.pay(asked),
            _ => {
                self.counts.refused.fetch_add(1, SeqCst);
                said("403 Forbidden", "", "{\"error\":\"not allowed\"}")
            }
        }
    }

    fn login(&self, asked: &Asked<'_>) -> String {
        let user = asked.body.split("\"user\":\"").nth(1).and_then(|rest| rest.split('"').next());
        let is_right =
            user.is_some_and(|user| asked.body.contains(&format!("\"password\":\"{user}-pw\"")));
        let (Some(user), true) = (user, is_right) else {
            self.counts.refused.fetch_add(1, SeqCst);
            return said("401 Unauthorized", "", "{\"error\":\"who are you?\"}");
        };
        let nth = self.counts.logins.fetch_add(1, SeqCst);
        let (id, token) = (format!("s{nth}"), format!("t-{user}-{nth}"));
        let body = format!("{{\"data\":{{\"token\":\"{token}\"}}}}");
        self.sessions
            .lock()
            .expect("no panics")
            .insert(id.clone(), Session { token, ..Session::default() });
        said("200 OK", &format!("Set-Cookie: session={id}; Path=/; HttpOnly\r\n"), &body)
    }

    fn is_token(&self, asked: &Asked<'_>) -> bool {
        let sessions = self.sessions.lock().expect("no panics");
        let session = asked.cookie("session").and_then(|id| sessions.get(id));
        let bearer = asked.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        session.is_some_and(|session| Some(session.token.as_str()) == bearer)
    }

    fn with_session(&self, asked: &Asked<'_>, work: impl FnOnce(&mut Session) -> String) -> String {
        let mut sessions = self.sessions.lock().expect("no panics");
        match asked.cookie("session").and_then(|id| sessions.get_mut(id)) {
            Some(session) => work(session),
            None => {
                self.counts.refused.fetch_add(1, SeqCst);
                said("403 Forbidden", "", "{\"error\":\"no session\"}")
            }
        }
    }

    fn cart(&self, asked: &Asked<'_>) -> String {
        self.with_session(asked, |session| {
            session.in_cart += 1;
            said("201 Created", "", &format!("{{\"count\":{}}}", session.in_cart))
        })
    }

    fn cart_page(&self, asked: &Asked<'_>) -> String {
        let id = asked.cookie("session").unwrap_or_default().to_owned();
        self.with_session(asked, |session| {
            session.csrf = format!("c{id}");
            session.key = format!("k{id}");
            let body = format!(
                "<form><input name=\"csrf\" value=\"{}\"><input name=\"key\" value=\"{}\"></form>",
                session.csrf, session.key
            );
            said("200 OK", "", &body)
        })
    }

    /// One payment in fifty is made twice, unless it has the key.
    fn pay(&self, asked: &Asked<'_>) -> String {
        self.with_session(asked, |session| {
            if session.in_cart == 0 || asked.form("csrf") != session.csrf {
                self.counts.refused.fetch_add(1, SeqCst);
                return said("403 Forbidden", "", "{\"error\":\"forged\"}");
            }
            let nth = self.counts.orders.fetch_add(1, SeqCst);
            let is_twice = nth % 50 == 49 && asked.form("key") != session.key;
            let made = 1 + u64::from(is_twice);
            self.counts.payments.fetch_add(made, SeqCst);
            said("200 OK", "", &format!("{{\"order\":{nth},\"payments\":{made}}}"))
        })
    }
}
