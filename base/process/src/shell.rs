//! The real shell: runs a [`Node`] on TCP with one thread and one epoll, until told to end; a node of several
//! machines with one of each for every machine ([`run_machines`]).
//!
//! Bytes are handed over as they come out of the kernel, with the time read right after the call that brought
//! them. What a step sends leaves right after it, in one write a connection; what it sends on other connections
//! leaves at the end of the turn, so that an observer of many gets one write a turn. Connections of the first listener are
//! the crowd: of theirs a turn tells as many as it has room for, after everything else, so that other replicas, the disk and
//! who is accepted never wait for thousands of clients. A wake-up comes when the
//! kernel gives it, some tens of microseconds late; a node whose timing is its purpose asks for
//! [`Shell::waking_exactly`], which sleeps to shortly before it and then looks without sleeping.
//!
//! It never interprets a byte, never retries for the node, and never holds more for a peer than its
//! [`Bounds`] allow: a peer that does not read is not read from, and in the end cut off.

mod connections;
mod ends;
mod error;
mod machines;
mod peer;
mod sleep;
mod tls;
mod turn;
mod waiting;
mod words;

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;

use clock::Clock;
use rustix::event::epoll;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::pki_types::ServerName;

pub use connections::{Bounds, Counters};
pub use ends::Until;
pub use error::ShellError;
pub use machines::{Machine, run_machines};
pub use peer::Peer;
pub use sleep::Lateness;
pub use tls::{Identity, TlsError, TlsFailures};
pub use words::Words;

use crate::Node;
use crate::store::{Store, StoreCounts};

/// Connections that the kernel keeps for us until we accept them: all of a load that opens thousands at once.
const BACKLOG: i32 = 4096;
/// Connections of a listener that says metrics.
const METRICS_PLACES: usize = 64;

/// Descriptors for what is no connection that was accepted: files, listeners, peers that are dialled.
const FILES_BESIDE: usize = 128;

/// What a run of the shell came to.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Counters of connections and bounds.
    pub counters: Counters,
    /// How late wake-ups were.
    pub lateness: Lateness,
    /// Looks without sleeping that found nothing: what exact wake-ups cost.
    pub looks: u64,
    /// How encrypted connections failed.
    pub tls_failures: TlsFailures,
    /// What was kept.
    pub store: StoreCounts,
    /// What ended it, in words.
    pub ended_by: String,
}

/// Somewhere to be reached.
#[derive(Debug)]
struct Listener {
    name: String,
    socket: TcpListener,
    address: SocketAddr,
    tls: Option<Identity>,
    /// The most connections that it takes.
    places: usize,
    /// One of these names is in the certificate of whoever connects; none: any certificate that is believed will do.
    names: Vec<ServerName<'static>>,
}

/// Bound addresses, not yet served.
#[derive(Debug)]
pub struct Shell {
    listeners: Vec<Listener>,
    peers: Vec<Peer>,
    store: Option<Store>,
    bounds: Bounds,
    wakes_exactly: bool,
}

impl Shell {
    /// Binds each named address. From here on the process may have as many files open as it is allowed to: each connection
    /// is one.
    ///
    /// # Errors
    /// When one cannot be bound.
    pub fn bind(listeners: &[(&str, SocketAddr)], mut bounds: Bounds) -> Result<Self, ShellError> {
        let bind = |(name, address): &(&str, SocketAddr)| {
            let failed =
                |source| ShellError::Bind { name: (*name).to_owned(), address: *address, source };
            let listener = TcpListener::bind(address).map_err(failed)?;
            // Once more, because the standard library's backlog is 128.
            rustix::net::listen(&listener, BACKLOG).map_err(|e| failed(e.into()))?;
            listener.set_nonblocking(true).map_err(failed)?;
            let bound = listener.local_addr().map_err(failed)?;
            let name = (*name).to_owned();
            let (tls, names) = (None, Vec::new());
            let places = usize::MAX;
            Ok(Listener { name, socket: listener, address: bound, tls, places, names })
        };
        let listeners = listeners.iter().map(bind).collect::<Result<_, ShellError>>()?;
        bounds.connections_max = within_file_limit(bounds.connections_max);
        Ok(Self { listeners, peers: Vec::new(), store: None, bounds, wakes_exactly: false })
    }

    /// The most connections: as asked for, or as the host allows.
    #[must_use]
    pub const fn connections_max(&self) -> usize {
        self.bounds.connections_max
    }

    /// Takes few connections on a listener (by its place in the list) that says metrics: those who ask there are a program or two,
    /// and strangers must not take the places of others. One more takes the place of the one that has been silent for longest.
    ///
    /// # Panics
    /// If there is no such listener.
    #[must_use]
    pub fn saying_metrics_at(mut self, listener: usize) -> Self {
        self.listeners[listener].places = METRICS_PLACES;
        self
    }

    /// Takes only encrypted connections on a listener (by its place in the list), from whoever has a certificate
    /// that this process believes.
    ///
    /// # Panics
    /// If there is no such listener.
    #[must_use]
    pub fn encrypting(mut self, listener: usize, identity: &Identity) -> Self {
        self.listeners[listener].tls = Some(identity.clone());
        self
    }

    /// The same, only from those whose certificate has one of these names: [`crate::Outputs::certified`] says which.
    ///
    /// # Errors
    /// When one is no name.
    ///
    /// # Panics
    /// If there is no such listener.
    pub fn encrypting_for(
        mut self,
        listener: usize,
        identity: &Identity,
        names: &[String],
    ) -> Result<Self, TlsError> {
        self.listeners[listener].names =
            names.iter().map(|name| tls::name(name)).collect::<Result<_, _>>()?;
        Ok(self.encrypting(listener, identity))
    }

    /// Whom the node may dial, in the order of its [`crate::Outputs::dial`].
    #[must_use]
    pub fn dialling(mut self, peers: Vec<Peer>) -> Self {
        self.peers = peers;
        self
    }

    /// Where the node's logs and cells are kept.
    #[must_use]
    pub fn keeping(mut self, store: Store) -> Self {
        self.store = Some(store);
        self
    }

    /// Keeps wake-ups to a few microseconds, at the price of up to 120 µs of a processor before each.
    #[must_use]
    pub const fn waking_exactly(mut self) -> Self {
        self.wakes_exactly = true;
        self
    }

    /// The addresses, in the order given, with the ports that the kernel chose.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().map(|listener| listener.address).collect()
    }

    /// Prints the line that says that the node serves: `ready <name>=<address> … <key>=<value> …`.
    ///
    /// # Errors
    /// When standard output cannot be written to.
    pub fn announce(&self, more: &[(&str, &str)]) -> Result<(), ShellError> {
        let mut line = "ready".to_owned();
        for listener in &self.listeners {
            line.push_str(&format!(" {}={}", listener.name, listener.address));
        }
        for (key, value) in more {
            line.push_str(&format!(" {key}={value}"));
        }
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}").and_then(|()| out.flush()).map_err(ShellError::Announce)
    }

    /// Serves until one of `until` happens; then the node gets [`crate::Input::Stop`], what it has sent is
    /// written as far as the kernel takes it, what it has stored is made durable, and every connection is closed.
    ///
    /// # Errors
    /// When the kernel refuses what the shell cannot do without.
    pub fn run(
        self,
        node: &mut dyn Node,
        clock: Clock,
        until: &[Until],
    ) -> Result<Facts, ShellError> {
        self.run_machine(node, None, clock, until)
    }

    fn run_machine<M>(
        self,
        node: &mut dyn Node<M>,
        post: Option<machines::Post<M>>,
        clock: Clock,
        until: &[Until],
    ) -> Result<Facts, ShellError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(ShellError::Kernel)?;
        turn::Turns::new(self, node, post, clock, &epoll, until)?.run()
    }
}

/// How many of `wanted` connections the process may have descriptors for, once the soft limit is as high as it has to be.
fn within_file_limit(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let needed = u64::try_from(wanted + FILES_BESIDE).unwrap_or(u64::MAX);
    let Some(mut current) = limit.current.filter(|current| *current < needed) else {
        return wanted;
    };
    let raised = limit.maximum.map_or(needed, |maximum| needed.min(maximum));
    if setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit }).is_ok() {
        current = raised;
    }
    let left = usize::try_from(current).unwrap_or(usize::MAX).saturating_sub(FILES_BESIDE);
    wanted.min(left)
}

/// A secret of `N` bytes in hexadecimal digits, in a file that only those who run the program can read; `name` is what it is
/// called in errors.
///
/// # Errors
/// When there is no such file, or it holds something else.
pub fn key_file<const N: usize>(name: &str, path: &Path) -> Result<[u8; N], String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("reading {name} {}: {error}", path.display()))?;
    let digits = text.trim();
    let byte = |at: usize| u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..N).map(byte).collect();
    let key = bytes.filter(|_| digits.len() == 2 * N).and_then(|bytes| bytes.try_into().ok());
    key.ok_or_else(|| {
        format!(
            "{}: expected {} hexadecimal digits, got {} bytes of something else; write some with `openssl rand -hex {N}`",
            path.display(),
            2 * N,
            digits.len()
        )
    })
}

/// Reads where to listen: a whole address, or a port alone, which means 127.0.0.1. Port 0: any free one.
///
/// # Errors
/// A sentence for people.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.trim_start_matches(':').parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse().map_err(|_| {
        format!("expected an address such as 127.0.0.1:4000, or a port of 127.0.0.1, got `{text}`")
    })
}
