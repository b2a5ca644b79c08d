//! `assay run URL --rate …` as an experiment file: the quick way leads into the file way, because the text
//! made here is resolved like any other and, without its secrets ([`crate::redact`]), is what the run folder keeps.

use model::plan::SearchKey;

/// The options of a quick run.
#[derive(Clone, Debug, Default)]
pub struct UrlRun {
    /// The URL; empty if the targets come from a file.
    pub url: String,
    /// Whether the server's certificate is not verified.
    pub insecure: bool,
    /// Whether HTTP/2 is spoken.
    pub http2: bool,
    /// Request method; empty = the adapter's default.
    pub method: String,
    /// Header lines: name and value. `env:NAME` and `${NAME}` are read from the environment by the adapter when it
    /// runs, and never stored.
    pub headers: Vec<(String, String)>,
    /// Request body; empty = none.
    pub body: String,
    /// Assertions on every answer: a key of `[workload.expect]`, or one in its tables (`header.NAME`, `json./POINTER`), and
    /// its value.
    pub expects: Vec<(String, String)>,
    /// Target file; empty = none.
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
    /// The other URL that is loaded by turns; empty = none.
    pub against: String,
    /// The threshold that a search is to keep; empty = no search.
    pub find: String,
    /// The key whose highest value is searched for; empty = clients where they are given, else the rate.
    pub over: String,
    /// Threshold expressions.
    pub thresholds: Vec<String>,
}

/// The rate of a quick run that names neither rate nor clients, as vegeta's default.
const RATE: &str = "50/s";

/// The experiment file of a quick run, with its secrets.
#[must_use]
pub fn from_url(run: &UrlRun) -> String {
    let mut text = String::from("# Made from a command line. To repeat it: assay run FILE\n");
    line(&mut text, "name", &quoted(&name(run)));
    text.push_str("\n[system]\n");
    line(&mut text, "kind", &quoted(kind(&run.url)));
    if !run.url.is_empty() {
        text.push_str("[system.deploy]\n");
        line(&mut text, "url", &quoted(&run.url));
    }
    let mut table = if run.url.is_empty() { "[system.deploy]\n" } else { "" };
    for (is_given, line) in
        [(run.insecure, "insecure = true\n"), (run.http2, "http_version = \"2\"\n")]
    {
        if is_given {
            text.push_str(&format!("{table}{line}"));
            table = "";
        }
    }
    if !run.against.is_empty() {
        text.push_str("\n[against.deploy]\n");
        line(&mut text, "url", &quoted(&run.against));
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
    if !run.find.is_empty() {
        text.push_str("\n[search]\n");
        line(&mut text, "find", &quoted(search_over(&run.over, !run.clients.is_empty())));
    }
    for threshold in [&run.find].into_iter().filter(|it| !it.is_empty()).chain(&run.thresholds) {
        text.push_str("\n[[threshold]]\n");
        line(&mut text, "expr", &quoted(threshold));
    }
    text
}

/// The key that a search on the command line is over.
#[must_use]
pub fn search_over(word: &str, has_clients: bool) -> &'static str {
    let named = SearchKey::ALL.into_iter().find(|key| key.word() == word);
    let default = if has_clients { SearchKey::Clients } else { SearchKey::Rate };
    named.unwrap_or(default).path()
}

/// The schemes of URLs that can be loaded, each with the kind of system that speaks it.
const SCHEMES: [(&str, &str); 6] = [
    ("http", "http"),
    ("https", "http"),
    ("grpc", "grpc"),
    ("grpcs", "grpc"),
    ("ws", "websocket"),
    ("wss", "websocket"),
];

/// Whether a text is a URL that can be loaded.
#[must_use]
pub fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    SCHEMES.iter().any(|(known, _)| scheme == Some(known))
}

/// The kind of system that a URL names; that of HTTP where there is none.
fn kind(url: &str) -> &'static str {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    SCHEMES.iter().find(|(known, _)| *known == scheme).map_or("http", |(_, kind)| kind)
}

fn workload(run: &UrlRun) -> String {
    let mut text = String::new();
    let (body, headers_key) = match kind(&run.url) {
        "grpc" => ("message", "metadata"),
        "websocket" => ("message", "headers"),
        _ => ("body", "headers"),
    };
    for (key, value) in [("targets", &run.targets), ("method", &run.method), (body, &run.body)] {
        if !value.is_empty() {
            line(&mut text, key, &quoted(value));
        }
    }
    if !run.headers.is_empty() {
        line(&mut text, headers_key, &headers(&run.headers));
    }
    if !run.expects.is_empty() {
        line(&mut text, "expect", &expectations(&run.expects));
    }
    if text.is_empty() { text } else { format!("\n[workload]\n{text}") }
}

/// `{ name = value }`; a name that comes several times has a list of values.
fn headers(headers: &[(String, String)]) -> String {
    let mut grouped: Vec<(&str, Vec<String>)> = Vec::new();
    for (name, value) in headers {
        match grouped.iter_mut().find(|(known, _)| known == name) {
            Some((_, values)) => values.push(quoted(value)),
            None => grouped.push((name, vec![quoted(value)])),
        }
    }
    let entries: Vec<String> = grouped
        .iter()
        .map(|(name, values)| match values.as_slice() {
            [one] => format!("{} = {one}", quoted(name)),
            several => format!("{} = [{}]", quoted(name), several.join(", ")),
        })
        .collect();
    format!("{{ {} }}", entries.join(", "))
}

/// `{ status = "200", contains = ["a", "b"], json = { "/n" = 1 } }`. What is wrong with it is the adapter's to say.
fn expectations(expects: &[(String, String)]) -> String {
    let mut entries: Vec<String> = Vec::new();
    for key in ["status", "contains", "regex"] {
        let of_key = expects.iter().filter(|(known, _)| known == key);
        let values: Vec<String> = of_key.map(|(_, value)| quoted(value)).collect();
        if !values.is_empty() {
            entries.push(format!("{key} = [{}]", values.join(", ")));
        }
    }
    for (table, written) in [("header", quoted as fn(&str) -> String), ("json", json_value)] {
        let prefix = format!("{table}.");
        let of_table =
            expects.iter().filter_map(|(key, value)| Some((key.strip_prefix(&prefix)?, value)));
        let values: Vec<String> =
            of_table.map(|(key, value)| format!("{} = {}", quoted(key), written(value))).collect();
        if !values.is_empty() {
            entries.push(format!("{table} = {{ {} }}", values.join(", ")));
        }
    }
    let is_grouped = |key: &str| {
        ["status", "contains", "regex"].contains(&key)
            || key.starts_with("header.")
            || key.starts_with("json.")
    };
    for (key, value) in expects.iter().filter(|(key, _)| !is_grouped(key)) {
        let value = if key == "length" { number(value) } else { quoted(value) };
        entries.push(format!("{} = {value}", quoted(key)));
    }
    format!("{{ {} }}", entries.join(", "))
}

/// A number, `true` or `false` as it is typed; anything else, also in quotes, is text.
fn json_value(text: &str) -> String {
    let is_number = text.parse::<i64>().is_ok()
        || (text.contains('.') && text.parse::<f64>().is_ok_and(f64::is_finite));
    match text {
        "true" | "false" => text.to_owned(),
        _ if is_number && !text.starts_with(['+', '.']) && !text.ends_with('.') => text.to_owned(),
        _ => quoted(text.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(text)),
    }
}

fn line(text: &mut String, key: &str, value: &str) {
    text.push_str(&format!("{key} = {value}\n"));
}

/// Text as TOML writes it, on one line.
pub(crate) fn quoted(text: &str) -> String {
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

/// The kind and the host, in characters that a name may have.
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
    let kind = kind(&run.url);
    if safe.is_empty() { kind.to_owned() } else { format!("{kind}-{safe}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Input, Source, resolve};

    /// Claim: what a command line says is found again in the plan, through text that TOML reads back exactly,
    /// whatever characters it has.
    #[test]
    fn a_quick_run_is_an_experiment() {
        let run = UrlRun {
            url: "http://127.0.0.1:8080/a?b=\"c\"".into(),
            method: "POST".into(),
            headers: vec![
                ("X-A".into(), "1".into()),
                ("Authorization".into(), "env:TOKEN".into()),
                ("X-A".into(), "2\\".into()),
            ],
            body: "line\nµ\u{1}\u{7f}".into(),
            rate: "80/s".into(),
            duration: "5s".into(),
            connections: "8".into(),
            thresholds: vec!["p99 < 1s".into()],
            ..UrlRun::default()
        };
        let text = from_url(&run);
        let file = Source { name: "quick.toml".into(), text };
        let plan = resolve(&Input { file, ..Input::default() }).unwrap().plan;
        assert_eq!(plan.name, "http-127.0.0.1-8080");
        let setting = &plan.settings[0];
        let text = |options: &model::options::Options, path| options.get(path).map(|v| v.label());
        assert_eq!(text(&setting.system.deploy, "url"), Some(run.url));
        assert_eq!(text(&setting.system.workload, "body"), Some(run.body));
        assert_eq!(text(&setting.system.workload, "headers.X-A"), Some("[1,2\\]".into()));
        assert_eq!(
            text(&setting.system.workload, "headers.Authorization"),
            Some("env:TOKEN".into())
        );
        assert_eq!(setting.load.connections, 8);
        assert_eq!(plan.thresholds[0].expr, "p99 < 1s");
    }

    /// Claim: what a command line expects of answers is found again in the plan, grouped by what it is of.
    #[test]
    fn expectations_are_written() {
        let of = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let expects = vec![
            of("status", "200"),
            of("contains", "a\"b"),
            of("json./n", "1"),
            of("contains", "c"),
            of("json./s", "\"1\""),
            of("header.content-type", "text/html"),
            of("length", "12"),
        ];
        let run = UrlRun { url: "http://h/".into(), expects, ..UrlRun::default() };
        let file = Source { name: "quick.toml".into(), text: from_url(&run) };
        let plan = resolve(&Input { file, ..Input::default() }).unwrap().plan;
        let expect = plan.settings[0].system.workload.get("expect").expect("it is there").label();
        let said = "{contains=[a\"b,c],header={content-type=text/html},json={/n=1,/s=1},length=12,status=[200]}";
        assert_eq!(expect, said);
    }

    /// Claim: secrets are in the text that is run and not in the one that is stored; references are in both.
    #[test]
    fn secrets_stay_out() {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = vec![header("Authorization", "abc"), header("Cookie", "env:COOKIE")];
        let run = UrlRun { url: "http://u:pw@h/".into(), headers, ..UrlRun::default() };
        let text = from_url(&run);
        let stored = crate::redact(&text);
        assert!(!stored.contains("abc") && !stored.contains(":pw@"), "{stored}");
        assert!(stored.contains("env:COOKIE"), "{stored}");
        assert!(text.contains("abc") && text.contains(":pw@"), "{text}");
    }

    /// Claim: a closed loop is written as one, and a number that is none is named by the reader.
    #[test]
    fn clients_and_mistakes() {
        let run = UrlRun { url: "http://h/".into(), clients: "4".into(), ..UrlRun::default() };
        let file = Source { name: "quick.toml".into(), text: from_url(&run) };
        let plan = resolve(&Input { file, ..Input::default() }).unwrap().plan;
        assert!(matches!(
            plan.settings[0].load.arrivals,
            model::plan::Arrivals::Closed { clients: 4, .. }
        ));
        let run = UrlRun { connections: "many".into(), ..run };
        let file = Source { name: "quick.toml".into(), text: from_url(&run) };
        let rejected = resolve(&Input { file, ..Input::default() }).unwrap_err();
        assert_eq!(
            rejected.problems()[0].message,
            "`load.connections` must be a whole number, but is text"
        );
    }
}
