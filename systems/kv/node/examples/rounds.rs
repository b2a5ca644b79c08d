//! The floor of `experiments/kv/proposals.toml`: the least that three replicas and a client do for its rounds, and nothing else.
//!
//! `rounds [--plain] [--sync none] [--bytes 4096] [--count 16] [--seconds 5] [--folder PATH]`: four processes with one thread
//! each, over loopback with TLS 1.3 and certificates on both sides (`--plain`: without). In a round the client sends `count`
//! values on one connection; the leader passes them to two followers, writes them into a file that was made before, around
//! the kernel's cache, and calls fdatasync; each follower does the same and says so. Once its own disk and one follower have
//! them, the leader answers, and the next round begins. Nothing is parsed, ordered, carried out or kept in memory.
//! Prints one line: values a second, p50 and p99 of a round, processor time of all four processes a value.

#![expect(clippy::unwrap_used, reason = "a measuring aid: it ends at the first mistake")]

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use clock::Clock;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::fs::OFlags;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

const NAME: &str = "replica.test";
const LOG_BYTES: usize = 64 << 20;
const BLOCK_BYTES: usize = 4096;
/// Bytes read of a socket at once.
const READ_BYTES: usize = 256 << 10;

struct Options {
    is_plain: bool,
    syncs: bool,
    bytes: usize,
    count: usize,
    folder: PathBuf,
}

impl Options {
    const fn round_bytes(&self) -> usize {
        self.bytes * self.count
    }
}

/// One connection, which waits for what it is asked for.
struct Link {
    read: BufReader<TcpStream>,
    write: TcpStream,
    tls: Option<rustls::Connection>,
}

impl Link {
    fn new(stream: TcpStream, tls: Option<rustls::Connection>) -> Self {
        stream.set_nodelay(true).unwrap();
        let write = stream.try_clone().unwrap();
        Self { read: BufReader::with_capacity(READ_BYTES, stream), write, tls }
    }

    fn accept(listener: &TcpListener, options: &Options) -> Self {
        let tls = (!options.is_plain).then(|| {
            let config = Arc::new(server(&options.folder));
            let mut tls = ServerConnection::new(config).unwrap();
            tls.set_buffer_limit(None);
            tls.into()
        });
        Self::new(listener.accept().unwrap().0, tls)
    }

    fn dial(port: u16, options: &Options) -> Self {
        let tls = (!options.is_plain).then(|| {
            let config = Arc::new(client(&options.folder));
            let mut tls =
                ClientConnection::new(config, ServerName::try_from(NAME).unwrap()).unwrap();
            tls.set_buffer_limit(None);
            tls.into()
        });
        Self::new(TcpStream::connect(("127.0.0.1", port)).unwrap(), tls)
    }

    fn send(&mut self, bytes: &[u8]) {
        let Some(tls) = &mut self.tls else {
            return self.write.write_all(bytes).unwrap();
        };
        while tls.is_handshaking() {
            tls.complete_io(&mut Both(&mut self.read, &mut self.write)).unwrap();
        }
        tls.writer().write_all(bytes).unwrap();
        while tls.wants_write() {
            tls.write_tls(&mut self.write).unwrap();
        }
    }

    /// Fills the buffer; `false` where the other side is done.
    fn receive(&mut self, bytes: &mut [u8]) -> bool {
        let Some(tls) = &mut self.tls else {
            return self.read.read_exact(bytes).is_ok();
        };
        let mut at = 0;
        while at < bytes.len() {
            match tls.reader().read(&mut bytes[at..]) {
                Ok(count) if count > 0 => at += count,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    // Answers that the other side leaves unread reset the connection.
                    if tls.complete_io(&mut Both(&mut self.read, &mut self.write)).is_err() {
                        return false;
                    }
                }
                _ => return false,
            }
        }
        true
    }
}

struct Both<'a>(&'a mut BufReader<TcpStream>, &'a mut TcpStream);

impl Read for Both<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(bytes)
    }
}

impl Write for Both<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.1.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    let mut provider = rustls::crypto::ring::default_provider();
    let fast = rustls::CipherSuite::TLS13_AES_128_GCM_SHA256;
    provider.cipher_suites.retain(|suite| suite.suite() == fast);
    Arc::new(provider)
}

/// The certificate and its key, and the authority.
fn identity(
    folder: &Path,
) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>, Arc<RootCertStore>) {
    let mut believed = RootCertStore::empty();
    believed.add(CertificateDer::from_pem_file(folder.join("authority")).unwrap()).unwrap();
    let chain = vec![CertificateDer::from_pem_file(folder.join("certificate")).unwrap()];
    (chain, PrivateKeyDer::from_pem_file(folder.join("key")).unwrap(), Arc::new(believed))
}

fn server(folder: &Path) -> ServerConfig {
    let (chain, key, believed) = identity(folder);
    let verifier = WebPkiClientVerifier::builder_with_provider(believed, provider());
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(chain, key)
        .unwrap();
    config.send_tls13_tickets = 0;
    config
}

fn client(folder: &Path) -> ClientConfig {
    let (chain, key, believed) = identity(folder);
    ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(believed)
        .with_client_auth_cert(chain, key)
        .unwrap()
}

fn make_identity(folder: &Path) {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([NAME.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap().pem();
    for (name, text) in
        [("authority", authority.pem()), ("certificate", certificate), ("key", key.serialize_pem())]
    {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

/// A file of zeros that is written around and around.
struct Log {
    file: File,
    at: usize,
    syncs: bool,
}

impl Log {
    fn make(number: &str, options: &Options) -> Self {
        let path = options.folder.join(number);
        let mut made = File::create(&path).unwrap();
        let zeros = vec![0; 1 << 20];
        for _ in 0..LOG_BYTES / zeros.len() {
            made.write_all(&zeros).unwrap();
        }
        made.sync_all().unwrap();
        let direct = i32::try_from(OFlags::DIRECT.bits()).unwrap();
        let file = OpenOptions::new().write(true).custom_flags(direct).open(path).unwrap();
        Self { file, at: 0, syncs: options.syncs }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.at + bytes.len() > LOG_BYTES {
            self.at = 0;
        }
        self.file.write_all_at(bytes, u64::try_from(self.at).unwrap()).unwrap();
        self.at += bytes.len();
        if self.syncs {
            self.file.sync_data().unwrap();
        }
    }
}

/// A buffer that the kernel takes around its cache.
struct Aligned(Vec<u8>, usize, usize);

impl Aligned {
    fn new(length: usize) -> Self {
        let bytes = vec![0; length + BLOCK_BYTES];
        let lead = bytes.as_ptr().align_offset(BLOCK_BYTES);
        Self(bytes, lead, length)
    }

    fn get(&mut self) -> &mut [u8] {
        &mut self.0[self.1..self.1 + self.2]
    }
}

fn listen() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    listener
}

fn follow(number: &str, options: &Options) {
    let mut log = Log::make(number, options);
    let mut leader = Link::accept(&listen(), options);
    let mut values = Aligned::new(options.round_bytes());
    while leader.receive(values.get()) {
        log.keep(values.get());
        leader.send(&[1; 8]);
    }
}

fn lead(followers: &[u16], options: &Options) {
    let mut log = Log::make("leader", options);
    let listener = listen();
    let mut followers: Vec<Link> =
        followers.iter().map(|port| Link::dial(*port, options)).collect();
    let mut client = Link::accept(&listener, options);
    let mut values = Aligned::new(options.round_bytes());
    let mut is_first = true;
    while client.receive(values.get()) {
        for follower in &mut followers {
            follower.send(values.get());
        }
        log.keep(values.get());
        // A majority: itself, and the follower that was told first. The other one said so of the round before.
        assert!(followers[0].receive(&mut [0; 8]), "a follower went away");
        client.send(&[1; 8]);
        assert!(is_first || followers[1].receive(&mut [0; 8]), "a follower went away");
        is_first = false;
    }
}

fn start(role: &str, words: &[String], folder: &Path, more: &[u16]) -> (Child, u16) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--role", role]).args(words).arg("--folder").arg(folder);
    for port in more {
        command.args(["--follower", &port.to_string()]);
    }
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    (child, line.trim().parse().expect("a replica says its port"))
}

/// Processor time of a process so far; `/proc` counts in hundredths of a second.
fn cpu(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

fn measure(seconds: u64, words: &[String], options: &Options) {
    // Before anything is started: replicas would wait for a client that never comes.
    let round_bytes = options.round_bytes();
    let is_whole = round_bytes > 0 && round_bytes.is_multiple_of(BLOCK_BYTES);
    assert!(
        is_whole && round_bytes <= LOG_BYTES,
        "expected --bytes times --count to be whole blocks of {BLOCK_BYTES}, at most {LOG_BYTES}, got {round_bytes}"
    );
    let folder = tempfile::tempdir_in(&options.folder).unwrap();
    make_identity(folder.path());
    let started = ["1", "2"].map(|role| start(role, words, folder.path(), &[]));
    let leader = start("leader", words, folder.path(), &started.each_ref().map(|it| it.1));
    let port = leader.1;
    let mut children: Vec<Child> = started.into_iter().chain([leader]).map(|it| it.0).collect();
    let used = || {
        let ids = children.iter().map(Child::id).chain([std::process::id()]);
        ids.map(cpu).sum::<Duration>()
    };
    let options = Options { folder: folder.path().to_owned(), ..*options };
    let mut leader = Link::dial(port, &options);
    let values = vec![0x5a; options.round_bytes()];
    let clock = Clock::start();
    let mut round = || {
        let began = clock.now();
        leader.send(&values);
        assert!(leader.receive(&mut [0; 8]), "the leader went away");
        clock.now().saturating_since(began)
    };
    for _ in 0..1000 {
        round();
    }
    let (began, before) = (clock.now(), used());
    let mut rounds = Vec::new();
    while clock.now().saturating_since(began) < Duration::from_secs(seconds) {
        rounds.push(round());
    }
    let (took, used) = (clock.now().saturating_since(began), used() - before);
    drop(leader);
    for child in &mut children {
        child.wait().unwrap();
    }
    rounds.sort_unstable();
    let count = f64::from(u32::try_from(rounds.len() * options.count).unwrap());
    let at = |share: usize| rounds[rounds.len() * share / 100].as_secs_f64() * 1e3;
    println!(
        "{} B: {:.0} values/s, {} a round, p50 {:.3} ms, p99 {:.3} ms, {:.1} µs of processors a value",
        options.bytes,
        count / took.as_secs_f64(),
        options.count,
        at(50),
        at(99),
        used.as_secs_f64() * 1e6 / count,
    );
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let values = |name: &str| {
        let found = words.windows(2).filter(|pair| pair[0] == name).map(|pair| pair[1].clone());
        found.collect::<Vec<String>>()
    };
    let last = |name: &str| values(name).pop();
    let number =
        |name: &str, other: u64| last(name).map_or(other, |word| word.parse().expect("a number"));
    let options = Options {
        is_plain: words.iter().any(|word| word == "--plain"),
        syncs: last("--sync").is_none_or(|word| word != "none"),
        bytes: usize::try_from(number("--bytes", 4096)).unwrap(),
        count: usize::try_from(number("--count", 16)).unwrap(),
        folder: last("--folder").map_or_else(std::env::temp_dir, PathBuf::from),
    };
    match last("--role").as_deref() {
        None => measure(number("--seconds", 5), &words, &options),
        Some("leader") => {
            let followers = values("--follower");
            let ports: Vec<u16> = followers.iter().map(|word| word.parse().unwrap()).collect();
            lead(&ports, &options);
        }
        Some(number) => follow(number, &options),
    }
}
