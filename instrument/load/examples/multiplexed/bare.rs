//! The same bytes without the engine: a server that does nothing, and a client that does nothing but move them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use clock::{Clock, CpuTime};
use rustls::{ClientConnection, ConnectionCommon, ServerConnection, SideData};

use crate::{ANSWER, REQUEST, certificate};

/// Read at once.
const BUFFER: usize = 64 << 10;

/// Bytes of a connection, encrypted or not.
trait Stream: Send {
    /// Plain bytes that have come, added to `plain`; whether the connection goes on.
    fn receive(&mut self, plain: &mut Vec<u8>) -> bool;
    fn send(&mut self, plain: &[u8]) -> bool;
}

struct Plain(TcpStream, Vec<u8>);

impl Stream for Plain {
    fn receive(&mut self, plain: &mut Vec<u8>) -> bool {
        match self.0.read(&mut self.1) {
            Ok(count @ 1..) => {
                plain.extend_from_slice(&self.1[..count]);
                true
            }
            _ => false,
        }
    }
    fn send(&mut self, plain: &[u8]) -> bool {
        self.0.write_all(plain).is_ok()
    }
}

struct Secure<C> {
    stream: TcpStream,
    tls: C,
    buffer: Vec<u8>,
    wire: Vec<u8>,
}

impl<C, D: SideData> Secure<C>
where
    C: std::ops::DerefMut<Target = ConnectionCommon<D>>,
{
    fn new(mut stream: TcpStream, mut tls: C) -> Self {
        while tls.is_handshaking() {
            tls.complete_io(&mut stream).expect("a handshake");
        }
        tls.set_buffer_limit(None);
        Self { stream, tls, buffer: vec![0; BUFFER], wire: Vec::new() }
    }
}

impl<C, D: SideData> Stream for Secure<C>
where
    C: std::ops::DerefMut<Target = ConnectionCommon<D>> + Send,
{
    fn receive(&mut self, plain: &mut Vec<u8>) -> bool {
        let Ok(count @ 1..) = self.stream.read(&mut self.buffer) else { return false };
        let mut wire = &self.buffer[..count];
        while !wire.is_empty() {
            let Ok(_) = self.tls.read_tls(&mut wire) else { return false };
            let Ok(state) = self.tls.process_new_packets() else { return false };
            let from = plain.len();
            plain.resize(from + state.plaintext_bytes_to_read(), 0);
            self.tls.reader().read_exact(&mut plain[from..]).expect("as many as were told");
        }
        true
    }
    fn send(&mut self, plain: &[u8]) -> bool {
        self.tls.writer().write_all(plain).expect("without a bound");
        self.wire.clear();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.wire).expect("memory");
        }
        self.stream.write_all(&self.wire).is_ok()
    }
}

/// Answers whatever comes until it is killed; a thread for each connection.
pub fn serve(port: u16, tls: Option<&str>) {
    let config = tls.map(certificate::server);
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
    println!("ready http={}", listener.local_addr().expect("bound"));
    for stream in listener.incoming().flatten() {
        let config = config.clone();
        std::thread::spawn(move || {
            stream.set_nodelay(true).expect("set");
            match config {
                None => answer(Plain(stream, vec![0; BUFFER])),
                Some(config) => {
                    answer(Secure::new(stream, ServerConnection::new(config).expect("made")));
                }
            }
        });
    }
}

fn answer(mut stream: impl Stream) {
    let (mut requests, mut answers) = (Vec::new(), Vec::new());
    while stream.receive(&mut requests) {
        let whole = requests.len() / REQUEST * REQUEST;
        for request in requests[..whole].chunks_exact(REQUEST) {
            answers.extend_from_slice(&request[..ANSWER]);
        }
        requests.drain(..whole);
        if !answers.is_empty() && !stream.send(&answers) {
            break;
        }
        answers.clear();
    }
}

/// Keeps `depth` requests outstanding on each connection, and prints what one costs.
pub fn load(address: SocketAddr, tls: Option<&str>, connections: u32, depth: u32, time: Duration) {
    let tls = tls.map(certificate::client);
    let mut streams: Vec<Box<dyn Stream>> = Vec::new();
    for _ in 0..connections {
        let stream = TcpStream::connect(address).expect("the server runs");
        stream.set_nodelay(true).expect("set");
        streams.push(match &tls {
            None => Box::new(Plain(stream, vec![0; BUFFER])),
            Some(tls) => {
                let config = Arc::clone(&tls.config);
                let session = ClientConnection::new(config, tls.server_name.clone());
                Box::new(Secure::new(stream, session.expect("made")))
            }
        });
    }
    let requests = vec![b'.'; REQUEST * depth as usize];
    let (clock, cpu) = (Clock::start(), CpuTime::of_this_thread());
    for stream in &mut streams {
        assert!(stream.send(&requests), "the server takes them");
    }
    let mut answers = vec![Vec::new(); streams.len()];
    let mut answered = 0_u64;
    let end = clock.now().plus(time);
    while clock.now() < end {
        for (stream, answers) in streams.iter_mut().zip(&mut answers) {
            assert!(stream.receive(answers), "the server goes on");
            let whole = answers.len() / ANSWER;
            answers.drain(..whole * ANSWER);
            answered += whole as u64;
            assert!(stream.send(&requests[..whole * REQUEST]), "the server takes them");
        }
    }
    let cpu = CpuTime::of_this_thread().since(cpu);
    let each = cpu.as_secs_f64() * 1e6 / answered as f64;
    let per_second = answered as f64 / time.as_secs_f64();
    println!("transactions={answered} per_second={per_second:.0} us={each:.4}");
}
