//! Questions to a server beside the load: over a connection of their own that blocks, never used while transactions are timed.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub use clock::Clock;
use clock::Instant;
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

/// The longest that an answer may take from its question to its last byte, however it is cut: twice the longest silence that
/// an adapter grants a server.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// The most bytes that may come in answer to one question: twice the largest that an adapter asks for, values of 64 MiB.
const ANSWER_BYTES_MAX: usize = 128 << 20;

/// A connection for questions, and the bytes that came on it and are not used yet.
#[derive(Debug)]
pub struct Asker<S = TcpStream> {
    stream: S,
    clock: Clock,
    unread: Vec<u8>,
    used: usize,
    /// The time by which the awaited answer is to be there, and the bytes that came of it.
    due: Instant,
    taken: usize,
    /// The bounds of an answer; a test has others.
    within: Duration,
    bytes_max: usize,
}

impl<S: Read + Write> Asker<S> {
    /// The stream bounds each silence; an answer as a whole is bounded here, by `clock`.
    pub fn new(stream: S, clock: Clock) -> Self {
        let (within, bytes_max) = (ANSWER_WITHIN, ANSWER_BYTES_MAX);
        let (unread, due) = (Vec::new(), clock.now().plus(within));
        Self { stream, clock, unread, used: 0, due, taken: 0, within, bytes_max }
    }

    /// The stream itself.
    pub const fn stream(&self) -> &S {
        &self.stream
    }

    /// Sends all of `bytes`, a question: its answer is waited for from now on.
    ///
    /// # Errors
    /// Those of the stream; `TimedOut` where the peer takes the bytes too slowly.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.go_on();
        self.say(bytes)
    }

    /// Sends all of `bytes`, no question: the answer that is waited for is due when it was.
    ///
    /// # Errors
    /// As [`Asker::send`].
    pub fn say(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.in_time()?;
            match self.stream.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.stream.flush()
    }

    /// One more answer to the question is waited for, from now on, where it has several.
    pub fn go_on(&mut self) {
        self.due = self.clock.now().plus(self.within);
        self.taken = 0;
    }

    fn in_time(&self) -> io::Result<()> {
        if self.clock.now() < self.due {
            return Ok(());
        }
        let words = format!("expected a whole answer within {:?}, got a part of it", self.within);
        Err(io::Error::new(io::ErrorKind::TimedOut, words))
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
    /// Those of the stream; `UnexpectedEof` where the peer has closed it, `TimedOut` and `InvalidData` where the answer is not
    /// whole in time or within its bytes.
    pub fn read(&mut self) -> io::Result<()> {
        self.in_time()?;
        if self.taken > self.bytes_max {
            let words = format!("expected an answer of at most {} bytes, got more", self.bytes_max);
            return Err(io::Error::new(io::ErrorKind::InvalidData, words));
        }
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
                self.taken += count;
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
    use clock::{Hand, WallTime};
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
        let mut asker = Asker::new(Dripping(io::Cursor::new(answers), Vec::new()), Clock::start());
        for answer in [&b"first"[..], b"", b"third"] {
            assert_eq!(asker.ask(|out| out.push(b'?')).unwrap(), answer);
        }
        let error = asker.ask(|_| {}).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(asker.stream.1, b"???");
    }

    /// A peer that takes and gives a byte each second, without end.
    struct Endless(Hand);

    impl Endless {
        fn wait(&mut self) {
            let later = self.0.now().plus(Duration::from_secs(1));
            self.0.move_to(later);
        }
    }

    impl Read for Endless {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.wait();
            into[0] = 0;
            Ok(1)
        }
    }

    impl Write for Endless {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.wait();
            Ok(bytes.len().min(1))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// One of such a peer, with these bounds.
    fn endless(within: Duration, bytes_max: usize) -> Asker<Endless> {
        let (clock, hand) = Clock::by_hand(Instant::ZERO, WallTime::default());
        Asker { within, bytes_max, ..Asker::new(Endless(hand), clock) }
    }

    /// Reads on until an error, and gives how often and that.
    fn read_out(asker: &mut Asker<Endless>) -> (u32, io::Error) {
        let mut reads = 0;
        loop {
            match asker.read() {
                Ok(()) => reads += 1,
                Err(error) => return (reads, error),
            }
            assert!(reads < 1_000, "it reads on without end");
        }
    }

    /// Claim: an answer that drips is given up when its time is over, which the error names; each question has its own time,
    /// and what is said beside it gives the answer none.
    #[test]
    fn an_answer_is_bounded_in_time() {
        let mut asker = endless(Duration::from_secs(20), usize::MAX);
        for _ in 0..2 {
            asker.send(b"?").unwrap();
            let (reads, error) = read_out(&mut asker);
            assert_eq!((reads, error.kind()), (19, io::ErrorKind::TimedOut));
            assert!(error.to_string().contains("within 20s"), "{error}");
        }
        asker.go_on();
        asker.say(&[b'!'; 15]).unwrap();
        assert_eq!(read_out(&mut asker).0, 5);
        assert_eq!(asker.send(&[b'?'; 30]).unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    /// Claim: an answer of more bytes than may be is given up, which the error names, also where all of them are used.
    #[test]
    fn an_answer_is_bounded_in_bytes() {
        let mut asker = endless(Duration::MAX, 10);
        asker.send(b"?").unwrap();
        let (reads, error) = read_out(&mut asker);
        assert_eq!((reads, error.kind()), (11, io::ErrorKind::InvalidData));
        assert!(error.to_string().contains("at most 10 bytes"), "{error}");
        asker.go_on();
        for _ in 0..11 {
            asker.read().unwrap();
            asker.skip(asker.unread().len());
        }
        assert!(asker.read().is_err());
    }
}
