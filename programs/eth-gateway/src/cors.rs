//! Which pages of other origins may read the answers.

use hyper::HeaderMap;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, HeaderValue, ORIGIN,
};

use crate::answers::vary;

/// The origins that are let in.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    all: bool,
    listed: Vec<String>,
}

impl Origins {
    /// Reads `*`, or origins with commas between them; nothing lets none in.
    pub fn read(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self { all: true, listed: Vec::new() });
        }
        let listed: Vec<String> =
            text.split(',').map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect();
        match listed.iter().find(|origin| !origin.contains("://") || origin.ends_with('/')) {
            None => Ok(Self { all: false, listed }),
            Some(wrong) => {
                Err(format!("`{wrong}` is no origin; write https://HOST, without a path"))
            }
        }
    }

    /// Writes what the browser asks for into an answer's head.
    pub fn allow(&self, asked: &HeaderMap, answered: &mut HeaderMap, is_preflight: bool) {
        // Also where no origin is named: a cache must not give that answer to a page.
        if !self.all && !self.listed.is_empty() {
            vary(answered, "origin");
        }
        let Some(origin) = asked.get(ORIGIN) else { return };
        if self.all {
            answered.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        } else if self.listed.iter().any(|listed| listed.as_bytes() == origin.as_bytes()) {
            answered.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        } else {
            return;
        }
        let exposed = HeaderValue::from_static("etag, server-timing, retry-after");
        answered.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        if is_preflight {
            let methods = HeaderValue::from_static("GET, HEAD, POST, OPTIONS");
            let headers = HeaderValue::from_static("authorization, content-type, x-api-key");
            answered.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
            answered.insert(ACCESS_CONTROL_ALLOW_HEADERS, headers);
            answered.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: an origin that is listed is let in by its name, others are not, and `*` lets all in.
    #[test]
    fn origins() {
        let allowed = |list: &str, origin: &'static str| {
            let mut asked = HeaderMap::new();
            asked.insert(ORIGIN, HeaderValue::from_static(origin));
            let mut answered = HeaderMap::new();
            Origins::read(list).unwrap().allow(&asked, &mut answered, false);
            answered.get(ACCESS_CONTROL_ALLOW_ORIGIN).map(|it| it.to_str().unwrap().to_owned())
        };
        let (ours, other) = ("https://app.example", "https://other.example");
        assert_eq!(allowed("https://app.example, http://b.example", ours).as_deref(), Some(ours));
        assert_eq!(allowed("https://app.example", other), None);
        assert_eq!(allowed("", ours), None);
        assert_eq!(allowed("*", other).as_deref(), Some("*"));
        assert!(
            Origins::read("app.example").is_err() && Origins::read("https://a.example/").is_err()
        );
    }
}
