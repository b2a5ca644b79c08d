//! Parts of this adapter that adapters of protocols on top of HTTP borrow: the server that a URL names with its TLS, headers with
//! secrets, texts with variables, and what is expected of an answer's body. It must never know the other protocol's words.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clock::Clock;
use model::options::{Options, Problems, Section, Value};
use model::{Outcome, TxId};
use sut::ask::Questioner;
use sut::{Deployment, SutError, Tls};
use wire::http1::{Limits, Response};

use crate::expect::Answered;
use crate::expect::Expected;
use crate::flow::data::{DATA_BYTES_MAX, Data};
use crate::flow::template::{Form, Moment, Names, Template};
use crate::flow::user::{Sizes, User};
use crate::given::{BODY_BYTES_MAX, bytes_of, given_bytes, given_url};
use crate::options::headers_of;
use crate::server::addresses;
use crate::tls::Trust;
use crate::url::{self, Origin, Place};

mod line;

pub use line::{Line, Tried, try_one};

/// The header by which this client names itself.
pub const USER_AGENT: &str = crate::requests::USER_AGENT;

/// The longest wait for a connection (and its TLS handshake) to one address.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// A server that speaks a protocol on top of HTTP.
#[derive(Clone)]
pub struct Server {
    origin: Origin,
    authority: String,
    scheme: &'static str,
    /// Path and query of its URL.
    pub target: String,
    /// How connections are encrypted, if they are.
    pub tls: Option<Tls>,
    /// Whether its certificate is not verified.
    pub is_insecure: bool,
}

impl Server {
    /// Reads `url`, `ca`, `server_name` and `insecure` of `[system.deploy]`, and reports every mistake in them. `schemes` are
    /// the one without TLS and the one with it.
    pub fn read(
        deploy: &mut Section<'_>,
        folder: &Path,
        schemes: [&'static str; 2],
        is_http2: bool,
        problems: &mut Problems,
    ) -> Option<Self> {
        let before = problems.list.len();
        let url = deploy.string("url", problems);
        let url =
            deploy.require("url", url, &format!("url = \"{}://HOST:PORT\"", schemes[0]), problems);
        let place = url.and_then(|text| {
            let place = given_url(text).and_then(|text| url::parse_as(&text, schemes));
            match place {
                Ok(Place { origin: Some(origin), target }) => Some((origin, target)),
                Ok(Place { origin: None, .. }) => {
                    let help = format!("write {}://HOST:PORT/", schemes[0]);
                    deploy.reject("url", format!("`{text}` names no server"), Some(help), problems);
                    None
                }
                Err(message) => {
                    deploy.reject("url", message, None, problems);
                    None
                }
            }
        });
        let ca = deploy.string("ca", problems).and_then(|path| {
            match bytes_of(&folder.join(path), BODY_BYTES_MAX) {
                Ok(pem) => Some((path, pem)),
                Err(why) => {
                    deploy.reject("ca", format!("{path}: {why}"), None, problems);
                    None
                }
            }
        });
        let name = deploy.string("server_name", problems);
        let is_insecure = deploy.boolean("insecure", problems).unwrap_or(false);
        let (origin, target) = place?;
        let scheme = schemes[usize::from(origin.is_tls)];
        let mut tls = None;
        if origin.is_tls {
            let ca = ca.as_ref().map(|(path, pem)| (*path, pem.as_slice()));
            let trust = Trust { ca, is_insecure, is_http2 };
            match crate::tls::tls(name.unwrap_or(&origin.host), trust) {
                Ok(made) => tls = Some(made),
                Err(message) => problems.add(deploy.span(), message, None),
            }
        } else if ca.is_some() || name.is_some() || is_insecure {
            let message = format!(
                "`ca`, `server_name` and `insecure` of `system.deploy` are for {}://, but the server is {scheme}://",
                schemes[1]
            );
            problems.add(deploy.span(), message, None);
        }
        let authority = origin.authority();
        let server = Self { origin, authority, scheme, target, tls, is_insecure };
        (problems.list.len() == before).then_some(server)
    }

    /// The server as a URL without a path.
    #[must_use]
    pub fn url(&self) -> String {
        let of_http = self.origin.to_string();
        let rest = of_http.split_once("://").map_or("", |(_, rest)| rest);
        format!("{}://{rest}", self.scheme)
    }

    /// Host and port as `Host` and `:authority` have them.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Looks the name up and tries each address once, so that a load is never spread over addresses without a listener.
    /// `word` is the name of the endpoints and the beginning of the facts' names.
    ///
    /// # Errors
    /// When there is no such name, or no answer from any of its addresses.
    pub fn attach(&self, clock: Clock, word: &str) -> Result<Deployment, SutError> {
        let mut deployment = Deployment::new(clock);
        let mut failures = Vec::new();
        for address in addresses(&self.origin, &self.url())? {
            let mut questioner = Questioner::new(address, self.tls.clone(), Limits::CLIENT, clock);
            match questioner.connect(CONNECT_TIME_MAX) {
                Ok(()) => {
                    deployment.facts.insert(format!("{word}.transport"), questioner.transport());
                    deployment.endpoints.push((word.to_owned(), address));
                }
                Err(error) => {
                    let name = self.tls.as_ref().map(|tls| tls.server_name.to_str());
                    let name = name.as_deref().unwrap_or(&self.origin.host).to_owned();
                    let why = crate::tls::explain(&error, &name).replace("http://", &self.plain());
                    failures.push(format!("{address}: {why}"));
                }
            }
        }
        if deployment.endpoints.is_empty() {
            let message = format!("connecting to {}: {}", self.url(), failures.join("; "));
            return Err(SutError::Deploy(message));
        }
        let used: Vec<_> = deployment.endpoints.iter().map(|(_, at)| at.to_string()).collect();
        deployment.facts.insert(format!("{word}.origin"), self.url());
        deployment.facts.insert(format!("{word}.addresses"), used.join(", "));
        if !failures.is_empty() {
            deployment.facts.insert(format!("{word}.addresses_not_used"), failures.join("; "));
        }
        Ok(deployment)
    }

    /// The scheme without TLS.
    fn plain(&self) -> String {
        format!("{}://", self.scheme.trim_end_matches('s'))
    }
}

/// The headers under a key of `[workload]`, with what they take from the environment; mistakes are reported.
pub fn headers(
    key: &'static str,
    workload: &mut Section<'_>,
    problems: &mut Problems,
) -> Vec<(String, String)> {
    headers_of(key, workload, problems)
}

/// The content of a text of an experiment, with the variables of the environment that it names (`${NAME}`).
///
/// # Errors
/// When one of them is not set, in words.
pub fn given_text(text: &[u8]) -> Result<Vec<u8>, String> {
    given_bytes(text)
}

/// A file of the experiment's folder, of at most 16 MiB.
///
/// # Errors
/// Why it cannot be read, in words.
pub fn file(folder: &Path, path: &str) -> Result<Vec<u8>, String> {
    bytes_of(&folder.join(path), BODY_BYTES_MAX).map_err(|why| format!("{path}: {why}"))
}

/// Lines of data, one for each transaction in turn: CSV with a line of names, or a JSON object a line.
#[derive(Clone, Debug, Default)]
pub struct Lines(Option<Arc<Data>>);

impl Lines {
    /// Reads `data` of `[workload]`, a file's name; without it there are none.
    pub fn read(workload: &mut Section<'_>, folder: &Path, problems: &mut Problems) -> Self {
        let Some(path) = workload.string("data", problems) else { return Self(None) };
        let text = bytes_of(&folder.join(path), DATA_BYTES_MAX)
            .map_err(|why| vec![format!("{path}: {why}")])
            .and_then(|bytes| {
                String::from_utf8(bytes).map_err(|_| vec![format!("{path}: the file is not UTF-8")])
            });
        match text.and_then(|text| Data::parse(path, &text)) {
            Ok(data) => Self(Some(Arc::new(data))),
            Err(mistakes) => {
                mistakes
                    .into_iter()
                    .for_each(|mistake| workload.reject("data", mistake, None, problems));
                Self(None)
            }
        }
    }
}

/// A text with places for values: `{{$tx}}`, `{{$uuid}}`, `{{$random:1:6}}`, `{{$time}}`, `{{$user}}`, a column of the data.
#[derive(Clone, Debug)]
pub struct Text {
    template: Template,
    lines: Lines,
}

impl Text {
    /// Reads a text of JSON, where values of the data are written as JSON's strings have them.
    ///
    /// # Errors
    /// With every name in it that is not known.
    pub fn parse(text: &[u8], lines: &Lines) -> Result<Self, Vec<String>> {
        let columns = lines.0.as_ref().map_or(&[][..], |data| data.columns.as_slice());
        let template = Template::parse(text, Form::Json, Names { values: &[], columns })?;
        Ok(Self { template, lines: lines.clone() })
    }

    /// How many lines its values are taken from in turn; 1 where there is no data.
    #[must_use]
    pub fn lines(&self) -> u32 {
        self.lines.0.as_ref().map_or(1, |data| data.lines().max(1))
    }

    /// Whether it holds the time of sending.
    #[must_use]
    pub fn has_time(&self) -> bool {
        self.at(1, 1) != self.at(1, 2)
    }

    /// Whether it is the same for every transaction.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.lines() == 1 && self.at(1, 1) == self.at(2, 2)
    }

    /// The text of a transaction and of the client of the same number, at a time, with random values of the same seed.
    fn at(&self, number: u32, unix_ms: i64) -> Vec<u8> {
        let mut out = Vec::new();
        Filler::new(number.into()).fill(self, number.into(), number, unix_ms, &mut out);
        out
    }
}

/// Fills texts in; all that is random in them comes from its seed.
#[derive(Clone, Debug)]
pub struct Filler(User);

impl Filler {
    /// One whose random values are those of the seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut user = User::default();
        user.begin(0, 0, seed, Sizes::default());
        Self(user)
    }

    /// Appends a text for a transaction of a client, at a time.
    pub fn fill(&mut self, text: &Text, tx: TxId, client: u32, unix_ms: i64, out: &mut Vec<u8>) {
        let data = text.lines.0.as_deref();
        self.0.number = client;
        if let Some(data) = data {
            let line = tx % u64::from(data.lines().max(1));
            self.0.line = u32::try_from(line).expect("less than the number of lines");
        }
        let moment = Moment { data, transaction: tx, unix_ms, ..Moment::default() };
        text.template.fill(&mut self.0, &moment, out);
    }
}

/// Expectations of an answer's body and headers, as `[workload.expect]` says them.
#[derive(Clone, Debug, Default)]
pub struct Expectation {
    expected: Expected,
    reads_bodies: bool,
}

impl Expectation {
    /// Reads a table `expect`. `own` are keys in it that are the other protocol's to read; those of HTTP alone are refused.
    pub fn read(table: &Options, path: &str, own: &[&str], problems: &mut Problems) -> Self {
        let mut rest = table.clone();
        if let Value::Table(entries) = &mut rest.value {
            entries.retain(|key, _| !own.contains(&key.as_str()));
            for key in ["status", "length"] {
                if let Some((span, _)) = entries.remove(key) {
                    let message = format!("`{path}.{key}` is for HTTP");
                    problems.add(span, message, Some("leave it out".to_owned()));
                }
            }
        }
        let mut expected = Expected::default();
        expected.of_all = expected.add(Section::open(&rest, path, problems), problems);
        let reads_bodies = expected.reads_bodies();
        Self { expected, reads_bodies }
    }

    /// Whether something is expected of bodies.
    #[must_use]
    pub const fn reads_bodies(&self) -> bool {
        self.reads_bodies
    }

    /// Why a body is not as expected, if it is not.
    #[must_use]
    pub fn unexpected_body(&self, body: &[u8]) -> Option<(Outcome, String)> {
        let found = self.expected.unexpected_body(&self.answered(&[], body));
        found.map(|found| (found.outcome, found.text))
    }

    /// Why headers, a line each after a line end, are not as expected, if they are not.
    #[must_use]
    pub fn unexpected_header(&self, head: &[u8]) -> Option<(Outcome, String)> {
        let found = self.expected.unexpected_header(&self.answered(head, &[]));
        found.map(|found| (found.outcome, found.text))
    }

    fn answered<'a>(&self, head: &'a [u8], body: &'a [u8]) -> Answered<'a> {
        let body_bytes = body.len() as u64;
        Answered {
            response: Response { status: 200, body_bytes, keep_alive: true },
            reason: "",
            body,
            has_body: self.reads_bodies,
            head,
            expects: self.expected.of_all,
        }
    }
}
