//! Answers: bodies, statuses and headers. A failure says whose it is.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, RETRY_AFTER, VARY,
    WWW_AUTHENTICATE,
};
use hyper::{HeaderMap, Response, StatusCode};

use crate::routes::NotFound;
use crate::rpc::Failure;
use crate::signed::Unsigned;

/// Whole answers: every body is in memory when it is sent.
pub type Answered = Response<Full<Bytes>>;

/// The media type of failures (RFC 9457).
pub const PROBLEM: &str = "application/problem+json";
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// How much of an answer's time was the node's and how much the gateway's own.
pub const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// No such route, or a field that is wrong.
    Path(NotFound),
    /// What was asked for is not there; the node says so.
    Absent(&'static str),
    /// The node failed, or refused.
    Node(Failure),
    /// The node has an error of its own.
    NodeError {
        /// Its code.
        code: i64,
        /// Its words.
        message: String,
    },
    /// The node's result is none that the method has.
    Shape(&'static str),
    /// Another method than the route has.
    Method,
    /// Who asks has not said who they are, or not well.
    Unsigned(Unsigned),
    /// A key is needed, and there is none, or none that was given out.
    NoKey,
    /// The client has used up its allowance.
    Over(Duration),
    /// The body is larger than allowed, or none that the route has.
    NoBody(&'static str),
}

/// How long a client may keep an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// For good.
    Immutable,
    /// For good, but only the client itself: it had to show who it is.
    ImmutablePrivate,
    /// Only after asking whether it still holds.
    No,
    /// The same, and only the client itself.
    NoPrivate,
}

impl Keep {
    /// The same for an answer that no cache may give to another client (RFC 9111, 3.5).
    pub fn privately(self) -> Self {
        match self {
            Self::Immutable | Self::ImmutablePrivate => Self::ImmutablePrivate,
            Self::No | Self::NoPrivate => Self::NoPrivate,
        }
    }
}

/// A body of JSON.
pub fn json(body: Bytes, keep: Keep) -> Answered {
    with(JSON, body, keep)
}

/// A body of any type.
pub fn with(content_type: HeaderValue, body: Bytes, keep: Keep) -> Answered {
    let mut answered = Response::new(Full::new(body));
    let keep = match keep {
        Keep::Immutable => HeaderValue::from_static("public, max-age=31536000, immutable"),
        Keep::ImmutablePrivate => HeaderValue::from_static("private, max-age=31536000, immutable"),
        Keep::No => HeaderValue::from_static("no-cache"),
        Keep::NoPrivate => HeaderValue::from_static("private, no-cache"),
    };
    answered.headers_mut().insert(CONTENT_TYPE, content_type);
    answered.headers_mut().insert(CACHE_CONTROL, keep);
    answered
}

/// The answer to a failure.
struct Words {
    status: StatusCode,
    code: &'static str,
    detail: String,
    field: Option<&'static str>,
    retry_after: Option<Duration>,
}

/// The answer that says what went wrong.
pub fn problem(problem: &Problem) -> Answered {
    let words = words(problem);
    let mut body = serde_json::json!({
        "title": words.status.canonical_reason().unwrap_or_default(),
        "status": words.status.as_u16(),
        "code": words.code,
        "detail": words.detail,
    });
    if let Some(field) = words.field {
        body["field"] = field.into();
    }
    let mut answered = with(HeaderValue::from_static(PROBLEM), body.to_string().into(), Keep::No);
    *answered.status_mut() = words.status;
    if let Some(retry_after) = words.retry_after {
        // In whole seconds, and never too early.
        let seconds = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
        answered.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
    }
    if words.status == StatusCode::UNAUTHORIZED {
        answered.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    answered
}

/// Has caches keep answers apart by a header of the request. All such names stand in one line: some caches read no second.
pub fn vary(answered: &mut HeaderMap, name: &'static str) {
    let others = answered.get(VARY).and_then(|names| names.to_str().ok());
    let names = others.map(|others| format!("{others}, {name}"));
    let names = names.and_then(|names| HeaderValue::try_from(names).ok());
    answered.insert(VARY, names.unwrap_or(HeaderValue::from_static(name)));
}

/// The answer where there is nothing to say.
pub fn nothing() -> Answered {
    let mut answered = Response::new(Full::default());
    *answered.status_mut() = StatusCode::NO_CONTENT;
    answered
}

/// The answer that names another path.
pub fn elsewhere(path: &'static str) -> Answered {
    let mut answered = Response::new(Full::default());
    *answered.status_mut() = StatusCode::PERMANENT_REDIRECT;
    answered.headers_mut().insert(LOCATION, HeaderValue::from_static(path));
    answered
}

/// The failure in words.
pub fn detail(problem: &Problem) -> String {
    words(problem).detail
}

/// What a route can be asked with, as an answer to OPTIONS, or to another method than these.
pub fn methods(allowed: &'static str, is_asked: bool) -> Answered {
    let mut answered = if is_asked { nothing() } else { problem(&Problem::Method) };
    answered.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answered
}

fn words(problem: &Problem) -> Words {
    let say = |status, code, detail: String| Words {
        status,
        code,
        detail,
        field: None,
        retry_after: None,
    };
    match problem {
        Problem::Path(NotFound::Route(meant)) => {
            let detail = match meant {
                Some(meant) => {
                    format!("there is no such route; {meant}, without the slash at the end, is one")
                }
                None => "there is no such route; /describe lists them".to_owned(),
            };
            say(StatusCode::NOT_FOUND, "no_route", detail)
        }
        Problem::Path(NotFound::Field { name, wanted }) => Words {
            field: Some(name),
            ..say(StatusCode::BAD_REQUEST, "field", format!("{name} must be {wanted}"))
        },
        Problem::Absent(what) => {
            say(StatusCode::NOT_FOUND, "absent", format!("the node has no such {what}"))
        }
        Problem::NodeError { code, message } => say(
            StatusCode::BAD_GATEWAY,
            "node_error",
            format!("the node failed: {message} ({code})"),
        ),
        Problem::Shape(method) => say(
            StatusCode::BAD_GATEWAY,
            "garbage",
            format!("what the node gave for {method} is no result of it"),
        ),
        Problem::Method => {
            let detail = "this route has another method; Allow names it".to_owned();
            say(StatusCode::METHOD_NOT_ALLOWED, "method", detail)
        }
        Problem::Unsigned(why) => {
            let status = match why {
                Unsigned::NoMessage => StatusCode::BAD_REQUEST,
                _ => StatusCode::UNAUTHORIZED,
            };
            say(status, "unsigned", why.words().to_owned())
        }
        Problem::NoKey => {
            let detail = "this needs `X-Api-Key: KEY` with a key that was given out".to_owned();
            say(StatusCode::UNAUTHORIZED, "no_key", detail)
        }
        Problem::Over(wait) => {
            let detail = "over this client's allowance; ask again after the time in Retry-After";
            let words = say(StatusCode::TOO_MANY_REQUESTS, "over", detail.to_owned());
            Words { retry_after: Some(*wait), ..words }
        }
        Problem::NoBody(wanted) => {
            say(StatusCode::BAD_REQUEST, "body", format!("the body must be {wanted}"))
        }
        Problem::Node(failure) => failed(failure),
    }
}

fn failed(failure: &Failure) -> Words {
    let say = |status, code, detail: String| Words {
        status,
        code,
        detail,
        field: None,
        retry_after: None,
    };
    let bad = StatusCode::BAD_GATEWAY;
    match failure {
        Failure::Limited { retry_after, early } => {
            let who = if *early {
                "kept back by the gateway, because the node's limiter would refuse"
            } else {
                "refused by the node's limiter"
            };
            let detail = format!("{who}; ask again after the time in Retry-After");
            let words = say(StatusCode::TOO_MANY_REQUESTS, "limited", detail);
            Words { retry_after: Some(*retry_after), ..words }
        }
        Failure::Unreachable(why) => {
            say(bad, "unreachable", format!("the node did not answer: {why}"))
        }
        Failure::Garbage(why) => say(bad, "garbage", format!("the node's answer is none: {why}")),
        Failure::TooLarge => say(
            bad,
            "too_large",
            "the node's answer is larger than upstream_bytes_max; ask for less".to_owned(),
        ),
        Failure::Late => say(
            StatusCode::GATEWAY_TIMEOUT,
            "late",
            "the node did not answer within upstream_timeout".to_owned(),
        ),
        Failure::Refused { code, message } => say(
            StatusCode::UNPROCESSABLE_ENTITY,
            "refused",
            format!("the node refuses this request: {message} ({code})"),
        ),
        Failure::OtherChain(why) => {
            say(bad, "other_chain", format!("the node is of another chain: {why}"))
        }
        Failure::Busy => {
            let detail = "more is asked at once than there is room for".to_owned();
            let words = say(StatusCode::SERVICE_UNAVAILABLE, "busy", detail);
            Words { retry_after: Some(Duration::from_secs(1)), ..words }
        }
    }
}
