//! Ways in which a node fails.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::Response;
use hyper::body::{Body, Frame};

/// What the node does instead of answering, or with every answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// It takes the request and never answers.
    Hang,
    /// It answers after 3 seconds.
    Slow,
    /// It answers bytes that are no JSON, with status 200.
    Garbage,
    /// It answers as a proxy in front of it does: status 503 and a page.
    Html,
    /// It answers a gigabyte.
    Huge,
    /// It ends the connection in the middle of an answer.
    Reset,
    /// It answers every call with an internal error.
    Error,
    /// Its limiter lets nothing pass.
    Limited,
}

const NAMED: [(&str, Fault); 9] = [
    ("none", Fault::None),
    ("hang", Fault::Hang),
    ("slow", Fault::Slow),
    ("garbage", Fault::Garbage),
    ("html", Fault::Html),
    ("huge", Fault::Huge),
    ("reset", Fault::Reset),
    ("error", Fault::Error),
    ("limited", Fault::Limited),
];

/// How large the huge answer is.
const HUGE_BYTES: u64 = 1 << 30;
const SLOW: Duration = Duration::from_secs(3);

impl Fault {
    pub fn named(name: &str) -> Option<Self> {
        NAMED.iter().find(|(known, _)| *known == name).map(|(_, fault)| *fault)
    }

    /// What is answered in place of the true answer, if anything is.
    pub async fn instead(self) -> io::Result<Option<Response<Sent>>> {
        let with = |status: u16, sent: Sent| {
            let mut response = Response::new(sent);
            *response.status_mut() = status.try_into().unwrap_or_default();
            Ok(Some(response))
        };
        match self {
            Self::None | Self::Limited => Ok(None),
            Self::Hang => std::future::pending().await,
            Self::Slow => {
                tokio::time::sleep(SLOW).await;
                Ok(None)
            }
            Self::Garbage => with(200, Sent::whole("\u{0}\u{1}{{{{ not json")),
            Self::Html => with(503, Sent::whole("<html><h1>Service Unavailable</h1></html>")),
            Self::Huge => with(200, Sent::Huge { left: HUGE_BYTES }),
            Self::Reset => with(200, Sent::Cut { is_begun: false }),
            Self::Error => with(
                200,
                Sent::whole(
                    r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"Internal error"}}"#,
                ),
            ),
        }
    }
}

/// A body: whole, without end as far as anybody can take it, or cut off.
pub enum Sent {
    Whole(Option<Bytes>),
    Huge { left: u64 },
    Cut { is_begun: bool },
}

impl Sent {
    fn whole(text: &'static str) -> Self {
        Self::Whole(Some(Bytes::from_static(text.as_bytes())))
    }
}

static SPACES: [u8; 64 << 10] = [b' '; 64 << 10];

impl Body for Sent {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let data = |bytes| Poll::Ready(Some(Ok(Frame::data(bytes))));
        match &mut *self {
            Self::Whole(body) => body.take().map_or(Poll::Ready(None), data),
            Self::Huge { left: 0 } => Poll::Ready(None),
            Self::Huge { left } => {
                *left = left.saturating_sub(SPACES.len() as u64);
                data(Bytes::from_static(&SPACES))
            }
            Self::Cut { is_begun: false } => {
                *self = Self::Cut { is_begun: true };
                data(Bytes::from_static(b"{\"jsonrpc\":\"2.0\","))
            }
            Self::Cut { .. } => Poll::Ready(Some(Err(io::Error::other("cut off")))),
        }
    }
}
