//! A sink: one thread, epoll, one read and one write for what has come, 90 bytes for each request head.

use std::net::TcpListener;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::net::{RecvFlags, SendFlags, recv, send};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\nServer: sink    \r\n\r\nhello, world";

/// Serves until it is killed.
pub fn run(port: u16) {
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
    let poll = epoll::create(CreateFlags::CLOEXEC).expect("epoll");
    epoll::add(&poll, listener.as_fd(), EventData::new_u64(u64::MAX), EventFlags::IN)
        .expect("added");
    let mut connections: Vec<Option<OwnedFd>> = Vec::new();
    let mut events: Vec<Event> = Vec::with_capacity(256);
    let mut buffer = vec![0; 64 * 1024];
    let answers = ANSWER.repeat(4096);
    loop {
        events.clear();
        if epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None).is_err() {
            continue;
        }
        for event in &events {
            let data = event.data.u64();
            if data == u64::MAX {
                let (stream, _) = listener.accept().expect("accepted");
                stream.set_nodelay(true).expect("set");
                stream.set_nonblocking(true).expect("set");
                let slot = stream.as_raw_fd() as usize;
                epoll::add(&poll, &stream, EventData::new_u64(slot as u64), EventFlags::IN)
                    .expect("added");
                if connections.len() <= slot {
                    connections.resize_with(slot + 1, || None);
                }
                connections[slot] = Some(stream.into());
                continue;
            }
            let slot = usize::try_from(data).expect("a slot");
            let Some(connection) = &connections[slot] else { continue };
            let requests = match recv(connection, &mut *buffer, RecvFlags::empty()) {
                Ok((length, _)) if length > 0 => {
                    buffer[..length].iter().filter(|byte| **byte == b'\n').count() / 3
                }
                Err(rustix::io::Errno::AGAIN) => continue,
                _ => {
                    connections[slot] = None;
                    continue;
                }
            };
            let _ = send(connection, &answers[..requests * ANSWER.len()], SendFlags::NOSIGNAL);
        }
    }
}
