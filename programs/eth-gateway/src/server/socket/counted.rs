//! A stream whose bytes hold memory from when they come until their message is whole.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{READ_BYTES, RPC_BYTES_MAX};
use crate::memory::Held;

/// A message with the heads of its fragments.
const COMING_BYTES_MAX: usize = 2 * RPC_BYTES_MAX;

/// The memory of what came and is no whole message yet.
#[derive(Clone)]
pub struct Coming(Arc<Mutex<Held>>);

impl Coming {
    pub fn new(held: Held) -> Self {
        Self(Arc::new(Mutex::new(held)))
    }

    pub fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See the module. Reading fails where a message finds no room.
pub struct Counted<S> {
    stream: S,
    coming: Coming,
}

impl<S> Counted<S> {
    pub fn new(stream: S, coming: &Coming) -> Self {
        Self { stream, coming: coming.clone() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let mut held = self.coming.held();
        let is_full = held.grow(buffer.filled().len() - before).is_err();
        // A small one may come whole, and is answered that there is no room.
        if is_full && held.bytes() > READ_BYTES || held.bytes() > COMING_BYTES_MAX {
            return Poll::Ready(Err(io::Error::other("there is no room for the message")));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
