//! A server that we did not write: sessions driven over blocking sockets against nginx, if it is installed.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use model::Seed;
use sut::{Link, Mark, Marks, Role, System as _, Transaction};

use super::built;
use crate::server::HttpSystem;

/// nginx in the foreground, killed at the end.
struct Nginx {
    child: Child,
    address: SocketAddr,
}

impl Nginx {
    /// `None`, said by name, if it is not installed.
    fn start(folder: &Path) -> Option<Self> {
        // An address of loopback that is this process's own, so that nobody else is given the free port.
        let [.., high, low] = std::process::id().to_be_bytes();
        let own = Ipv4Addr::new(127, 83, high, low);
        let address = TcpListener::bind((own, 0)).unwrap().local_addr().unwrap();
        let here = folder.display();
        let config = format!(
            "daemon off; worker_processes 1; pid {here}/pid; error_log {here}/error.log;
             events {{ worker_connections 64; }}
             http {{ access_log off; client_body_temp_path {here}/body; proxy_temp_path {here}/proxy;
               fastcgi_temp_path {here}/fastcgi; uwsgi_temp_path {here}/uwsgi; scgi_temp_path {here}/scgi;
               server {{ listen {address}; root {here}; keepalive_requests 5; gzip on; gzip_min_length 1;
                 location = /limited {{ return 429; }} location = /busy {{ return 503; }}
                 location = /moved {{ return 302 /page.html; }} }} }}"
        );
        fs::write(folder.join("nginx.conf"), config).unwrap();
        fs::write(folder.join("page.html"), "<p>".repeat(1000)).unwrap();
        let program =
            ["/usr/sbin/nginx", "/usr/bin/nginx"].into_iter().find(|p| Path::new(p).exists());
        let Some(program) = program else {
            eprintln!("SKIPPED http-adapter against nginx: nginx is not installed");
            return None;
        };
        let child = Command::new(program)
            .args(["-c", &format!("{here}/nginx.conf"), "-p", &here.to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let nginx = Self { child, address };
        nginx.wait();
        Some(nginx)
    }

    /// Until it listens, up to 10 s.
    fn wait(&self) {
        let clock = clock::Clock::start();
        let deadline = clock.now().plus(Duration::from_secs(10));
        while TcpStream::connect(self.address).is_err() {
            assert!(clock.now() < deadline, "nginx does not listen");
            clock.sleep_until(clock.now().plus(Duration::from_millis(5)));
        }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // SIGTERM, so that the master takes its worker with it.
        let stop = Command::new("kill").arg(self.child.id().to_string()).status();
        assert!(stop.is_ok_and(|status| status.success()) || std::thread::panicking());
        self.child.wait().expect("nginx is our child");
    }
}

/// Sends `count` transactions one after another and gives what each came to.
fn drive(system: &HttpSystem, count: u64) -> Vec<String> {
    let deployment = system.attach(clock::Clock::start()).unwrap();
    let mut source = system.workload(Seed(1), 0, 1);
    let Link::Wire(endpoint, mut session) = system.connect(&deployment, Role::Submit, 0).unwrap()
    else {
        panic!("HTTP goes over the wire");
    };
    let connect = || {
        let stream = TcpStream::connect(endpoint.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    };
    let (mut stream, mut received, mut found) = (connect(), Vec::new(), Vec::new());
    for id in 0..count {
        let (mut payload, mut out, mut marks) = (Vec::new(), Vec::new(), Marks::default());
        let kind = source.next(id, None, &mut payload).kind;
        session.submit(&Transaction::new(id, kind, &payload), &mut out);
        stream.write_all(&out).unwrap();
        while marks.list().is_empty() {
            let mut piece = [0; 1000];
            let count = stream.read(&mut piece).unwrap();
            assert!(count > 0, "nginx closed the connection without saying so");
            received.extend_from_slice(&piece[..count]);
            let used = session.receive(&received, &mut Vec::new(), &mut marks).unwrap();
            received.drain(..used);
        }
        found.extend(marks.list().iter().map(|mark| match mark {
            Mark::Reached { code, bytes_in, .. } => {
                format!("{} {code} {bytes_in}", system.kinds()[kind as usize].name)
            }
            Mark::Ended { answer, .. } => format!(
                "{} {} {}",
                system.kinds()[kind as usize].name,
                answer.outcome,
                marks.text(answer)
            ),
        }));
        if marks.wants_close() {
            session.reset();
            received.clear();
            stream = connect();
        }
    }
    found
}

/// Claim: nginx's answers (length, chunked, HEAD, redirect, errors, a connection closed after five requests)
/// are read as what they are, round after round, and the preflight pass names the target that is missing.
#[test]
fn nginx_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    let Some(nginx) = Nginx::start(folder.path()) else { return };
    let url = format!("http://{}", nginx.address);
    let targets = format!(
        "GET {url}/page.html\n\nHEAD {url}/page.html\n\nGET {url}/missing\n\nGET {url}/limited\n\nGET {url}/busy\n\nGET {url}/moved\n\nGET {url}/page.html\nAccept-Encoding: gzip\n"
    );
    fs::write(folder.path().join("targets.txt"), targets).unwrap();
    let system =
        built("{}", r#"{"kind":"targets","targets":"targets.txt"}"#, folder.path()).unwrap();
    let findings = system.preflight(&system.attach(clock::Clock::start()).unwrap()).unwrap();
    let bad: Vec<_> =
        findings.iter().filter(|f| !f.ok).map(|f| format!("{} {}", f.kind, f.detail)).collect();
    assert_eq!(bad, ["GET /missing 404 Not Found"]);
    let found = drive(&system, 70);
    for round in found.chunks(7) {
        assert_eq!(round[0], "GET /page.html 200 3000");
        assert_eq!(round[1], "HEAD /page.html 200 0");
        assert_eq!(round[2], "GET /missing rejected(bad_request) 404 Not Found");
        assert_eq!(round[3], "GET /limited rejected(limited) 429 Too Many Requests");
        assert_eq!(round[4], "GET /busy rejected(overloaded) 503 Service Temporarily Unavailable");
        assert!(round[5].starts_with("GET /moved 302 "), "{}", round[5]);
        let gzipped: u32 = round[6].strip_prefix("GET /page.html 200 ").unwrap().parse().unwrap();
        assert!((10..1000).contains(&gzipped), "{gzipped} bytes, chunked");
    }
}
