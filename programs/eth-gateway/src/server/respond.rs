//! One request: which page or operation it is, and its answer with the two times in its head.

mod represent;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clock::{Instant, WallTime};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode};
use serde_json::json;
use tokio::sync::watch;

use super::limits::Client;
use super::socket::RPC_BYTES_MAX;
use super::{Place, Serving, socket};
use crate::answers::{self, Answered, Keep, Problem, SERVER_TIMING};
use crate::gateway::{Form, Spent, calls_of};
use crate::log::Line;
use crate::memory::{self, Held, Untaken};
use crate::routes::{self, NotFound, Operation, ROUTES};
use crate::rpc::Failure;
use crate::signed::{TOKEN_REQUEST_BYTES_MAX, Unsigned};
use crate::{openapi, swagger};

/// Methods of routes that read, and of those that are posted to.
const READ: &str = "GET, HEAD, OPTIONS";
const POSTED: &str = "POST, OPTIONS";
/// The header in which a client shows its key.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Answers a request.
pub async fn respond(
    serving: &Arc<Serving>,
    request: Request<Incoming>,
    (peer, place): (SocketAddr, &Arc<Place>),
    ends: &watch::Receiver<bool>,
) -> Answered {
    let gateway = &serving.gateway;
    let began = gateway.clock.now();
    if request.uri().path() == "/rpc" && socket::is_wanted(&request) {
        return upgrade(serving, request, (peer, place), ends.clone());
    }
    let (head, body) = request.into_parts();
    let mut spent = Spent::default();
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    let (target, form) = match target.strip_prefix("/v1") {
        Some("") => ("/", Form::Version1),
        Some(rest) if rest.starts_with('/') => (rest, Form::Version1),
        _ => (target, Form::Published),
    };
    let path = target.split('?').next().unwrap_or(target);
    let (method, headers) = (&head.method, &head.headers);
    let asked = Asked { target, path, form, method, headers, peer, place, began };
    let (route, mut answered) = answer(serving, &asked, body, &mut spent).await;
    serving.origins.allow(&head.headers, answered.headers_mut(), head.method == Method::OPTIONS);
    represent::represent(&head.headers, &mut answered);
    let own = gateway.clock.now().saturating_since(began);
    let own = own.saturating_sub(spent.node.unwrap_or_default());
    let status = answered.status().as_u16();
    gateway.metrics.answered(route, status, own, spent.node);
    answered.headers_mut().insert(SERVER_TIMING, timing(own, spent.node));
    if serving.log.wants(status) {
        let (path, method) = (head.uri.path().to_owned(), head.method.to_string());
        serving.log.say(Line { client: peer.ip(), path, method, status, own, node: spent.node });
    }
    answered
}

/// The parts of a request that decide.
struct Asked<'a> {
    /// The path, and all after its question mark.
    target: &'a str,
    path: &'a str,
    form: Form,
    method: &'a Method,
    headers: &'a hyper::HeaderMap,
    peer: SocketAddr,
    place: &'a Place,
    began: Instant,
}

/// The place of what is no route.
const NO_ROUTE: usize = ROUTES.len() - 1;

async fn answer(
    serving: &Arc<Serving>,
    asked: &Asked<'_>,
    body: Incoming,
    spent: &mut Spent,
) -> (usize, Answered) {
    match asked.path {
        "/auth/token" => {
            return (route_of(asked.path), Box::pin(token(serving, asked, body)).await);
        }
        "/rpc" => return (route_of(asked.path), Box::pin(rpc(serving, asked, body, spent)).await),
        "/tx" => return (route_of(asked.path), Box::pin(send(serving, asked, body, spent)).await),
        _ => {}
    }
    let is_read = matches!(*asked.method, Method::GET | Method::HEAD);
    let methods = || answers::methods(READ, asked.method == Method::OPTIONS);
    if let Some((route, answered)) = page(serving, asked.path) {
        return (route, if is_read { answered } else { methods() });
    }
    if let Some(address) = asked.path.strip_prefix("/auth/challenge/") {
        let route = route_of("/auth/challenge/{address}");
        let answered = match is_read {
            true => Box::pin(challenge(serving, address, spent)).await,
            false => methods(),
        };
        return (route, answered);
    }
    let operation = match routes::find(asked.target) {
        Ok(operation) => operation,
        Err(not_found) => return (NO_ROUTE, answers::problem(&Problem::Path(not_found))),
    };
    let route = operation.route();
    if !is_read {
        return (route, methods());
    }
    if ROUTES[route].asks_node
        && operation != Operation::Ready
        && let Err(problem) = let_in(serving, asked.headers, asked.peer, (1, asked.began))
    {
        return (route, answers::problem(&problem));
    }
    match serving.gateway.perform(&operation, asked.form, spent).await {
        Ok((body, keep)) => (route, answers::json(body, serving.keep(keep))),
        Err(problem) => (route, answers::problem(&problem)),
    }
}

impl Serving {
    /// How long a client may keep an answer; where clients must say who they are, no one else may.
    fn keep(&self, keep: Keep) -> Keep {
        if self.needs_token || self.limits.has_keys() { keep.privately() } else { keep }
    }
}

/// Lets in a client that may ask so many calls now: with a key, with a token, or where neither is needed.
pub fn let_in(
    serving: &Serving,
    headers: &hyper::HeaderMap,
    peer: SocketAddr,
    (calls, now): (usize, Instant),
) -> Result<Client, Problem> {
    let limits = &serving.limits;
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let key = if limits.has_keys() { text(API_KEY) } else { None };
    let client = match key.and_then(|key| limits.of_key(key)) {
        Some(client) => client,
        None if serving.needs_token => {
            let account = serving.signed.check(text(AUTHORIZATION), WallTime::now());
            let account = account.map_err(Problem::Unsigned)?;
            limits.of_name(|| account)
        }
        None if limits.has_keys() => return Err(Problem::NoKey),
        None => limits.of_name(|| peer.ip().to_string()),
    };
    limits.take(&client, calls, now).map_err(Problem::Over)?;
    Ok(client)
}

fn upgrade(
    serving: &Arc<Serving>,
    request: Request<Incoming>,
    (peer, place): (SocketAddr, &Arc<Place>),
    ends: watch::Receiver<bool>,
) -> Answered {
    let answered = match let_in(serving, request.headers(), peer, (0, serving.gateway.clock.now()))
    {
        Ok(client) => socket::agree(serving, request, (client, Arc::clone(place)), ends),
        Err(problem) => answers::problem(&problem),
    };
    let status = answered.status().as_u16();
    serving.gateway.metrics.answered(route_of("/rpc"), status, Duration::ZERO, None);
    answered
}

/// The body of a request, `wanted` in words, and the memory that it holds. It comes in time, is not too large, and finds
/// room beside all others.
async fn read(
    serving: &Serving,
    place: &Place,
    body: Incoming,
    bytes_max: usize,
    wanted: &'static str,
) -> Result<(Bytes, Held), Problem> {
    let mut held = serving.bodies.none_after(&place.bodies);
    let taken = memory::take(body, bytes_max, &mut held);
    match tokio::time::timeout(serving.head_timeout, taken).await {
        Ok(Ok(body)) => Ok((body, held)),
        Ok(Err(Untaken::Full)) => Err(Problem::Node(Failure::Busy)),
        Ok(Err(Untaken::TooLarge | Untaken::Broken(_))) | Err(_) => Err(Problem::NoBody(wanted)),
    }
}

async fn rpc(
    serving: &Arc<Serving>,
    asked: &Asked<'_>,
    body: Incoming,
    spent: &mut Spent,
) -> Answered {
    if asked.method != Method::POST {
        return answers::methods(POSTED, asked.method == Method::OPTIONS);
    }
    // The calls are counted when they are there; those who may not ask at all need send none.
    let client = match let_in(serving, asked.headers, asked.peer, (0, asked.began)) {
        Ok(client) => client,
        Err(problem) => return answers::problem(&problem),
    };
    let wanted = "JSON-RPC calls of up to 1 MiB";
    let (body, _held) = match read(serving, asked.place, body, RPC_BYTES_MAX, wanted).await {
        Ok(read) => read,
        Err(problem) => return answers::problem(&problem),
    };
    let calls = calls_of(&body).unwrap_or(1);
    // Now, not when it began: the body may have taken its time.
    if let Err(wait) = serving.limits.take(&client, calls, serving.gateway.clock.now()) {
        return answers::problem(&Problem::Over(wait));
    }
    match serving.gateway.serve_rpc(&body, spent).await {
        Some(reply) => answers::json(reply, serving.keep(Keep::No)),
        None => answers::nothing(),
    }
}

/// Sends a transaction that was signed elsewhere.
async fn send(
    serving: &Arc<Serving>,
    asked: &Asked<'_>,
    body: Incoming,
    spent: &mut Spent,
) -> Answered {
    const WANTED: &str = "{\"raw\": 0x and the bytes of a signed transaction} of up to 1 MiB";
    if asked.method != Method::POST {
        return answers::methods(POSTED, asked.method == Method::OPTIONS);
    }
    if let Err(problem) = let_in(serving, asked.headers, asked.peer, (1, asked.began)) {
        return answers::problem(&problem);
    }
    let (body, _held) = match read(serving, asked.place, body, RPC_BYTES_MAX, WANTED).await {
        Ok(read) => read,
        Err(problem) => return answers::problem(&problem),
    };
    let body: Option<serde_json::Value> = serde_json::from_slice(&body).ok();
    let raw = body.as_ref().and_then(|body| body["raw"].as_str());
    let is_bytes = |digits: &str| {
        !digits.is_empty() && digits.len().is_multiple_of(2) && routes::is_hex(digits)
    };
    let Some(raw) = raw.filter(|raw| raw.strip_prefix("0x").is_some_and(is_bytes)) else {
        return answers::problem(&Problem::NoBody(WANTED));
    };
    match serving.gateway.send(raw, spent).await {
        Ok(body) => {
            let mut answered = answers::json(body, serving.keep(Keep::No));
            *answered.status_mut() = StatusCode::ACCEPTED;
            answered
        }
        Err(problem) => answers::problem(&problem),
    }
}

fn route_of(template: &str) -> usize {
    ROUTES.iter().position(|route| route.template == template).unwrap_or(NO_ROUTE)
}

/// Pages: no operation on a chain.
fn page(serving: &Serving, path: &str) -> Option<(usize, Answered)> {
    let text = |kind, body| answers::with(HeaderValue::from_static(kind), body, Keep::No);
    if path == "/swaggerui" {
        return Some((route_of("/swaggerui/"), answers::elsewhere("swaggerui/")));
    }
    if let Some(name) = path.strip_prefix("/swaggerui/") {
        return swagger::file(name).map(|answered| (route_of("/swaggerui/"), answered));
    }
    let answered = match path {
        "/openapi.json" => {
            text("application/json", Bytes::from_static(openapi::document().as_bytes()))
        }
        "/metrics" => {
            let shown = serving.gateway.metrics.show(serving.gateway.cache_size());
            text("text/plain; version=0.0.4; charset=utf-8", Bytes::from(shown))
        }
        _ => return None,
    };
    Some((route_of(path), answered))
}

async fn challenge(serving: &Arc<Serving>, address: &str, spent: &mut Spent) -> Answered {
    // The same field as a balance's, read by the same code.
    let address = match routes::find(&format!("/balance/{address}")) {
        Ok(Operation::Balance { address, .. }) => address,
        Err(NotFound::Field { name, wanted }) => {
            return answers::problem(&Problem::Path(NotFound::Field { name, wanted }));
        }
        _ => return answers::problem(&Problem::Path(NotFound::Route(None))),
    };
    let chain_id = match serving.gateway.chain_id(spent).await {
        Ok(chain_id) => chain_id,
        Err(problem) => return answers::problem(&problem),
    };
    match serving.signed.challenge(&address, &chain_id, WallTime::now()) {
        Some(message) => answers::json(json!({ "message": message }).to_string().into(), Keep::No),
        None => answers::problem(&Problem::Shape("a challenge")),
    }
}

async fn token(serving: &Serving, asked: &Asked<'_>, body: Incoming) -> Answered {
    if asked.method != Method::POST {
        return answers::methods(POSTED, asked.method == Method::OPTIONS);
    }
    let token = match read(serving, asked.place, body, TOKEN_REQUEST_BYTES_MAX, "").await {
        Ok((body, _)) => serving.signed.token(&body, WallTime::now()),
        Err(Problem::NoBody(_)) => Err(Unsigned::NoMessage),
        Err(problem) => return answers::problem(&problem),
    };
    match token {
        Ok(token) => {
            let body = json!({ "token": token, "expiresIn": serving.token_age.as_secs() });
            answers::json(body.to_string().into(), Keep::No)
        }
        Err(unsigned) => answers::problem(&Problem::Unsigned(unsigned)),
    }
}

/// `gateway;dur=0.021, node;dur=3.402`: milliseconds of the gateway's own and of waiting for the node.
fn timing(own: Duration, node: Option<Duration>) -> HeaderValue {
    let mut text = Vec::with_capacity(48);
    text.extend_from_slice(b"gateway;dur=");
    milliseconds(own, &mut text);
    if let Some(node) = node {
        text.extend_from_slice(b", node;dur=");
        milliseconds(node, &mut text);
    }
    HeaderValue::from_bytes(&text).unwrap_or(HeaderValue::from_static("gateway"))
}

fn milliseconds(time: Duration, out: &mut Vec<u8>) {
    use std::io::Write as _;
    let us = time.as_micros();
    let _ = write!(out, "{}.{:03}", us / 1000, us % 1000);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: both times are in milliseconds with microseconds after the point, and the node's is there only if it was
    /// asked.
    #[test]
    fn two_times() {
        let own = Duration::from_micros(21);
        assert_eq!(timing(own, None), "gateway;dur=0.021");
        let node = Some(Duration::from_nanos(3_402_999));
        assert_eq!(timing(own, node), "gateway;dur=0.021, node;dur=3.402");
    }
}
