//! A connection that never blocks, plain or encrypted: bytes in, bytes out, and what to poll for.
//!
//! It must never wait, and never hold more than TLS holds: one record on the way in, what its buffer takes on the way
//! out.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustls::ClientConnection;

use super::AskError;

/// How a connection is encrypted.
#[derive(Clone)]
pub struct Tls {
    /// Roots, versions, ALPN. Verification cannot be switched off here.
    pub config: Arc<rustls::ClientConfig>,
    /// The name that the certificate must carry.
    pub server_name: rustls::pki_types::ServerName<'static>,
}

/// The connection.
pub(super) struct Stream {
    tcp: TcpStream,
    tls: Option<Box<ClientConnection>>,
    is_connected: bool,
}

impl Stream {
    /// One that may still be under way: std's own would wait until it stands.
    pub(super) fn open(address: SocketAddr, tls: Option<&Tls>) -> Result<Self, AskError> {
        let tls = tls.map(|tls| ClientConnection::new(tls.config.clone(), tls.server_name.clone()));
        let tls = tls.transpose().map_err(AskError::Tls)?.map(Box::new);
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let tcp = rustix::net::socket_with(family, SocketType::STREAM, flags, None)
            .map_err(|error| AskError::Connect(error.into()))?;
        match rustix::net::connect(&tcp, &address) {
            Ok(()) | Err(Errno::INPROGRESS) => {
                let tcp = TcpStream::from(tcp);
                // A question is one write; what follows it waits for the answer.
                let _ = tcp.set_nodelay(true);
                Ok(Self { tcp, tls, is_connected: false })
            }
            Err(error) => Err(AskError::Connect(error.into())),
        }
    }

    /// Whether bytes of a question may be given to it: connected, and hands shaken.
    pub(super) fn is_open(&self) -> bool {
        self.is_connected && !self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Goes on with connecting and shaking hands. Gives whether it is open.
    pub(super) fn advance(&mut self) -> Result<bool, AskError> {
        if !self.is_connected {
            match self.tcp.take_error() {
                Ok(None) => {}
                Ok(Some(error)) | Err(error) => return Err(AskError::Connect(error)),
            }
            if self.tcp.peer_addr().is_err() {
                return Ok(false);
            }
            self.is_connected = true;
        }
        while !self.is_open() {
            self.flush().map_err(AskError::Lost)?;
            match self.receive() {
                Ok(0) => return Err(AskError::HandshakeClosed),
                Ok(_) => {}
                Err(AskError::Lost(error)) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        // The last of the handshake is ours to send.
        self.flush().map_err(AskError::Lost)?;
        Ok(true)
    }

    /// What to poll for; `has_more`: bytes of a question wait for room.
    pub(super) fn interest(&self, has_more: bool) -> (BorrowedFd<'_>, PollFlags) {
        let mut flags = PollFlags::IN;
        if !self.is_connected {
            flags = PollFlags::OUT;
        } else if self.is_open() && has_more
            || self.tls.as_ref().is_some_and(|tls| tls.wants_write())
        {
            flags |= PollFlags::OUT;
        }
        (self.tcp.as_fd(), flags)
    }

    /// Takes bytes of a question; `WouldBlock` when there is no room.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.tcp.write(bytes) };
        let taken = tls.writer().write(bytes)?;
        self.flush()?;
        match taken {
            0 => Err(ErrorKind::WouldBlock.into()),
            taken => Ok(taken),
        }
    }

    /// Sends what TLS holds, as far as there is room.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while tls.wants_write() {
            match tls.write_tls(&mut self.tcp) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes bytes of an answer. 0: the server has closed its side; `Lost(WouldBlock)`: nothing is there.
    pub(super) fn read(&mut self, into: &mut [u8]) -> Result<usize, AskError> {
        loop {
            let read = match &mut self.tls {
                Some(tls) => tls.reader().read(into),
                None => self.tcp.read(into),
            };
            match read {
                // Many servers end a TLS connection without saying so; the reader knows whether something is missing.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock && self.tls.is_some() => {
                    self.receive()?;
                }
                read => return read.map_err(AskError::Lost),
            }
        }
    }

    /// Whether decrypted bytes wait that no poll would tell of.
    pub(super) fn has_decrypted(&mut self) -> bool {
        let state = self.tls.as_mut().map(|tls| tls.process_new_packets());
        state.and_then(Result::ok).is_some_and(|state| state.plaintext_bytes_to_read() > 0)
    }

    /// Takes encrypted bytes from the socket and decrypts them. Gives how many there were.
    fn receive(&mut self) -> Result<usize, AskError> {
        let Some(tls) = &mut self.tls else { return Ok(0) };
        let read = loop {
            match tls.read_tls(&mut self.tcp) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read.map_err(AskError::Lost)?,
            }
        };
        if let Err(error) = tls.process_new_packets() {
            // The alert that says why, if there is room for it.
            let _ = tls.write_tls(&mut self.tcp);
            return Err(AskError::Tls(error));
        }
        Ok(read)
    }

    /// `TLS 1.3, TLS13_AES_256_GCM_SHA384`, or `plain`.
    pub(super) fn transport(&self) -> String {
        let Some(tls) = &self.tls else { return "plain".to_owned() };
        let version = match tls.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_2) => "TLS 1.2".to_owned(),
            Some(rustls::ProtocolVersion::TLSv1_3) => "TLS 1.3".to_owned(),
            other => format!("{other:?}"),
        };
        let suite = tls.negotiated_cipher_suite();
        suite.map_or(version.clone(), |suite| format!("{version}, {:?}", suite.suite()))
    }
}
