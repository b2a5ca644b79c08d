//! Every request, written once before the load: a transaction is then one copy of known bytes.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use wire::http1::{Asked, write_request};
use wire::http2::request_block;

use crate::url::Origin;

/// The most names of kinds. Each row carries a kind and each report a table of them; what comes after the
/// first 4,095 targets is counted as one kind.
pub(crate) const KINDS_MAX: usize = 4096;

/// The longest name of a kind, in characters; longer URLs are cut.
const NAME_CHARS_MAX: usize = 200;

/// The most bytes of prepared requests.
pub(crate) const REQUESTS_BYTES_MAX: usize = 512 << 20;

/// A header that every request has unless it brings its own.
pub(crate) const USER_AGENT: &str = concat!("assay/", env!("CARGO_PKG_VERSION"));

/// What stands in a prepared request where the id of its transaction is written: as long as every id in hexadecimal.
pub(crate) const ID_PLACE: &str = "0000000000000000";

/// A request as the user describes it, with everything looked up.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) method: String,
    pub(crate) target: String,
    /// The target as it may be shown: without the secrets in it.
    pub(crate) shown: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// A request, ready to send.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) bytes: Box<[u8]>,
    /// Over HTTP/2: how much of the bytes is the header block; the rest is the body.
    pub(crate) block_bytes: usize,
    pub(crate) body_bytes: u32,
    pub(crate) kind: u32,
    pub(crate) asked: Asked,
    pub(crate) name: Box<str>,
    /// Where [`ID_PLACE`] stands in it, if requests carry their ids.
    pub(crate) id_at: Option<usize>,
    /// What is expected of its answer, if anything is: see [`crate::expect`].
    pub(crate) expects: Option<u16>,
}

/// All requests of a workload.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    /// The distinct ones.
    pub(crate) prepared: Vec<Prepared>,
    /// Indices into `prepared`, in the order of the target file.
    pub(crate) sequence: Vec<u32>,
    /// Names of kinds; `Prepared::kind` is an index into it.
    pub(crate) kinds: Vec<String>,
    /// The header that carries the id of each transaction.
    correlate: Option<String>,
    /// Whether they are written for HTTP/2.
    is_http2: bool,
    bytes: usize,
    by_hash: HashMap<u64, Vec<u32>>,
    kind_by_name: HashMap<String, u32>,
    folded: usize,
}

impl Requests {
    /// Requests that carry the ids of their transactions in a header, if one is named.
    pub(crate) fn new(correlate: Option<&str>) -> Self {
        Self { correlate: correlate.map(str::to_owned), ..Self::default() }
    }

    /// The same for HTTP/2, if so.
    pub(crate) fn for_http2(self, is_http2: bool) -> Self {
        Self { is_http2, ..self }
    }

    /// Adds a request to the end of the sequence.
    ///
    /// # Errors
    /// When all of them together are too long, or one brings the header that is to carry its id.
    pub(crate) fn add(&mut self, origin: &Origin, wish: &Wish) -> Result<(), String> {
        let (bytes, id_at) = self.written(origin, wish)?;
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let alike = self.by_hash.entry(hasher.finish()).or_default();
        if let Some(known) =
            alike.iter().find(|index| *self.prepared[**index as usize].bytes == *bytes)
        {
            self.sequence.push(*known);
            return Ok(());
        }
        self.bytes += bytes.len();
        if self.bytes > REQUESTS_BYTES_MAX {
            return Err(format!(
                "the prepared requests take more than {} MiB; use fewer targets or shorter bodies",
                REQUESTS_BYTES_MAX >> 20
            ));
        }
        let index =
            u32::try_from(self.prepared.len()).map_err(|_| "too many targets".to_owned())?;
        alike.push(index);
        let name = name(wish);
        let kind = self.kind(&name);
        self.prepared.push(Prepared {
            block_bytes: bytes.len() - wish.body.len().min(bytes.len()),
            bytes: bytes.into_boxed_slice(),
            body_bytes: u32::try_from(wish.body.len())
                .map_err(|_| "a body is too long".to_owned())?,
            kind,
            asked: if wish.method == "HEAD" { Asked::Head } else { Asked::Other },
            name: name.into_boxed_str(),
            id_at,
            expects: None,
        });
        self.sequence.push(index);
        Ok(())
    }

    /// The bytes of a request, and where its id goes.
    fn written(&self, origin: &Origin, wish: &Wish) -> Result<(Vec<u8>, Option<usize>), String> {
        if self.is_http2 {
            return Ok((written_for_http2(origin, wish), None));
        }
        let Some(header) = &self.correlate else { return Ok((written(origin, wish), None)) };
        if wish.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(header)) {
            return Err(format!(
                "the header `{header}` is written by workload.correlate, and cannot be given, too"
            ));
        }
        let mut wish = wish.clone();
        wish.headers.push((header.clone(), ID_PLACE.to_owned()));
        let bytes = written(origin, &wish);
        let line = format!("\r\n{header}: {ID_PLACE}\r\n");
        let at = bytes.windows(line.len()).position(|window| window == line.as_bytes());
        let at = at.expect("the header was written") + line.len() - 2 - ID_PLACE.len();
        Ok((bytes, Some(at)))
    }

    /// Drops what only building needed, and names the kind that holds the rest.
    pub(crate) fn finish(&mut self) {
        self.by_hash = HashMap::new();
        self.kind_by_name = HashMap::new();
        // One target alone in the last place keeps its name.
        if self.folded > 1 {
            self.kinds[KINDS_MAX - 1] = format!("{} more targets", self.folded);
        }
    }

    fn kind(&mut self, name: &str) -> u32 {
        if let Some(kind) = self.kind_by_name.get(name) {
            return *kind;
        }
        let last = KINDS_MAX - 1;
        if self.kinds.len() < KINDS_MAX {
            self.kinds.push(name.to_owned());
        }
        let kind = (self.kinds.len() - 1).min(last);
        let kind = u32::try_from(kind).expect("bounded by KINDS_MAX");
        if self.kinds.len() == KINDS_MAX {
            self.folded += 1;
        }
        self.kind_by_name.insert(name.to_owned(), kind);
        kind
    }
}

fn name(wish: &Wish) -> String {
    let name = format!("{} {}", wish.method, wish.shown);
    match name.char_indices().nth(NAME_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name,
    }
}

/// A header block, and the body after it.
fn written_for_http2(origin: &Origin, wish: &Wish) -> Vec<u8> {
    let authority = origin.authority();
    let mut headers = headers(&authority, wish);
    let length = wish.body.len().to_string();
    if !wish.body.is_empty() {
        headers.push(("content-length", length.as_bytes()));
    }
    let scheme = if origin.is_tls { "https" } else { "http" };
    let mut bytes = request_block(&wish.method, scheme, &authority, &wish.target, &headers);
    bytes.extend_from_slice(&wish.body);
    bytes
}

fn written(origin: &Origin, wish: &Wish) -> Vec<u8> {
    let authority = origin.authority();
    let headers = headers(&authority, wish);
    let mut bytes = Vec::new();
    write_request(&mut bytes, &wish.method, &wish.target, &headers, &wish.body);
    bytes
}

/// Host, User-Agent and Accept first, each unless the wish brings its own.
fn headers<'a>(authority: &'a str, wish: &'a Wish) -> Vec<(&'a str, &'a [u8])> {
    let own = [("Host", authority), ("User-Agent", USER_AGENT), ("Accept", "*/*")];
    let is_brought =
        |name: &str| wish.headers.iter().any(|(brought, _)| brought.eq_ignore_ascii_case(name));
    own.into_iter()
        .filter(|(name, _)| !is_brought(name))
        .chain(wish.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())))
        .map(|(name, value)| (name, value.as_bytes()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin() -> Origin {
        Origin { is_tls: false, host: "h".into(), port: 8080 }
    }

    fn wish(target: &str, headers: &[(&str, &str)], body: &[u8]) -> Wish {
        let headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let method = if body.is_empty() { "GET" } else { "POST" };
        Wish {
            method: method.into(),
            target: target.into(),
            shown: target.into(),
            headers,
            body: body.to_vec(),
        }
    }

    /// Claim: the bytes are the request as described, with our headers where the user brings none.
    #[test]
    fn bytes() {
        let mut requests = Requests::default();
        requests.add(&origin(), &wish("/a", &[("x-id", "1")], b"")).unwrap();
        requests
            .add(&origin(), &wish("/b", &[("host", "other"), ("USER-AGENT", "me")], b"hi"))
            .unwrap();
        let text = |at: usize| String::from_utf8(requests.prepared[at].bytes.to_vec()).unwrap();
        assert_eq!(
            text(0),
            format!(
                "GET /a HTTP/1.1\r\nHost: h:8080\r\nUser-Agent: {USER_AGENT}\r\nAccept: */*\r\nx-id: 1\r\n\r\n"
            )
        );
        assert_eq!(
            text(1),
            "POST /b HTTP/1.1\r\nAccept: */*\r\nhost: other\r\nUSER-AGENT: me\r\nContent-Length: 2\r\n\r\nhi"
        );
        assert_eq!(requests.prepared[1].body_bytes, 2);
    }

    /// Claim: repeated targets keep their places in the sequence and are held once; targets that differ only
    /// in headers are two requests of one kind.
    #[test]
    fn repetitions() {
        let mut requests = Requests::default();
        for (target, headers) in [("/a", &[][..]), ("/b", &[]), ("/a", &[]), ("/a", &[("X", "1")])]
        {
            requests.add(&origin(), &wish(target, headers, b"")).unwrap();
        }
        requests.finish();
        assert_eq!(requests.sequence, [0, 1, 0, 2]);
        assert_eq!(requests.kinds, ["GET /a", "GET /b"]);
        assert_eq!(requests.prepared[2].kind, 0);
    }

    /// Claim: kinds are bounded; the rest is one kind that says how many it holds.
    #[test]
    fn kinds_are_bounded() {
        let mut requests = Requests::default();
        for index in 0..5000 {
            requests.add(&origin(), &wish(&format!("/{index}"), &[], b"")).unwrap();
        }
        requests.finish();
        assert_eq!(requests.kinds.len(), KINDS_MAX);
        assert_eq!(requests.kinds[4094], "GET /4094");
        assert_eq!(requests.kinds[4095], "905 more targets");
        assert_eq!((requests.prepared[4094].kind, requests.prepared[4999].kind), (4094, 4095));
    }

    /// Claim: a long URL does not make a long name.
    #[test]
    fn names_are_bounded() {
        let mut requests = Requests::default();
        requests.add(&origin(), &wish(&format!("/{}", "x".repeat(5000)), &[], b"")).unwrap();
        assert_eq!(requests.kinds[0].chars().count(), NAME_CHARS_MAX + 1);
    }
}
