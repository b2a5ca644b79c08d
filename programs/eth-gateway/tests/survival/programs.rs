//! The gateway and the mock node as the processes that they are, and the little HTTP that is needed to ask them.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Longer than this nothing in these tests takes, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that ends with its value.
pub struct Program {
    child: Child,
    pub address: SocketAddr,
    /// Where it speaks gRPC, if it does.
    #[cfg(feature = "grpc")]
    pub grpc: Option<SocketAddr>,
}

impl Program {
    /// Starts the program and waits until it serves.
    pub fn start(words: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_eth-gateway"))
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program was built for this test");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("asked for a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("it says when it serves");
        let at = |name: &str| {
            let address = line.split_whitespace().find_map(|word| word.strip_prefix(name));
            address.map(|address| address.parse().expect("an address"))
        };
        let address = at("http=").or(at("https=")).unwrap_or_else(|| panic!("it said `{line}`"));
        Self {
            address,
            #[cfg(feature = "grpc")]
            grpc: at("grpc="),
            child,
        }
    }

    /// A mock node.
    pub fn mock(words: &[&str]) -> Self {
        Self::start(&[&["mock", "--listen", "127.0.0.1:0"], words].concat())
    }

    /// A gateway in front of it.
    pub fn gateway(node: SocketAddr, words: &[&str]) -> Self {
        let upstream = format!("http://{node}/");
        Self::start(&[&["--listen", "127.0.0.1:0", "--upstream", &upstream], words].concat())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A number of kilobytes from the kernel's account of the process: `VmHWM` is the peak of its memory, `VmRSS` the present.
    pub fn kilobytes(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()));
        let status = status.expect("the process runs");
        let line = status.lines().find(|line| line.starts_with(name)).expect("the kernel says it");
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
    }

    /// Kills the process as the kernel does when memory is short.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it was a child");
    }

    /// Asks the process to end; whether it did so well.
    pub fn terminate(&mut self) -> bool {
        let pid = self.pid().to_string();
        let asked = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(asked.expect("there is a kill").success());
        self.child.wait().expect("it was a child").success()
    }

    /// Asks a mock node for something that is no call.
    pub fn control(&self, method: &str, parameter: &str) -> String {
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":0,"method":"{method}","params":["{parameter}"]}}"#);
        let mut stream = connect(self.address);
        write!(
            stream,
            "POST / HTTP/1.1\r\nhost: node\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
        .expect("the node reads");
        let answer = Answer::read(&mut stream);
        assert_eq!(answer.status, 200);
        answer.body
    }

    /// Calls that have come to a mock node.
    pub fn calls(&self) -> u64 {
        let body = self.control("mock_calls", "");
        let (_, count) = body.split_once("\"result\":").expect("a result");
        let digits: String = count.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().expect("a number")
    }

    /// Gets one path over a connection of its own.
    pub fn get(&self, path: &str) -> Answer {
        let mut stream = connect(self.address);
        ask(&mut stream, path);
        Answer::read(&mut stream)
    }

    /// A line of the metrics: its number; 0 for what has never been counted.
    pub fn metric(&self, name: &str) -> f64 {
        let body = self.get("/metrics").body;
        let line = body.lines().find(|line| line.starts_with(name) && !line.starts_with('#'));
        let number = line.map_or("0", |line| line.rsplit(' ').next().unwrap_or_default());
        number.parse().expect("a number")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout that is not zero");
    stream
}

pub fn ask(stream: &mut TcpStream, path: &str) {
    write!(stream, "GET {path} HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n")
        .expect("it reads");
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Answer {
    pub fn read(stream: &mut impl Read) -> Self {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an answer");
        let text = String::from_utf8(bytes).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let header = |line: &str| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_owned(), value.to_owned()))
        };
        Self {
            status: status.expect("a status"),
            headers: lines.filter_map(header).collect(),
            body: body.to_owned(),
        }
    }

    /// Its status and, if it is a failure, the word for it.
    pub fn says(&self) -> (u16, &str) {
        let code = self.body.split_once("\"code\":\"").map_or("", |(_, rest)| rest);
        (self.status, code.split('"').next().unwrap_or_default())
    }
}
