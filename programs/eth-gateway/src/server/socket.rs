//! JSON-RPC over a WebSocket (RFC 6455): calls as over HTTP, and new heads for those who subscribe to them.

mod counted;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue, UPGRADE};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use counted::{Coming, Counted};

use super::limits::Client;
use super::{Place, Serving};
use crate::answers::Answered;
use crate::gateway::{Gateway, Spent, calls_of};
use crate::json;
use crate::view::View;

/// The largest body of JSON-RPC calls, and of a transaction.
pub const RPC_BYTES_MAX: usize = 1 << 20;

/// Calls of one connection that are under way at once.
const UNDER_WAY_MAX: usize = 32;
/// Replies that wait for a client that reads slowly; a new head beyond them ends the connection.
const WAITING_MAX: usize = 256;
/// Subscriptions of one connection.
const SUBSCRIPTIONS_MAX: usize = 16;
/// Bytes that are read at once.
const READ_BYTES: usize = 4 << 10;
/// The head of a ping or a pong, its mask included.
const CONTROL_HEAD_BYTES: usize = 6;
/// How often the head is looked for while a client has subscribed.
const HEAD_EVERY: Duration = Duration::from_millis(500);

/// Whether a client wants to speak WebSocket.
pub fn is_wanted<B>(request: &Request<B>) -> bool {
    let upgrade = request.headers().get(UPGRADE);
    upgrade.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Agrees to it, and serves it when the connection is free for it. The connection's place is kept until the socket ends.
pub fn agree(
    serving: &Arc<Serving>,
    request: Request<Incoming>,
    (client, place): (Client, Arc<Place>),
    ended: watch::Receiver<bool>,
) -> Answered {
    let key =
        request.headers().get("sec-websocket-key").map(|key| derive_accept_key(key.as_bytes()));
    let key = key.and_then(|key| HeaderValue::from_str(&key).ok());
    let mut answered = Response::new(http_body_util::Full::default());
    let Some(key) = key else {
        *answered.status_mut() = StatusCode::BAD_REQUEST;
        return answered;
    };
    *answered.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    answered.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    answered.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
    answered.headers_mut().insert("sec-websocket-accept", key);
    let serving = Arc::clone(serving);
    tokio::spawn(async move {
        if let Ok(upgraded) = hyper::upgrade::on(request).await {
            let config = WebSocketConfig::default()
                .read_buffer_size(READ_BYTES)
                .max_message_size(Some(RPC_BYTES_MAX))
                .max_frame_size(Some(RPC_BYTES_MAX));
            let coming = Coming::new(serving.bodies.none_after(&place.bodies));
            let io = Counted::new(TokioIo::new(upgraded), &coming);
            let stream = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
            serve(&serving, stream, (client, coming, &place), ended).await;
        }
        drop(place);
    });
    answered
}

async fn serve<S>(
    serving: &Arc<Serving>,
    stream: WebSocketStream<S>,
    (client, coming, place): (Client, Coming, &Place),
    mut ended: watch::Receiver<bool>,
) where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let (mut out, mut incoming) = stream.split();
    let (replies, mut waiting) = channel::<Bytes>(WAITING_MAX);
    let under_way = Arc::new(Semaphore::new(UNDER_WAY_MAX));
    let mut subscribed = Subscribed::default();
    let mut over = std::pin::pin!(async move {
        let _ = ended.wait_for(|ended| *ended).await;
    });
    let mut idle = std::pin::pin!(sleep(serving.head_timeout));
    let mut is_heard = true;
    loop {
        tokio::select! {
            // In this order: a client was silent only if there is nothing of it to be read.
            biased;
            () = over.as_mut() => break,
            reply = waiting.recv() => {
                let Some(text) = reply.and_then(|reply| Utf8Bytes::try_from(reply).ok()) else { break };
                let sent = tokio::time::timeout(serving.write_timeout, out.send(Message::Text(text)));
                if !matches!(sent.await, Ok(Ok(()))) {
                    break;
                }
            }
            message = incoming.next(), if under_way.available_permits() > 0 => {
                let text = match message {
                    Some(Ok(Message::Text(text))) => Bytes::from(text),
                    Some(Ok(Message::Binary(bytes))) => bytes,
                    // Pings are answered by the library.
                    Some(Ok(Message::Ping(bytes) | Message::Pong(bytes))) => {
                        let mut held = coming.held();
                        held.shrink(CONTROL_HEAD_BYTES + bytes.len());
                        // More than was read ahead is a message that does not end.
                        is_heard |= held.bytes() <= READ_BYTES;
                        continue;
                    }
                    Some(Ok(Message::Close(_) | Message::Frame(_)) | Err(_)) | None => break,
                };
                is_heard = true;
                let none = serving.bodies.none_after(&place.bodies);
                let mut held = std::mem::replace(&mut *coming.held(), none);
                if let Some(reply) = subscribed.answer(serving, &text, &replies) {
                    let _ = replies.try_send(reply);
                    continue;
                }
                // All of it was counted when it came, with room or without.
                if held.grow(0).is_err() {
                    let id = json::member(&text, "id").unwrap_or(b"null");
                    let _ = replies.try_send(failed(id, -32005, "more is asked than there is room for"));
                    continue;
                }
                let Ok(place) = Arc::clone(&under_way).try_acquire_owned() else { break };
                let (serving, replies, client) = (Arc::clone(serving), replies.clone(), client.clone());
                tokio::spawn(async move {
                    if let Some(reply) = reply(&serving, &text, &client).await {
                        let _ = replies.send(reply).await;
                    }
                    drop((place, held));
                });
            }
            // Something can be read again; meanwhile nothing could be heard.
            _ = under_way.acquire(), if under_way.available_permits() == 0 => is_heard = true,
            () = idle.as_mut(), if under_way.available_permits() > 0 => {
                let ping = tokio::time::timeout(
                    serving.write_timeout,
                    out.send(Message::Ping(Bytes::new())),
                );
                // The one before was not answered, or this one is not taken.
                if !std::mem::take(&mut is_heard) || !matches!(ping.await, Ok(Ok(()))) {
                    break;
                }
                idle.set(sleep(serving.head_timeout));
            }
        }
    }
    let _ = tokio::time::timeout(Duration::from_secs(1), out.close()).await;
}

async fn reply(serving: &Arc<Serving>, text: &Bytes, client: &Client) -> Option<Bytes> {
    let gateway = &serving.gateway;
    let calls = calls_of(text).unwrap_or(1);
    if let Err(wait) = serving.limits.take(client, calls, gateway.clock.now()) {
        let id = json::member(text, "id").unwrap_or(b"null");
        let words =
            format!("over this client's allowance; ask again after {} ms", wait.as_millis());
        return Some(failed(id, -32005, &words));
    }
    gateway.serve_rpc(text, &mut Spent::default()).await
}

fn failed(id: &[u8], code: i64, words: &str) -> Bytes {
    let error = serde_json::json!({ "code": code, "message": words }).to_string();
    [b"{\"jsonrpc\":\"2.0\",\"id\":", id, b",\"error\":", error.as_bytes(), b"}"].concat().into()
}

/// Subscriptions of a connection; they end with it.
#[derive(Default)]
struct Subscribed {
    made: u64,
    by_id: HashMap<String, tokio::task::AbortHandle>,
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        self.by_id.values().for_each(tokio::task::AbortHandle::abort);
    }
}

impl Subscribed {
    /// The reply to a call that begins or ends a subscription; none to all others.
    fn answer(
        &mut self,
        serving: &Arc<Serving>,
        text: &Bytes,
        replies: &Sender<Bytes>,
    ) -> Option<Bytes> {
        let call: serde_json::Value = match json::member(text, "method") {
            Some(b"\"eth_subscribe\"" | b"\"eth_unsubscribe\"") => {
                serde_json::from_slice(text).ok()?
            }
            _ => return None,
        };
        let (id, params) = (call["id"].to_string(), &call["params"]);
        let done = |result: String| {
            Some(Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}")))
        };
        if call["method"] == "eth_unsubscribe" {
            let found = params[0].as_str().and_then(|id| self.by_id.remove(id));
            if let Some(task) = &found {
                task.abort();
            }
            return done(found.is_some().to_string());
        }
        if params[0] != "newHeads" {
            return Some(failed(
                id.as_bytes(),
                -32602,
                "only `newHeads` can be subscribed to here",
            ));
        }
        if self.by_id.len() == SUBSCRIPTIONS_MAX {
            return Some(failed(id.as_bytes(), -32005, "too many subscriptions on one connection"));
        }
        self.made += 1;
        let name = format!("0x{:x}", self.made);
        let heads = heads(Arc::clone(&serving.gateway), name.clone(), replies.clone());
        let task = tokio::spawn(heads).abort_handle();
        self.by_id.insert(name.clone(), task);
        done(format!("\"{name}\""))
    }
}

/// Tells of each block of the chain that was not there before, a reorganisation's included.
async fn heads(gateway: Arc<Gateway>, subscription: String, replies: Sender<Bytes>) {
    let mut known: Option<Arc<View>> = None;
    loop {
        tokio::time::sleep(HEAD_EVERY).await;
        let Some(view) = gateway.seen().await else { continue };
        let Some(before) = known.replace(Arc::clone(&view)) else { continue };
        for block in view.since(&before) {
            let Some(header) = gateway.header(block).await else { continue };
            let text = format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"eth_subscription\",\"params\":{{\"subscription\":\"{subscription}\",\"result\":{header}}}}}"
            );
            if replies.send(text.into()).await.is_err() {
                return;
            }
        }
    }
}
