//! What may be set, and by whom: the file that `--config` names, the environment, the command line, each over the one
//! before it. One table says what there is.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use hyper::header::{HeaderName, HeaderValue};

use crate::cors::Origins;

/// Everything that may be set.
#[derive(Clone, Debug)]
pub struct Options {
    pub listen: SocketAddr,
    pub upstream: String,
    pub upstream_header: Option<(HeaderName, HeaderValue)>,
    pub threads: usize,
    pub connections_max: usize,
    pub head_timeout: Duration,
    pub write_timeout: Duration,
    pub drain: Duration,
    pub cache: bool,
    pub cache_bytes: u64,
    pub final_depth: u64,
    pub latest: bool,
    pub latest_age: Duration,
    pub coalesce: bool,
    pub batch: bool,
    pub batch_linger: Duration,
    pub batch_max: usize,
    pub pool: bool,
    pub upstream_connections_max: usize,
    pub upstream_timeout: Duration,
    pub upstream_bytes_max: usize,
    pub pace: bool,
    pub allowed_rps: Option<f64>,
    pub queue_max: Duration,
    pub grpc: Option<SocketAddr>,
    pub tls_certificate: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    pub cors_origins: Origins,
    pub log_one_in: u64,
    pub auth: bool,
    pub auth_domain: String,
    pub auth_secret: String,
    pub token_age: Duration,
    pub keys: Option<PathBuf>,
    pub client_rps: Option<f64>,
}

/// One thing that may be set.
pub struct Setting {
    /// In the file; with dashes on the command line; in capitals after `ETH_GATEWAY_` in the environment.
    pub key: &'static str,
    pub default: &'static str,
    pub meaning: &'static str,
}

const fn setting(key: &'static str, default: &'static str, meaning: &'static str) -> Setting {
    Setting { key, default, meaning }
}

/// What the environment's names begin with.
const ENVIRONMENT: &str = "ETH_GATEWAY_";

/// Everything that may be set; an empty default means "not set".
pub static SETTINGS: [Setting; 35] = [
    setting("listen", "127.0.0.1:8000", "address of the REST API"),
    setting(
        "upstream",
        "http://127.0.0.1:8545/",
        "URL of the node's JSON-RPC, http or https; several with commas between them: the first that answers is asked",
    ),
    setting("upstream_header", "", "a header that the node wants, such as `x-api-key: SECRET`"),
    setting("threads", "0", "threads that serve; 0: one for each processor"),
    setting("connections_max", "30000", "connections of clients; one more is answered 503"),
    setting(
        "head_timeout",
        "30s",
        "an idle connection, and one that sends its request slower, is closed",
    ),
    setting("write_timeout", "15s", "a client that reads nothing for so long is cut off"),
    setting("drain", "10s", "how long requests in flight may take after SIGTERM"),
    setting("cache", "true", "keep blocks, transactions and receipts"),
    setting("cache_bytes", "134217728", "memory of the cache"),
    setting(
        "final_depth",
        "64",
        "blocks so far below the last one are final where the node does not say which are (`finalized`)",
    ),
    setting(
        "latest",
        "true",
        "follow the chain's head: what depends on it is kept by the hash of its block",
    ),
    setting(
        "latest_age",
        "0ms",
        "how long a head that was seen serves later requests; 0ms: each sees one that the node had while it was open",
    ),
    setting("coalesce", "true", "ask the node once for equal requests in flight"),
    setting("batch", "true", "send calls to the node in JSON-RPC batches"),
    setting(
        "batch_linger",
        "1ms",
        "how long the first call of a batch waits for others while the node is busy with an earlier one",
    ),
    setting("batch_max", "50", "calls in a batch"),
    setting("pool", "true", "keep connections to the node"),
    setting("upstream_connections_max", "32", "connections to the node"),
    setting("upstream_timeout", "10s", "how long the node may take"),
    setting("upstream_bytes_max", "33554432", "the largest answer that is taken from the node"),
    setting(
        "pace",
        "true",
        "listen to the node's limiter: keep under what it allows, send nothing while it backs off",
    ),
    setting("allowed_rps", "", "calls a second that the node allows, if that is known beforehand"),
    setting(
        "queue_max",
        "1s",
        "how long a call may wait for its turn with the node; one that would wait longer is refused: 429 where the limiter is what it waits for, else 503",
    ),
    setting("grpc", "", "address of the gRPC service, if there is to be one"),
    setting("tls_certificate", "", "file with the certificates of TLS towards clients, PEM"),
    setting("tls_key", "", "file with the key of TLS towards clients, PEM"),
    setting(
        "cors_origins",
        "",
        "origins whose pages may read answers, with commas between them, or *",
    ),
    setting(
        "log_one_in",
        "1000",
        "of requests that went well one in so many is logged, 0: none; failures are all logged",
    ),
    setting("auth", "false", "what asks the node needs a token"),
    setting("auth_domain", "localhost", "the host that stands in messages to be signed"),
    setting("auth_secret", "", "what tokens are signed with; not set: drawn at the start"),
    setting("token_age", "1h", "how long a token is good for"),
    setting(
        "keys",
        "",
        "file with clients that show a key (X-Api-Key): a table [NAME] each with `key` and, if limited, `rps`",
    ),
    setting("client_rps", "", "calls a second of a client without a key, by account or address"),
];

/// Switches that `--plain` turns off.
const SWITCHES: [&str; 6] = ["cache", "latest", "coalesce", "batch", "pool", "pace"];

impl Options {
    /// # Errors
    /// What is wrong, with where it was set.
    pub fn read(words: &[String]) -> Result<Self, String> {
        let environment = |name: &str| std::env::var(name).ok();
        Self::read_from(words, &environment)
    }

    fn read_from(
        words: &[String],
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let mut options = Self::none();
        for setting in SETTINGS.iter().filter(|setting| !setting.default.is_empty()) {
            options
                .set(setting.key, setting.default)
                .map_err(|why| format!("{}: {why}", setting.key))?;
        }
        let (config, typed) = command_line(words)?;
        if let Some(path) = config.or_else(|| environment("ETH_GATEWAY_CONFIG").map(PathBuf::from))
        {
            options.set_from_file(&path)?;
        }
        for setting in &SETTINGS {
            let name = format!("{ENVIRONMENT}{}", setting.key.to_ascii_uppercase());
            if let Some(value) = environment(&name) {
                options.set(setting.key, &value).map_err(|why| format!("{name}: {why}"))?;
            }
        }
        for (key, value) in typed {
            options
                .set(&key, &value)
                .map_err(|why| format!("--{}: {why}", key.replace('_', "-")))?;
        }
        Ok(options)
    }

    fn none() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            upstream: String::new(),
            upstream_header: None,
            threads: 0,
            connections_max: 0,
            head_timeout: Duration::ZERO,
            write_timeout: Duration::ZERO,
            drain: Duration::ZERO,
            cache: false,
            cache_bytes: 0,
            final_depth: 0,
            latest: false,
            latest_age: Duration::ZERO,
            coalesce: false,
            batch: false,
            batch_linger: Duration::ZERO,
            batch_max: 0,
            pool: false,
            upstream_connections_max: 0,
            upstream_timeout: Duration::ZERO,
            upstream_bytes_max: 0,
            pace: false,
            allowed_rps: None,
            queue_max: Duration::ZERO,
            grpc: None,
            tls_certificate: None,
            tls_key: None,
            cors_origins: Origins::default(),
            log_one_in: 0,
            auth: false,
            auth_domain: String::new(),
            auth_secret: String::new(),
            token_age: Duration::ZERO,
            keys: None,
            client_rps: None,
        }
    }

    fn set_from_file(&mut self, path: &std::path::Path) -> Result<(), String> {
        let shown = path.display();
        let text =
            std::fs::read_to_string(path).map_err(|error| format!("reading {shown}: {error}"))?;
        let table: toml::Table = text.parse().map_err(|error| format!("{shown}: {error}"))?;
        for (key, value) in table {
            let value = match value {
                toml::Value::String(text) => text,
                other => other.to_string(),
            };
            self.set(&key, &value).map_err(|why| format!("{shown}: {key}: {why}"))?;
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "listen" => self.listen = address(value)?,
            "upstream" => value.clone_into(&mut self.upstream),
            "upstream_header" => self.upstream_header = Some(header(value)?),
            "threads" => self.threads = count(value, 0)?,
            "connections_max" => self.connections_max = count(value, 1)?,
            "head_timeout" => self.head_timeout = duration(value)?,
            "write_timeout" => self.write_timeout = duration(value)?,
            "drain" => self.drain = duration(value)?,
            "cache" => self.cache = switch(value)?,
            "cache_bytes" => self.cache_bytes = count(value, 0)? as u64,
            "final_depth" => self.final_depth = count(value, 0)? as u64,
            "latest" => self.latest = switch(value)?,
            "latest_age" => self.latest_age = duration(value)?,
            "coalesce" => self.coalesce = switch(value)?,
            "batch" => self.batch = switch(value)?,
            "batch_linger" => self.batch_linger = duration(value)?,
            "batch_max" => self.batch_max = count(value, 1)?,
            "pool" => self.pool = switch(value)?,
            "upstream_connections_max" => self.upstream_connections_max = count(value, 1)?,
            "upstream_timeout" => self.upstream_timeout = duration(value)?,
            "upstream_bytes_max" => self.upstream_bytes_max = count(value, 1)?,
            "pace" => self.pace = switch(value)?,
            "allowed_rps" => self.allowed_rps = Some(rate(value)?),
            "queue_max" => self.queue_max = duration(value)?,
            "grpc" => self.grpc = Some(address(value)?),
            "tls_certificate" => self.tls_certificate = Some(PathBuf::from(value)),
            "tls_key" => self.tls_key = Some(PathBuf::from(value)),
            "cors_origins" => self.cors_origins = Origins::read(value)?,
            "log_one_in" => self.log_one_in = count(value, 0)? as u64,
            "auth" => self.auth = switch(value)?,
            "auth_domain" => value.clone_into(&mut self.auth_domain),
            "auth_secret" => value.clone_into(&mut self.auth_secret),
            "token_age" => self.token_age = duration(value)?,
            "keys" => self.keys = Some(PathBuf::from(value)),
            "client_rps" => self.client_rps = Some(rate(value)?),
            other => return Err(unknown(other)),
        }
        Ok(())
    }
}

/// The file that `--config` names, and what else was typed, in its order.
type Typed = (Option<PathBuf>, Vec<(String, String)>);

fn command_line(words: &[String]) -> Result<Typed, String> {
    let (mut config, mut typed) = (None, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(name) = word.strip_prefix("--") else {
            return Err(format!("`{word}` is no option; see --help"));
        };
        if name == "plain" {
            typed.extend(SWITCHES.map(|key| (key.to_owned(), "false".to_owned())));
            continue;
        }
        let (name, value) = match name.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (name, words.next().cloned()),
        };
        let value = value.ok_or_else(|| format!("--{name} wants a value; see --help"))?;
        match name {
            "config" => config = Some(PathBuf::from(value)),
            name => typed.push((name.replace('-', "_"), value)),
        }
    }
    Ok((config, typed))
}

fn unknown(key: &str) -> String {
    let near = |setting: &&Setting| {
        setting.key.contains(key)
            || key.contains(setting.key)
            || setting.key.get(..3) == key.get(..3)
    };
    match SETTINGS.iter().find(near) {
        Some(setting) => format!("there is no `{key}`; did you mean `{}`?", setting.key),
        None => format!("there is no `{key}`; see --help"),
    }
}

fn address(value: &str) -> Result<SocketAddr, String> {
    value.parse().map_err(|_| format!("`{value}` is no address; write IP:PORT"))
}

/// `NAME: VALUE`; a secret, so that it stands in no message.
fn header(value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let wrong = || "expected `NAME: VALUE`".to_owned();
    let (name, value) = value.split_once(':').ok_or_else(wrong)?;
    let name = name.trim().parse().map_err(|_| wrong())?;
    let mut value: HeaderValue = value.trim().parse().map_err(|_| wrong())?;
    value.set_sensitive(true);
    Ok((name, value))
}

fn switch(value: &str) -> Result<bool, String> {
    value.parse().map_err(|_| format!("`{value}` is neither true nor false"))
}

fn count(value: &str, least: usize) -> Result<usize, String> {
    let found = value.parse().ok().filter(|count| *count >= least);
    found.ok_or_else(|| format!("`{value}` is no whole number from {least}"))
}

fn rate(value: &str) -> Result<f64, String> {
    let found = value.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    found.ok_or_else(|| format!("`{value}` is no rate above 0"))
}

/// `250ms`, `10s`, `2m` or `1h`.
pub fn duration(value: &str) -> Result<Duration, String> {
    let wrong = || format!("`{value}` is no duration; write 250ms, 10s, 2m or 1h");
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = value.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "m" => Ok(Duration::from_secs(number.saturating_mul(60))),
        "h" => Ok(Duration::from_secs(number.saturating_mul(3600))),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str], environment: &[(&str, &str)]) -> Result<Options, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Options::read_from(&words, &|name| {
            let found = environment.iter().find(|(set, _)| *set == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    /// Claim: the command line outranks the environment, that the file, and that the defaults; `--plain` turns every
    /// switch off that comes before it.
    #[test]
    fn ranks() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gateway.toml");
        std::fs::write(&file, "threads = 3\nbatch_linger = \"2ms\"\nqueue_max = \"3s\"\n").unwrap();
        let path = file.display().to_string();
        let environment = [("ETH_GATEWAY_THREADS", "5"), ("ETH_GATEWAY_QUEUE_MAX", "4s")];
        let options = read(&["--config", &path, "--queue-max=7s"], &environment).unwrap();
        assert_eq!(options.batch_linger, Duration::from_millis(2));
        assert_eq!((options.threads, options.queue_max), (5, Duration::from_secs(7)));
        assert!(options.cache && options.batch && options.pool && options.pace);
        let plain = read(&["--plain", "--pool", "true"], &[]).unwrap();
        assert!(plain.pool && !plain.cache && !plain.batch && !plain.coalesce && !plain.latest);
    }

    /// Claim: what is wrong is said with where it was set.
    #[test]
    fn mistakes() {
        let error =
            |words: &[&str], environment: &[(&str, &str)]| read(words, environment).unwrap_err();
        assert_eq!(
            error(&["--cach", "true"], &[]),
            "--cach: there is no `cach`; did you mean `cache`?"
        );
        assert_eq!(error(&["--cache"], &[]), "--cache wants a value; see --help");
        assert!(
            error(&[], &[("ETH_GATEWAY_DRAIN", "soon")]).starts_with("ETH_GATEWAY_DRAIN: `soon`")
        );
        assert!(error(&["--allowed-rps", "0"], &[]).contains("no rate above 0"));
    }
}
