//! Servers that a test starts itself, to attach to: nothing here is started or stopped by the binary's own
//! testbed. Each is killed when it is dropped.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use super::{ASSAY, await_that, locked, until};

/// A server may take this long to listen.
const START_LIMIT: Duration = Duration::from_secs(10);

/// A process that serves.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

impl Server {
    /// Starts a program that listens on `address`, and waits until it does.
    pub fn start(command: &mut Command, address: SocketAddr) -> Self {
        let child = command.stdin(Stdio::null()).spawn();
        let child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut server = Self { child, address };
        await_that(START_LIMIT, &format!("{command:?} listens"), || {
            let ended = server.child.try_wait().expect("it is our child");
            assert!(ended.is_none(), "{command:?}: {ended:?} before it listened");
            TcpStream::connect(address).is_ok()
        });
        server
    }

    /// An address of loopback that this process alone uses, with a free port. No port is given twice: a server takes a moment
    /// to bind its own, and until then it is free.
    pub fn free_address() -> SocketAddr {
        static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
        let [.., high, low] = std::process::id().to_be_bytes();
        let own = Ipv4Addr::new(127, 84, high, low.max(1));
        loop {
            let address = testbed::free_address(own, 0).expect("loopback has free ports");
            if locked(&GIVEN).insert(address.port()) {
                return address;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `assay serve echo`, apart from any run.
pub struct Echo {
    child: Child,
    /// Address of the frames.
    pub frames: String,
    /// Address of HTTP.
    pub http: String,
}

impl Echo {
    pub fn start(options: &[&str]) -> Self {
        let mut child = Command::new(ASSAY)
            .args(["serve", "echo", "--http=127.0.0.1:0"])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("it says when it is ready");
        let value = |name: &str| -> String {
            let word = line.split_whitespace().find_map(|word| word.strip_prefix(name));
            word.unwrap_or_else(|| panic!("no {name} in `{line}`")).to_owned()
        };
        Self { frames: value("frames="), http: value("http="), child }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether no server listens on a port any more, within a moment.
pub fn port_is_free(address: &str) -> bool {
    until(Duration::from_secs(2), || TcpStream::connect(address).is_err().then_some(())).is_some()
}
