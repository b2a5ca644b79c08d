//! One request: which page or operation it is, and its answer with the two times in its head.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clock::WallTime;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper::{Method, Request};
use serde_json::json;

use super::Serving;
use crate::answers::{self, Answered, Keep, Problem, SERVER_TIMING};
use crate::gateway::{Form, Spent};
use crate::log::Line;
use crate::routes::{self, NotFound, Operation, ROUTES};
use crate::signed::{TOKEN_REQUEST_BYTES_MAX, Unsigned};
use crate::{openapi, swagger};

/// What routes that read can be asked with, and what the one that is posted to can.
const READ: &str = "GET, HEAD, OPTIONS";
const POSTED: &str = "POST, OPTIONS";

/// Answers a request.
pub async fn respond(serving: &Arc<Serving>, request: Request<Incoming>) -> Answered {
    let gateway = &serving.gateway;
    let began = gateway.clock.now();
    let (head, body) = request.into_parts();
    let mut spent = Spent::default();
    let (path, form) = match head.uri.path().strip_prefix("/v1") {
        Some("") => ("/", Form::Version1),
        Some(rest) if rest.starts_with('/') => (rest, Form::Version1),
        _ => (head.uri.path(), Form::Published),
    };
    let asked = Asked { path, form, method: &head.method, headers: &head.headers };
    let (route, mut answered) = answer(serving, &asked, body, &mut spent).await;
    serving.origins.allow(&head.headers, answered.headers_mut(), head.method == Method::OPTIONS);
    let own = gateway.clock.now().saturating_since(began);
    let own = own.saturating_sub(spent.node.unwrap_or_default());
    let status = answered.status().as_u16();
    gateway.metrics.answered(route, status, own, spent.node);
    answered.headers_mut().insert(SERVER_TIMING, timing(own, spent.node));
    if serving.log.wants(status) {
        let (path, method) = (head.uri.path().to_owned(), head.method.to_string());
        serving.log.say(Line { path, method, status, own, node: spent.node });
    }
    answered
}

/// What of a request decides.
struct Asked<'a> {
    path: &'a str,
    form: Form,
    method: &'a Method,
    headers: &'a hyper::HeaderMap,
}

/// The place of what is no route.
const NO_ROUTE: usize = ROUTES.len() - 1;

async fn answer(
    serving: &Arc<Serving>,
    asked: &Asked<'_>,
    body: Incoming,
    spent: &mut Spent,
) -> (usize, Answered) {
    if asked.path == "/auth/token" {
        return (route_of(asked.path), token(serving, asked, body).await);
    }
    let is_read = matches!(*asked.method, Method::GET | Method::HEAD);
    let methods = || answers::methods(READ, asked.method == Method::OPTIONS);
    if let Some((route, answered)) = page(serving, asked.path) {
        return (route, if is_read { answered } else { methods() });
    }
    if let Some(address) = asked.path.strip_prefix("/auth/challenge/") {
        let route = route_of("/auth/challenge/{address}");
        let answered = if is_read { challenge(serving, address, spent).await } else { methods() };
        return (route, answered);
    }
    let operation = match routes::find(asked.path) {
        Ok(operation) => operation,
        Err(not_found) => return (NO_ROUTE, answers::problem(&Problem::Path(not_found))),
    };
    let route = operation.route();
    if !is_read {
        return (route, methods());
    }
    if let Err(unsigned) = let_in(serving, route, asked) {
        return (route, answers::problem(&Problem::Unsigned(unsigned)));
    }
    match serving.gateway.perform(&operation, asked.form, spent).await {
        Ok((body, keep)) => (route, answers::json(body, keep)),
        Err(problem) => (route, answers::problem(&problem)),
    }
}

/// Where tokens are needed, whether there is one.
fn let_in(serving: &Serving, route: usize, asked: &Asked<'_>) -> Result<(), Unsigned> {
    if !serving.needs_token || !ROUTES[route].asks_node {
        return Ok(());
    }
    let authorization = asked.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    serving.signed.check(authorization, WallTime::now())
}

fn route_of(template: &str) -> usize {
    ROUTES.iter().position(|route| route.template == template).unwrap_or(NO_ROUTE)
}

/// What is no operation on a chain.
fn page(serving: &Serving, path: &str) -> Option<(usize, Answered)> {
    let text = |kind, body| answers::with(HeaderValue::from_static(kind), body, Keep::No);
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
        Ok(Operation::Balance(address)) => address,
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
    let read = Limited::new(body, TOKEN_REQUEST_BYTES_MAX).collect();
    let body = tokio::time::timeout(serving.head_timeout, read).await;
    let body = body.ok().and_then(Result::ok).map(|body| body.to_bytes());
    let token = body
        .ok_or(Unsigned::NoMessage)
        .and_then(|body| serving.signed.token(&body, WallTime::now()));
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

    /// Claim: both times are in milliseconds with microseconds behind the point, and the node's is there only if it was
    /// asked.
    #[test]
    fn two_times() {
        let own = Duration::from_micros(21);
        assert_eq!(timing(own, None), "gateway;dur=0.021");
        let node = Some(Duration::from_nanos(3_402_999));
        assert_eq!(timing(own, node), "gateway;dur=0.021, node;dur=3.402");
    }
}
