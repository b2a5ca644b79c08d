//! Questions to a server beside the load: over a connection of their own that blocks, never used while transactions are timed.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use wire::frames::{LENGTH_BYTES, next_frame};

/// Connects to `server`. Connecting takes no longer than `patience`, and so does each reading and each writing.
///
/// # Errors
/// Those of the system.
pub fn connect(server: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&server, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A connection for questions, and the bytes that came on it and are not used yet.
#[derive(Debug)]
pub struct Asker<S = TcpStream> {
    stream: S,
    unread: Vec<u8>,
    used: usize,
}

impl<S: Read + Write> Asker<S> {
    /// The stream bounds how long an answer is waited for.
    pub const fn new(stream: S) -> Self {
        Self { stream, unread: Vec::new(), used: 0 }
    }

    /// The stream itself.
    pub const fn stream(&self) -> &S {
        &self.stream
    }

    /// Sends all of `bytes`.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// The bytes that came and are not used yet.
    #[must_use]
    pub fn unread(&self) -> &[u8] {
        &self.unread[self.used..]
    }

    /// Says that the first `count` of the unread bytes are used.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn skip(&mut self, count: usize) {
        assert!(count <= self.unread().len(), "used {count} bytes, more than have come");
        self.used += count;
    }

    /// Waits for more bytes.
    ///
    /// # Errors
    /// Those of the stream; `UnexpectedEof` where the peer has closed it.
    pub fn read(&mut self) -> io::Result<()> {
        self.unread.drain(..self.used);
        self.used = 0;
        let mut chunk = [0; 64 << 10];
        match self.stream.read(&mut chunk)? {
            0 => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the peer closed the connection before it answered",
            )),
            count => {
                self.unread.extend_from_slice(&chunk[..count]);
                Ok(())
            }
        }
    }

    /// Sends the frames that `write` appends; gives the payload of the next frame that comes.
    ///
    /// # Errors
    /// Those of [`Asker::read`]; bytes that are no frame.
    pub fn ask(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<&[u8]> {
        let mut question = Vec::new();
        write(&mut question);
        self.send(&question)?;
        loop {
            if let Some(frame) = next_frame(self.unread()).map_err(io::Error::other)? {
                let length = frame.used;
                self.skip(length);
                return Ok(&self.unread[self.used - length + LENGTH_BYTES..self.used]);
            }
            self.read()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use wire::frames::write_frame;

    use super::*;

    /// A peer whose answers come a few bytes at a time; it closes the connection after them.
    struct Dripping(io::Cursor<Vec<u8>>, Vec<u8>);

    impl Read for Dripping {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let bytes = into.len().min(3);
            self.0.read(&mut into[..bytes])
        }
    }

    impl Write for Dripping {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Claim: each question has the answer that comes next, however that is cut, and a peer that closes first is told.
    #[test]
    fn questions_have_their_answers() {
        let mut answers = Vec::new();
        for answer in [&b"first"[..], b"", b"third"] {
            write_frame(&mut answers, |out| out.extend_from_slice(answer));
        }
        answers.push(9);
        let mut asker = Asker::new(Dripping(io::Cursor::new(answers), Vec::new()));
        for answer in [&b"first"[..], b"", b"third"] {
            assert_eq!(asker.ask(|out| out.push(b'?')).unwrap(), answer);
        }
        let error = asker.ask(|_| {}).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(asker.stream.1, b"???");
    }
}
