//! A connection whose client must go on reading: what is written and not taken for too long cuts it off. And one that is
//! closed on a client that still sends: it is told why, because what is unread at the close would take the answer away
//! (RFC 9112, 9.6).

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep, timeout};

/// How long, and for how many bytes, a client is listened to that was refused.
const LINGER_MAX: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: u64 = 1 << 20;
/// So many connections linger at once; others are just closed.
const LINGERING_MAX: usize = 256;
static LINGERING: AtomicUsize = AtomicUsize::new(0);

/// See the module.
pub struct Paced {
    /// Absent only while it is dropped.
    stream: Option<TcpStream>,
    stalled_max: Duration,
    /// Runs while nothing can be written.
    stalled: Option<Pin<Box<Sleep>>>,
    lingers: Arc<AtomicBool>,
}

impl Paced {
    pub fn new(stream: TcpStream, stalled_max: Duration) -> Self {
        Self { stream: Some(stream), stalled_max, stalled: None, lingers: Arc::default() }
    }

    /// Set where a client was refused that may still be sending.
    pub fn lingers(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.lingers)
    }

    fn stream(&mut self) -> Pin<&mut TcpStream> {
        Pin::new(self.stream.as_mut().expect("it is there until it is dropped"))
    }

    fn written(
        &mut self,
        context: &mut Context<'_>,
        done: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if done.is_ready() {
            self.stalled = None;
            return done;
        }
        let stalled_max = self.stalled_max;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(stalled_max)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads nothing")))
    }
}

impl Drop for Paced {
    fn drop(&mut self) {
        let Some(stream) = self.stream.take().filter(|_| self.lingers.load(Relaxed)) else {
            return;
        };
        if LINGERING.fetch_add(1, Relaxed) < LINGERING_MAX {
            tokio::spawn(async move {
                let _ = timeout(LINGER_MAX, listen_to_the_end(stream)).await;
                LINGERING.fetch_sub(1, Relaxed);
            });
        } else {
            LINGERING.fetch_sub(1, Relaxed);
        }
    }
}

/// Reads and forgets what a client sends until it has the answer and ends.
async fn listen_to_the_end(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(LINGER_BYTES_MAX), &mut tokio::io::sink()).await.map(drop)
}

impl AsyncRead for Paced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(context, buffer)
    }
}

impl AsyncWrite for Paced {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = self.stream().poll_write(context, bytes);
        self.written(context, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = self.stream().poll_write_vectored(context, slices);
        self.written(context, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(context)
    }
}
