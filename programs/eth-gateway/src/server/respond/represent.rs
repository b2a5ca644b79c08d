//! How an answer is put to its client: not at all where the client has it already, and compressed where it asks for that.

use std::hash::{DefaultHasher, Hasher as _};
use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::Full;
use hyper::body::Body as _;
use hyper::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, ETAG, HeaderValue, IF_NONE_MATCH,
};
use hyper::{HeaderMap, StatusCode};

use crate::answers::{Answered, vary};

/// A smaller body would hardly become smaller.
const COMPRESSED_BYTES_MIN: u64 = 1024;

/// Does both. What is immutable needs no tag: it is not asked for again.
pub fn represent(asked: &HeaderMap, answered: &mut Answered) {
    if answered.status() != StatusCode::OK {
        return;
    }
    let wants_gzip = asked.get(ACCEPT_ENCODING).is_some_and(accepts_gzip);
    let keep = answered.headers().get(CACHE_CONTROL);
    let is_immutable = keep.is_some_and(|keep| keep.as_bytes().ends_with(b"immutable"));
    let length = answered.body().size_hint().lower();
    let is_large = length >= COMPRESSED_BYTES_MIN;
    if is_large {
        vary(answered.headers_mut(), "accept-encoding");
    }
    if is_immutable && !(wants_gzip && is_large) {
        return;
    }
    let Some(body) = taken(answered) else { return };
    if !is_immutable {
        let tag = tag(&body);
        let is_known = asked.get_all(IF_NONE_MATCH).iter().any(|known| names(known, &tag));
        answered.headers_mut().insert(ETAG, tag);
        if is_known {
            *answered.status_mut() = StatusCode::NOT_MODIFIED;
            return;
        }
    }
    let smaller = (wants_gzip && is_large).then(|| gzip(&body)).flatten();
    if smaller.is_some() {
        answered.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    *answered.body_mut() = Full::new(smaller.unwrap_or(body));
}

/// The body, which is in memory as a whole.
fn taken(answered: &mut Answered) -> Option<Bytes> {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};
    let mut body = std::mem::take(answered.body_mut());
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(&mut body).poll_frame(&mut context) {
        Poll::Ready(Some(Ok(frame))) => frame.into_data().ok(),
        _ => None,
    }
}

/// Weak, because a compressed body has the same.
fn tag(body: &[u8]) -> HeaderValue {
    let mut hasher = DefaultHasher::new();
    hasher.write(body);
    let text = format!("W/\"{:016x}{:x}\"", hasher.finish(), body.len());
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("W/\"\""))
}

/// Whether a list of tags has this one, or is `*`.
fn names(known: &HeaderValue, tag: &HeaderValue) -> bool {
    let bare = |text: &str| text.trim().trim_start_matches("W/").to_owned();
    let (Ok(known), Ok(tag)) = (known.to_str(), tag.to_str()) else { return false };
    known.split(',').any(|one| one.trim() == "*" || bare(one) == bare(tag))
}

fn accepts_gzip(accepted: &HeaderValue) -> bool {
    let list = accepted.to_str().unwrap_or_default();
    list.split(',').any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && parts.all(|part| !matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

fn gzip(body: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 2), Compression::fast());
    encoder.write_all(body).ok()?;
    encoder.finish().ok().map(Bytes::from).filter(|smaller| smaller.len() < body.len())
}

#[cfg(test)]
mod tests {
    use hyper::header::VARY;

    use super::*;
    use crate::answers::{Keep, json};

    fn asked(headers: &[(hyper::header::HeaderName, &str)]) -> HeaderMap {
        headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    /// Claim: a client that has the answer is told so with a body of nothing; another body has another tag, and what is
    /// immutable has none.
    #[test]
    fn tags() {
        let mut first = json(Bytes::from_static(b"{\"a\":1}"), Keep::No);
        represent(&asked(&[]), &mut first);
        let tag = first.headers()[ETAG].to_str().unwrap().to_owned();
        assert_eq!(first.status(), 200);
        for known in [tag.as_str(), "\"other\", *", &format!("\"x\", {}", &tag[2..])] {
            let mut again = json(Bytes::from_static(b"{\"a\":1}"), Keep::No);
            represent(&asked(&[(IF_NONE_MATCH, known)]), &mut again);
            assert_eq!(
                (again.status().as_u16(), again.body().size_hint().lower()),
                (304, 0),
                "{known}"
            );
        }
        let mut other = json(Bytes::from_static(b"{\"a\":2}"), Keep::No);
        represent(&asked(&[(IF_NONE_MATCH, &tag)]), &mut other);
        assert_eq!(other.status(), 200);
        let mut immutable = json(Bytes::from_static(b"{}"), Keep::Immutable);
        represent(&asked(&[]), &mut immutable);
        assert!(!immutable.headers().contains_key(ETAG));
    }

    /// Claim: a large body is compressed where the client takes that, and every large answer says that it may be.
    #[test]
    fn compressed() {
        let body = Bytes::from(format!("[{}1]", "1,".repeat(2000)));
        let bytes = |accepted: &str| {
            let mut answered = json(body.clone(), Keep::Immutable);
            represent(&asked(&[(ACCEPT_ENCODING, accepted)]), &mut answered);
            assert_eq!(answered.headers()[VARY], "accept-encoding");
            let is_gzip = answered.headers().contains_key(CONTENT_ENCODING);
            (is_gzip, answered.body().size_hint().lower())
        };
        let (is_gzip, length) = bytes("br, gzip;q=0.5");
        assert!(is_gzip && length < 200, "{length}");
        assert_eq!(bytes("gzip;q=0, br"), (false, body.len() as u64));
    }
}
