//! `assay run URL --rate …` as an experiment file: the quick way leads into the file way, because the text
//! made here is resolved like any other and is what the run folder keeps.

/// What stands in a stored file instead of a secret.
pub const REDACTED: &str = "redacted";

/// What a quick run says.
#[derive(Clone, Debug, Default)]
pub struct UrlRun {
    /// The URL; empty if the targets come from a file.
    pub url: String,
    /// Request method; empty = the adapter's default.
    pub method: String,
    /// Header lines: name and value. Values of secret headers are redacted unless they are `env:NAME`, which
    /// the adapter reads from the environment when it runs.
    pub headers: Vec<(String, String)>,
    /// Request body; empty = none.
    pub body: String,
    /// Target file; empty = none. `-` is standard input.
    pub targets: String,
    /// Rate as typed; empty if clients are given.
    pub rate: String,
    /// Clients of a closed loop instead of a rate; empty = none.
    pub clients: String,
    /// Length of the measured window; empty = the default.
    pub duration: String,
    /// Length of the warm-up; empty = the default.
    pub warmup: String,
    /// Timeout; empty = the default.
    pub timeout: String,
    /// Connections; empty = the default.
    pub connections: String,
    /// Engine threads; empty = the default.
    pub threads: String,
    /// Threshold expressions.
    pub thresholds: Vec<String>,
    /// Keep the values of secret headers: for the text that is run, not for one that is stored.
    pub with_secrets: bool,
}

/// The rate of a quick run that names neither rate nor clients, as vegeta's default.
const RATE: &str = "50/s";

/// The experiment file of a quick run.
#[must_use]
pub fn from_url(run: &UrlRun) -> String {
    let mut text = String::from("# Made from a command line. To repeat it: assay run FILE\n");
    line(&mut text, "name", &quoted(&name(run)));
    text.push_str("\n[system]\nkind = \"http\"\n");
    if !run.url.is_empty() {
        text.push_str("[system.deploy]\n");
        line(&mut text, "url", &quoted(&run.url));
    }
    text.push_str(&workload(run));
    text.push_str("\n[load]\n");
    if run.clients.is_empty() {
        text.push_str("model = \"open\"\n");
        line(&mut text, "rate", &quoted(if run.rate.is_empty() { RATE } else { &run.rate }));
    } else {
        text.push_str("model = \"closed\"\n");
        line(&mut text, "clients", &number(&run.clients));
    }
    for (key, value) in
        [("warmup", &run.warmup), ("duration", &run.duration), ("timeout", &run.timeout)]
    {
        if !value.is_empty() {
            line(&mut text, key, &quoted(value));
        }
    }
    for (key, value) in [("connections", &run.connections), ("threads", &run.threads)] {
        if !value.is_empty() {
            line(&mut text, key, &number(value));
        }
    }
    for threshold in &run.thresholds {
        text.push_str("\n[[threshold]]\n");
        line(&mut text, "expr", &quoted(threshold));
    }
    text
}

fn workload(run: &UrlRun) -> String {
    let mut text = String::new();
    for (key, value) in [("targets", &run.targets), ("method", &run.method), ("body", &run.body)] {
        if !value.is_empty() {
            line(&mut text, key, &quoted(value));
        }
    }
    if !run.headers.is_empty() {
        let headers: Vec<String> = run
            .headers
            .iter()
            .map(|(name, value)| {
                let hidden =
                    !run.with_secrets && is_secret_header(name) && !value.starts_with("env:");
                let value = if hidden { REDACTED } else { value };
                format!("{} = {}", quoted(name), quoted(value))
            })
            .collect();
        line(&mut text, "headers", &format!("{{ {} }}", headers.join(", ")));
    }
    if text.is_empty() { text } else { format!("\n[workload]\n{text}") }
}

fn line(text: &mut String, key: &str, value: &str) {
    text.push_str(&format!("{key} = {value}\n"));
}

/// Text as TOML writes it, on one line.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A number as typed, or text that the reader will then name as a mistake.
fn number(text: &str) -> String {
    if text.parse::<u64>().is_ok() { text.trim_start_matches('+').to_owned() } else { quoted(text) }
}

/// `http-` and the host, in characters that a name may have.
fn name(run: &UrlRun) -> String {
    let rest = run.url.split_once("://").map_or(run.url.as_str(), |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let safe: String = host
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' })
        .take(48)
        .collect();
    let safe = safe.trim_matches(['-', '.']);
    if safe.is_empty() { "http".to_owned() } else { format!("http-{safe}") }
}

/// Whether a header's value is a secret by its name: the credentials of RFC 9110 and RFC 6265, and names
/// that say key, token, secret or password.
#[must_use]
pub fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let known = ["authorization", "proxy-authorization", "cookie", "set-cookie"];
    known.contains(&name.as_str())
        || ["api-key", "apikey", "access-key", "token", "secret", "password", "signature"]
            .iter()
            .any(|word| name.contains(word))
}
