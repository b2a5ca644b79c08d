//! What a replica is sent by whoever means no good, or does not know better: as a process with TLS, over loopback. Each time
//! somebody else is served meanwhile, and memory stays within what is documented.
//!
//! Without the test harness, because this executable is also the replica: called with `serve` it is nothing else. It never
//! leaves a process behind.

#![expect(clippy::unwrap_used, reason = "a test; without the harness clippy cannot know")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use kv_node::database::compose::Composer;
use kv_node::database::results::ResultReader;
use kv_node::database::transaction::Literal;
use kv_node::database::{Status, group};
use kv_node::protocol::{self, REQUEST_BYTES_MAX, Reply, Why, read_reply};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;
use wire::frames::{next_frame, write_frame};

/// Longer than any answer takes; reached only when a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// Connections that say nothing.
const SILENT: usize = 10_000;
/// Memory that one of them may cost, as the documents say. No handshake has begun.
const SILENT_BYTES_MAX: u64 = 1024;
/// Memory that one may cost that was made sure of and then says nothing.
const IDLE_BYTES_MAX: u64 = 32 << 10;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "serve") {
        return kv_node::serve(&words[1..]);
    }
    let tests: [(&str, fn()); 6] = [
        ("strangers_are_refused", strangers_are_refused),
        ("bad_frames_end_their_connection", bad_frames_end_their_connection),
        ("what_is_asked_for_is_bounded", what_is_asked_for_is_bounded),
        ("slow_handshakes_are_given_up", slow_handshakes_are_given_up),
        ("silent_connections_cost_little", silent_connections_cost_little),
        ("a_full_disk_is_waited_for", a_full_disk_is_waited_for),
    ];
    println!("\nrunning {} tests", tests.len());
    for (name, test) in tests {
        // A failed assertion ends the process with a status that cargo reports.
        test();
        println!("test {name} ... ok");
    }
    ExitCode::SUCCESS
}

/// An authority made for a test.
struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate chain and its key.
struct Papers {
    chain: String,
    key: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn papers(&self, until_year: i32) -> Papers {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(until_year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let chain = params.signed_by(&key, &self.0).unwrap().pem();
        Papers { chain, key: key.serialize_pem() }
    }

    /// How somebody connects who believes this authority and shows these papers, if any.
    fn client(&self, papers: Option<&Papers>) -> Arc<ClientConfig> {
        let mut believed = RootCertStore::empty();
        believed.add(CertificateDer::from_pem_slice(self.0.pem().as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(believed);
        Arc::new(match papers {
            None => builder.with_no_client_auth(),
            Some(papers) => {
                let chain = CertificateDer::from_pem_slice(papers.chain.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(papers.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![chain], key).unwrap()
            }
        })
    }
}

/// A replica that runs alone, keeps a log and takes only encrypted connections; killed if a test fails.
struct Replica {
    folder: TempDir,
    authority: Authority,
    papers: Papers,
    child: Child,
    stdin: Option<ChildStdin>,
    log: Option<JoinHandle<String>>,
    ready: String,
}

impl Replica {
    fn start(options: &[&str]) -> Self {
        Self::start_on(None, options)
    }

    /// On a disk of this size of its own, if one is said.
    fn start_on(size: Option<&str>, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new("ours");
        let papers = authority.papers(4000);
        for (name, text) in [
            ("ca.pem", &authority.0.pem()),
            ("replica0.pem", &papers.chain),
            ("replica0.key", &papers.key),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let own = std::env::current_exe().unwrap();
        let data = folder.path().join("data");
        let mut command = match size {
            None => Command::new(own),
            Some(size) => {
                // A mount that nobody else sees, and that ends with the process.
                std::fs::create_dir(&data).unwrap();
                let script = "mount -t tmpfs -o size=$1 none \"$0\" && shift && exec \"$@\"";
                let mut command = Command::new("unshare");
                command.args(["-m", "--propagation", "private", "sh", "-c", script]);
                command.arg(&data).arg(size).arg(own);
                command
            }
        };
        let mut child = command
            .args(["serve", "--parent-pipe", "--metrics=0", "--election-timeout-ms=100"])
            .arg(format!("--tls={}", folder.path().display()))
            .arg(format!("--data={}", data.display()))
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        assert!(ready.starts_with("ready clients=127.0.0.1:"), "{ready:?}");
        let (stdin, mut stderr) = (child.stdin.take(), child.stderr.take().unwrap());
        let log = Some(std::thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).unwrap();
            text
        }));
        Self { folder, authority, papers, child, stdin, log, ready }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A plain connection to one of its listeners.
    fn plain(&self, listener: &str) -> TcpStream {
        let mut words = self.ready.split_whitespace();
        let address = words.find_map(|word| word.strip_prefix(&format!("{listener}="))).unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// An encrypted one, of somebody with these papers.
    fn encrypted(&self, papers: Option<&Papers>) -> Client {
        let config = self.authority.client(papers);
        let connection =
            ClientConnection::new(config, ServerName::try_from("localhost").unwrap()).unwrap();
        Client { stream: StreamOwned::new(connection, self.plain("clients")), unread: Vec::new() }
    }

    /// Somebody who is trusted and has been welcomed.
    fn client(&self) -> Client {
        let mut client = self.encrypted(Some(&self.papers));
        let mut hello = Vec::new();
        protocol::write_hello(&mut hello, 0);
        client.send(&hello);
        assert!(matches!(client.reply(), Said::Welcome));
        client
    }

    fn metric(&self, name: &str) -> u64 {
        let mut stream = self.plain("metrics");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.unwrap_or_else(|| panic!("no {name} in {text}"))
    }

    /// Its memory, bytes.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() * 1024
    }

    /// Ends it, and gives what it said.
    fn end(mut self) -> String {
        self.stdin = None;
        assert!(self.child.wait().unwrap().success());
        self.log.take().unwrap().join().unwrap()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(said) = self.log.take().and_then(|log| log.join().ok()) {
            eprintln!("the replica said:\n{said}");
        }
    }
}

/// What a test wants of a reply.
#[derive(Debug, PartialEq)]
enum Said {
    Welcome,
    Results(Vec<Status>),
    Refused(u64, Why),
    Full(bool),
    /// The connection has ended.
    End,
}

/// An encrypted connection.
struct Client {
    stream: StreamOwned<ClientConnection, TcpStream>,
    unread: Vec<u8>,
}

impl Client {
    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
        self.stream.flush().unwrap();
    }

    fn reply(&mut self) -> Said {
        let mut chunk = [0; 16 << 10];
        loop {
            if let Some(frame) = next_frame(&self.unread).unwrap() {
                let said = match read_reply(frame.payload).unwrap() {
                    Reply::Welcome(_) => Said::Welcome,
                    Reply::Results { results, .. } => Said::Results(
                        results.iter().map(|it| ResultReader::read(it).unwrap().status).collect(),
                    ),
                    Reply::Refused { number, why, .. } => Said::Refused(number, why),
                    Reply::State(state) => Said::Full(state.is_disk_full),
                    Reply::Part { .. } | Reply::Digest(_) | Reply::Voters(_) => {
                        panic!("nobody asked for it")
                    }
                };
                self.unread.drain(..frame.used);
                return said;
            }
            match self.stream.read(&mut chunk) {
                Ok(0) | Err(_) => return Said::End,
                Ok(count) => self.unread.extend_from_slice(&chunk[..count]),
            }
        }
    }

    fn store(&mut self, client: u64, sequence: u64) -> Said {
        self.send(&submission(&[(client, sequence)]));
        self.reply()
    }

    fn is_disk_full(&mut self) -> bool {
        let mut question = Vec::new();
        protocol::write_status_request(&mut question);
        self.send(&question);
        self.reply() == Said::Full(true)
    }
}

/// Transactions of clients, each a store of its sequence.
fn submission(of: &[(u64, u64)]) -> Vec<u8> {
    let (mut bytes, mut out) = (Vec::new(), Vec::new());
    group::begin(&mut bytes, 0);
    for (client, sequence) in of {
        group::push(&mut bytes, 0, *client, *sequence, |out| {
            let value = Literal::Integer(sequence.cast_signed());
            Composer::begin(out, &[&client.to_le_bytes()]).put(0, &[b"x"], value);
        });
    }
    protocol::write_submit(&mut out, 1, &bytes);
    out
}

fn done() -> Said {
    Said::Results(vec![Status::Done])
}

/// Claim: whoever shows no certificate, one of another authority or one that has expired gets no answer, at the listener for
/// clients; at that for replicas nobody gets one who says anything else than a replica does. Each reason is counted by its
/// name, and whoever is trusted is served before, between and after.
fn strangers_are_refused() {
    let replica = Replica::start(&[]);
    let mut trusted = replica.client();
    assert_eq!(trusted.store(1, 1), done());
    let others = Authority::new("others").papers(4000);
    let same_name = Authority::new("ours").papers(4000);
    let expired = replica.authority.papers(2002);
    for papers in [None, Some(&others), Some(&same_name), Some(&expired)] {
        let mut stranger = replica.encrypted(papers);
        let mut hello = Vec::new();
        protocol::write_hello(&mut hello, 0);
        // Its own side stands before the other has seen its certificate.
        let _ = stranger.stream.write_all(&hello);
        assert_eq!(stranger.reply(), Said::End);
    }
    for listener in ["clients", "peers"] {
        for garbage in [&[0xff; 4000][..], b"GET / HTTP/1.1\r\n\r\n", &[0; 100]] {
            let mut stream = replica.plain(listener);
            let _ = stream.write_all(garbage);
            // An alert or a reset.
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            assert!(answer.len() < 20, "{answer:?}");
        }
    }
    // Trusted, and no replica.
    let config = replica.authority.client(Some(&replica.papers));
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(config, name).unwrap();
    let stream = StreamOwned::new(connection, replica.plain("peers"));
    let mut peer = Client { stream, unread: Vec::new() };
    peer.send(&submission(&[(1, 2)]));
    assert_eq!(peer.reply(), Said::End);
    assert_eq!(trusted.store(1, 2), done());
    assert_eq!(replica.client().store(2, 1), done());
    let said = replica.end();
    for line in [
        "not trusted: no certificate: 1",
        "not trusted: certificate of an unknown authority: 1",
        "not trusted: certificate with a wrong signature: 1",
        "not trusted: certificate expired: 1",
        "not trusted: not the protocol: 6",
    ] {
        assert!(said.lines().any(|it| it == line), "no `{line}` in\n{said}");
    }
}

/// Claim: an oversized frame, garbage, lengths that cannot be, and requests before the greeting are refused as malformed and
/// end their connection; a client that nobody knows is a new one, and what it sends too late is said to be; what was
/// announced and did not come takes no memory.
fn bad_frames_end_their_connection() {
    let replica = Replica::start(&[]);
    let mut trusted = replica.client();
    assert_eq!(trusted.store(7, 5), done());
    assert_eq!(trusted.store(7, 4), Said::Results(vec![Status::TooLate]));
    let one_too_long = u32::try_from(REQUEST_BYTES_MAX + 1).unwrap().to_le_bytes().to_vec();
    let mut long_group = submission(&[(7, 6)]);
    // The number of transactions that it says it has.
    long_group[4 + 1 + 8 + 8] = 0xff;
    let mut nothing = Vec::new();
    write_frame(&mut nothing, |_| {});
    let mut no_request = Vec::new();
    write_frame(&mut no_request, |out| out.extend_from_slice(&[0xee; 100]));
    let mut random = 0x9e37_79b9_u64;
    let garbage: Vec<u8> = std::iter::repeat_with(|| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 56).to_le_bytes()[0]
    })
    .take(10_000)
    .collect();
    let cases =
        [one_too_long, vec![0xff; 4], long_group, nothing, no_request, vec![0xff; 64], garbage];
    let malformed = Said::Refused(0, Why::Malformed);
    for (number, case) in cases.iter().enumerate() {
        let mut client = replica.client();
        let _ = client.stream.write_all(case);
        assert_eq!(client.reply(), malformed, "case {number}");
        assert_eq!(client.reply(), Said::End, "case {number}");
    }
    let mut rude = replica.encrypted(Some(&replica.papers));
    rude.send(&submission(&[(7, 6)]));
    assert_eq!((rude.reply(), rude.reply()), (malformed, Said::End), "it has not said hello");
    let count = u64::try_from(cases.len()).unwrap() + 1;
    assert_eq!(replica.metric("kv_malformed_total "), count);

    let announced = u32::try_from(REQUEST_BYTES_MAX).unwrap().to_le_bytes();
    let before = replica.memory();
    let mut announcing: Vec<Client> = (0..64).map(|_| replica.client()).collect();
    for client in &mut announcing {
        client.send(&announced);
        client.send(&[2; 1000]);
    }
    assert_eq!(trusted.store(7, 6), done());
    let grown = replica.memory().saturating_sub(before);
    assert!(grown < 8 << 20, "{grown} bytes for 64 that announced 4 MiB each");
    drop(announcing);
    assert_eq!(replica.client().store(8, 1), done(), "a client that nobody knows is new");
    assert!(replica.end().contains("8 malformed"));
}

/// Claim: small requests for much are answered within bounds: reads that are too many together get a refusal that says so,
/// and one that does not take its answers is cut off; memory does not follow what was asked.
fn what_is_asked_for_is_bounded() {
    let replica = Replica::start(&[]);
    let mut trusted = replica.client();
    let value = vec![7; 700 << 10];
    let mut bytes = Vec::new();
    group::begin(&mut bytes, 0);
    group::push(&mut bytes, 0, 1, 1, |out| {
        Composer::begin(out, &[b"t"]).put(0, &[b"long"], Literal::Bytes(&value));
    });
    let mut out = Vec::new();
    protocol::write_submit(&mut out, 1, &bytes);
    trusted.send(&out);
    assert_eq!(trusted.reply(), done());
    // Each of a thousand reads of one request would give 700 KiB.
    let mut read = Vec::new();
    Composer::begin(&mut read, &[b"t"]).get(0, &[b"long"]);
    let mut reads = Vec::new();
    for _ in 0..1000 {
        reads.extend_from_slice(&u32::try_from(read.len()).unwrap().to_le_bytes());
        reads.extend_from_slice(&read);
    }
    let mut request = Vec::new();
    protocol::write_read(&mut request, 9, 1000, &reads);
    let before = replica.memory();
    let mut greedy = replica.client();
    greedy.send(&request);
    let mut statuses = Vec::new();
    while statuses.len() < 1000 {
        match greedy.reply() {
            Said::Results(more) => statuses.extend(more),
            other => panic!("{other:?}"),
        }
    }
    let given = statuses.iter().filter(|status| **status == Status::Done).count();
    assert!((40..60).contains(&given), "{given} of 700 KiB are 32 MiB");
    assert!(statuses[given..].iter().all(|status| *status == Status::ResultTooLong));
    // The same as a group for the log, from somebody who takes none of it: 3,000 answers of 700 KiB.
    let mut bytes = Vec::new();
    group::begin(&mut bytes, 0);
    for sequence in 2..3002 {
        group::push(&mut bytes, 0, 1, sequence, |out| {
            Composer::begin(out, &[b"t"]).get(0, &[b"long"]);
        });
    }
    let mut out = Vec::new();
    protocol::write_submit(&mut out, 2, &bytes);
    greedy.send(&out);
    assert_eq!(trusted.store(2, 1), done(), "others are served");
    while greedy.reply() != Said::End {}
    assert_eq!(replica.metric("kv_cut_off_total "), 1);
    let grown = replica.memory().saturating_sub(before);
    assert!(grown < 160 << 20, "{grown} bytes");
    assert_eq!(trusted.store(2, 2), done());
    replica.end();
}

/// Claim: who takes his time with the handshake has as long as is allowed and no longer, byte for byte; others are served.
fn slow_handshakes_are_given_up() {
    let replica = Replica::start(&["--handshake-ms=700"]);
    let mut trusted = replica.client();
    let mut slow = replica.plain("clients");
    slow.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    // The head of a handshake, of which one byte comes at a time.
    let hello = [&[0x16, 3, 1, 1, 0, 1, 0, 0, 0xfc][..], &[3; 500]].concat();
    let ended = hello.iter().any(|byte| {
        let is_gone = slow.write_all(&[*byte]).is_err();
        // Waits for 20 ms, unless it is closed.
        let end = slow.read(&mut [0; 64]);
        is_gone || matches!(end, Ok(0)) || end.is_err_and(|error| error.raw_os_error() == Some(104))
    });
    assert!(ended, "it was given ten seconds");
    assert_eq!(trusted.store(1, 1), done());
    let said = replica.end();
    assert!(said.contains(" 1 that did not come to stand in time"), "{said}");
}

/// Claim: ten thousand connections that say nothing cost less memory each than is documented, and nobody is kept out by
/// them, neither who is there nor who comes; those who were made sure of and then say nothing, too.
fn silent_connections_cost_little() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let files = usize::try_from(limit.maximum.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let count = SILENT.min(files.saturating_sub(1000));
    assert!(count > 1000, "this host allows {files} open files: raise ulimit -n");
    let replica = Replica::start(&["--handshake-ms=60000"]);
    let mut trusted = replica.client();
    assert_eq!(trusted.store(1, 1), done());
    let before = replica.memory();
    let mut silent: Vec<TcpStream> = Vec::new();
    for index in 0..count {
        silent.push(replica.plain("clients"));
        if index % 1000 == 0 {
            assert_eq!(trusted.store(1, 2 + u64::try_from(index).unwrap()), done(), "{index}");
        }
    }
    // All have been accepted once one that came after them is served.
    assert_eq!(replica.client().store(2, 1), done());
    let grown = replica.memory().saturating_sub(before);
    let each = grown / u64::try_from(count).unwrap();
    println!("  {count} silent connections: {each} bytes each");
    assert!(each <= SILENT_BYTES_MAX, "{each} bytes each");
    drop(silent);
    let before = replica.memory();
    let idle: Vec<Client> = (0..500).map(|_| replica.client()).collect();
    assert_eq!(trusted.store(1, 1_000_000), done());
    let each = replica.memory().saturating_sub(before) / 500;
    println!("  500 that were made sure of: {each} bytes each");
    assert!(each <= IDLE_BYTES_MAX, "{each} bytes each");
    drop(idle);
    assert_eq!(replica.client().store(2, 2), done());
    replica.end();

    // With few places those who do not come to stand make room, and those for others are not taken.
    let replica = Replica::start(&["--connections-max=40"]);
    let mut trusted = replica.client();
    let silent: Vec<TcpStream> = (0..200).map(|_| replica.plain("clients")).collect();
    assert_eq!(replica.client().store(2, 1), done());
    assert_eq!(trusted.store(1, 1), done());
    assert_eq!(replica.metric("kv_position_total "), 2);
    drop(silent);
    let said = replica.end();
    assert!(said.contains(" 0 refused as too many, 18"), "{said}");
}

/// Claim: a replica whose disk is full says so in its log, its metrics and its state, acknowledges nothing that needs room
/// meanwhile, and all that waited once there is some.
fn a_full_disk_is_waited_for() {
    if !rustix::process::geteuid().is_root() {
        println!("  SKIPPED: a disk that can be filled takes root");
        return;
    }
    let replica = Replica::start_on(Some("96m"), &["--segment-bytes=8388608"]);
    let (mut trusted, mut other) = (replica.client(), replica.client());
    assert_eq!(trusted.store(1, 1), done());
    // Its file system is its own; this is how others get there.
    let seen = format!("/proc/{}/root{}", replica.child.id(), replica.data().display());
    let ballast = Path::new(&seen).join("ballast");
    let mut file = std::fs::File::create(&ballast).unwrap();
    while file.write_all(&[1; 64 << 10]).is_ok() {}
    while file.write_all(&[1]).is_ok() {}
    assert!(!other.is_disk_full(), "its log has room that was taken before");
    let value = vec![7; 512 << 10];
    for sequence in 2..62 {
        let mut bytes = Vec::new();
        group::begin(&mut bytes, 0);
        group::push(&mut bytes, 0, 1, sequence, |out| {
            Composer::begin(out, &[b"t"]).put(0, &[b"x"], Literal::Bytes(&value));
        });
        let mut out = Vec::new();
        protocol::write_submit(&mut out, sequence, &bytes);
        trusted.send(&out);
    }
    let mut looks = 0;
    while !other.is_disk_full() {
        looks += 1;
        assert!(looks < 4000, "it never says that its disk is full");
        std::thread::sleep(Duration::from_millis(5));
    }
    let position = replica.metric("kv_position_total ");
    assert!((1..61).contains(&position), "{position} of 61 were acknowledged on a full disk");
    assert_eq!(replica.metric("kv_disk_full "), 1);
    assert!(replica.metric("kv_disk_full_total ") > 0);
    for _ in 2..=position {
        assert_eq!(trusted.reply(), done());
    }
    std::thread::sleep(Duration::from_millis(300));
    assert!(other.is_disk_full() && replica.metric("kv_position_total ") == position);
    std::fs::remove_file(&ballast).unwrap();
    drop(file);
    for _ in position..61 {
        assert_eq!(trusted.reply(), done());
    }
    assert!(!other.is_disk_full());
    assert_eq!(replica.metric("kv_disk_full "), 0);
    let said = replica.end();
    assert!(said.contains("the disk is full: nothing more is kept or acknowledged"), "{said}");
    assert!(said.contains("the disk has room again, after "), "{said}");
}
