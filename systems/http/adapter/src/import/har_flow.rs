//! A HAR recording as one user's flow: its requests as steps, and what an answer said that a later request holds, carried on
//! as a value. Tokens are then taken anew by each user, and none is copied.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use super::body::Masked;
use super::har::{self, Pair};
use super::{ImportOptions, Imported, counted};
use crate::url::{self, Origin};

/// The shortest text, and number, that is taken for a value of its own: shorter ones stand anywhere.
const TEXT_CHARS_MIN: usize = 6;
const DIGITS_MIN: usize = 4;
/// Values that are looked for, of each answer and of all.
const OF_ANSWER_MAX: usize = 500;
const VALUES_MAX: usize = 20_000;
/// Steps of a flow.
const STEPS_MAX: usize = 200;
/// Answers that a page brings with it, and no user asks for.
const OF_PAGES: [&str; 5] = ["image/", "font/", "text/css", "javascript", "application/wasm"];
/// Headers that a browser writes and no server needs.
const OF_BROWSERS: [&str; 9] = [
    "accept-encoding",
    "cookie",
    "dnt",
    "pragma",
    "cache-control",
    "priority",
    "upgrade-insecure-requests",
    "if-none-match",
    "if-modified-since",
];

#[derive(Deserialize)]
struct Entry {
    request: har::Recorded,
    #[serde(default)]
    response: Answer,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    status: u16,
    #[serde(deserialize_with = "har::or_empty")]
    headers: Vec<Pair>,
    content: Content,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Content {
    mime_type: Option<String>,
    text: Option<String>,
    encoding: Option<String>,
}

/// A step on its way to the experiment.
struct Step {
    request: super::target_lines::Request,
    /// Headers with secrets, which stay only if a value is carried into them.
    secret: Vec<(String, String)>,
    takes: Vec<(String, String)>,
    redirects: u32,
}

/// A value of an answer: which step's, and where in it.
struct Found {
    step: usize,
    name: String,
    place: String,
}

pub(super) fn import(bytes: &[u8], options: &ImportOptions<'_>) -> Result<Imported, String> {
    let har = har::Har::<Entry>::read(bytes, "answers")?;
    let form = har.form();
    let origin =
        har::most_frequent(har.log.entries.iter().map(|it| it.request.url.as_str()), options.host)?;
    let mut making = Making::default();
    for entry in har.log.entries {
        making.entry(entry, &origin);
    }
    if making.steps.is_empty() {
        return Err(format!("none of its requests can be a step of a flow to {origin}"));
    }
    let scheme = if origin.is_tls { "https" } else { "http" };
    let steps = making.text();
    Ok(Imported {
        form,
        url: Some(format!("{scheme}://{}", origin.authority())),
        target_count: making.steps.len(),
        targets: None,
        steps: Some(steps),
        notes: making.notes(),
        secret_headers: making.secret_headers,
        ..Imported::default()
    })
}

#[derive(Default)]
struct Making {
    steps: Vec<Step>,
    found: HashMap<String, Found>,
    /// How often a name was given.
    names: HashMap<String, u32>,
    /// The target of a redirect that the last step follows.
    redirected_to: Option<String>,
    carried: usize,
    masked: usize,
    of_pages: usize,
    elsewhere: usize,
    left_out: usize,
    secret_headers: Vec<String>,
}

impl Making {
    fn entry(&mut self, entry: Entry, origin: &Origin) {
        let Entry { request, response } = entry;
        let place = url::parse(&request.url);
        let target = match place {
            Ok(url::Place { origin: Some(to), target }) if to == *origin => target,
            _ => return self.elsewhere += 1,
        };
        let kind = response.content.mime_type.clone().unwrap_or_default();
        if OF_PAGES.iter().any(|of_page| kind.contains(of_page)) {
            return self.of_pages += 1;
        }
        if self.redirected_to.take().is_some_and(|to| to == target) {
            if let Some(step) = self.steps.last_mut() {
                step.redirects += 1;
            }
            return self.answer(&response, origin);
        }
        if self.steps.len() == STEPS_MAX {
            return self.left_out += 1;
        }
        let Some(step) = self.step(target, request) else { return self.left_out += 1 };
        self.steps.push(step);
        self.answer(&response, origin);
    }

    /// A request with the values that earlier answers gave, and without secrets.
    fn step(&mut self, target: String, recorded: har::Recorded) -> Option<Step> {
        let method = recorded.method.clone();
        crate::targets::check_method(&method).ok()?;
        let path = self.carry(&target);
        let (mut headers, mut secret) = (Vec::new(), Vec::new());
        for Pair { name, value } in recorded.headers {
            let lower = name.to_ascii_lowercase();
            let is_not_copied = har::NOT_COPIED.contains(&lower.as_str())
                || OF_BROWSERS.contains(&lower.as_str())
                || lower.starts_with("sec-")
                || name.starts_with(':');
            let value = value.unwrap_or_default();
            if is_not_copied || crate::targets::check_header(&name, &value).is_err() {
                continue;
            }
            let carried = self.carry(&value);
            let is_secret =
                super::secrets::is_secret(&name) || super::secrets::looks_secret(&value);
            match is_secret && carried == value {
                true => secret.push((name, value)),
                false => headers.push((name, carried)),
            }
        }
        for (name, _) in &secret {
            if !self.secret_headers.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                self.secret_headers.push(name.clone());
            }
        }
        let mut body = Vec::new();
        if let Some(data) = recorded.post_data {
            let kind = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
            let kind =
                kind.map(|(_, value)| value.clone()).or(data.mime_type.clone()).unwrap_or_default();
            let text = String::from_utf8(har::bytes_of(data, &kind)?).ok()?;
            let carried = self.carry(&text);
            match super::body::masked(&kind, carried.into_bytes()) {
                Masked::Body(bytes, count) => {
                    self.masked += count;
                    body = bytes;
                }
                Masked::Opaque => return None,
            }
        }
        let path = match path == target {
            true => {
                let (path, count) = super::secrets::masked_url(&path);
                self.masked += count;
                path
            }
            false => path,
        };
        let request = super::target_lines::Request { method, path, headers, body };
        Some(Step { request, secret, takes: Vec::new(), redirects: 0 })
    }

    /// The text with each value that an earlier answer gave replaced by its name, the longest first.
    fn carry(&mut self, text: &str) -> String {
        let mut known: Vec<&String> =
            self.found.keys().filter(|value| text.contains(value.as_str())).collect();
        known.sort_by_key(|value| (std::cmp::Reverse(value.len()), (*value).clone()));
        let known: Vec<String> = known.into_iter().cloned().collect();
        let mut text = text.to_owned();
        for value in known {
            if !text.contains(&value) {
                continue;
            }
            let found = &self.found[&value];
            let take = (found.name.clone(), found.place.clone());
            text = text.replace(&value, &format!("{{{{{}}}}}", take.0));
            let takes = &mut self.steps[found.step].takes;
            if !takes.contains(&take) {
                takes.push(take);
                self.carried += 1;
            }
        }
        text
    }

    /// Keeps the values of an answer that a later request may hold.
    fn answer(&mut self, answer: &Answer, origin: &Origin) {
        let Some(step) = self.steps.len().checked_sub(1) else { return };
        let header = |wanted: &str| {
            let it = answer.headers.iter().find(|it| it.name.eq_ignore_ascii_case(wanted));
            it.and_then(|it| it.value.clone())
        };
        if let Some(location) = header("location") {
            let is_redirect = (300..400).contains(&answer.status);
            let target = match url::parse(&location) {
                Ok(url::Place { origin: None, target }) => Some(target),
                Ok(url::Place { origin: Some(to), target }) if to == *origin => Some(target),
                _ => None,
            };
            match is_redirect {
                true => self.redirected_to = target,
                false => self.keep(step, &location, "location", "header:location".to_owned()),
            }
        }
        for Pair { name, value } in &answer.headers {
            if name.to_ascii_lowercase().contains("csrf")
                || name.to_ascii_lowercase().contains("token")
            {
                let value = value.clone().unwrap_or_default();
                self.keep(step, &value, name, format!("header:{}", name.to_ascii_lowercase()));
            }
        }
        let Some(text) = &answer.content.text else { return };
        let text = match answer.content.encoding.as_deref() {
            Some("base64") => match STANDARD.decode(text).map(String::from_utf8) {
                Ok(Ok(text)) => text,
                _ => return,
            },
            _ => text.clone(),
        };
        match serde_json::from_str::<Value>(&text) {
            Ok(value) => {
                let mut left = OF_ANSWER_MAX;
                self.of_json(step, &value, "", &mut left);
            }
            Err(_) => self.of_page(step, &text),
        }
    }

    fn of_json(&mut self, step: usize, value: &Value, at: &str, left: &mut usize) {
        if *left == 0 {
            return;
        }
        let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
        match value {
            Value::Object(object) => {
                for (name, value) in object {
                    self.of_json(step, value, &format!("{at}/{}", escaped(name)), left);
                }
            }
            Value::Array(items) => {
                for (nth, value) in items.iter().enumerate() {
                    self.of_json(step, value, &format!("{at}/{nth}"), left);
                }
            }
            Value::String(text) => {
                *left -= 1;
                self.keep(step, text, at, format!("json:{at}"));
            }
            Value::Number(number) => {
                *left -= 1;
                let digits = number.to_string();
                if digits.len() >= DIGITS_MIN && digits.bytes().all(|b| b.is_ascii_digit()) {
                    self.insert(step, digits, at, format!("json:{at}"));
                }
            }
            _ => {}
        }
    }

    /// Hidden fields of a form: `name="csrf" value="…"`.
    fn of_page(&mut self, step: usize, page: &str) {
        for tag in page.split("<input").skip(1).take(OF_ANSWER_MAX) {
            let tag = tag.split('>').next().unwrap_or_default();
            let of = |key: &str| tag.split(&format!(" {key}=\"")).nth(1)?.split('"').next();
            let (Some(name), Some(value)) = (of("name"), of("value")) else { continue };
            let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
            if is_plain && tag.find(" name=") < tag.find(" value=") {
                let pattern = format!("regex:name=\"{name}\"[^>]* value=\"([^\"]*)\"");
                self.keep(step, value, name, pattern);
            }
        }
    }

    fn keep(&mut self, step: usize, value: &str, name: &str, place: String) {
        let is_plain = value.chars().all(|c| !c.is_control() && c != '{' && c != '}');
        if value.chars().count() >= TEXT_CHARS_MIN && is_plain && !value.contains(' ') {
            self.insert(step, value.to_owned(), name, place);
        }
    }

    fn insert(&mut self, step: usize, value: String, name: &str, place: String) {
        if self.found.len() >= VALUES_MAX {
            return;
        }
        let last = name.rsplit('/').find(|part| part.parse::<u32>().is_err()).unwrap_or("value");
        let plain: String =
            last.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_' || *c == '-').collect();
        let begins = plain.starts_with(|c: char| c.is_ascii_alphabetic());
        let plain = if begins { plain } else { "value".to_owned() };
        // The newest answer that said it is the one that a user would take it from.
        if let Some(found) = self.found.get(&value)
            && found.step == step
        {
            return;
        }
        let count = self.names.entry(plain.clone()).or_default();
        *count += 1;
        let name = if *count == 1 { plain } else { format!("{plain}{count}") };
        self.found.insert(value, Found { step, name, place });
    }

    /// The steps as they stand in an experiment.
    fn text(&self) -> String {
        let quoted = super::experiment::quoted;
        let mut text = String::new();
        for step in &self.steps {
            let request = &step.request;
            let path = request.path.split('?').next().unwrap_or("/");
            text.push_str(&format!(
                "\n[[workload.step]]\nname = {}\n",
                quoted(&format!("{} {path}", request.method))
            ));
            let usual = if request.body.is_empty() { "GET" } else { "POST" };
            if request.method != usual {
                text.push_str(&format!("method = {}\n", quoted(&request.method)));
            }
            text.push_str(&format!("path = {}\n", quoted(&literally(&request.path))));
            if !request.body.is_empty() {
                let body = String::from_utf8_lossy(&request.body);
                text.push_str(&format!("body = {}\n", quoted(&literally(&body))));
            }
            let pair = |(name, value): &(String, String)| {
                format!("{} = {}", quoted(name), quoted(&literally(value)))
            };
            if !request.headers.is_empty() {
                let headers: Vec<String> = request.headers.iter().map(pair).collect();
                text.push_str(&format!("headers = {{ {} }}\n", headers.join(", ")));
            }
            for (name, _) in &step.secret {
                text.push_str(&format!(
                    "# the header {} was left out: it holds a secret that no answer gave\n",
                    super::experiment::comment(name)
                ));
            }
            if !step.takes.is_empty() {
                let take = |(name, place): &(String, String)| {
                    format!("{} = {}", quoted(name), quoted(place))
                };
                let takes: Vec<String> = step.takes.iter().map(take).collect();
                text.push_str(&format!("take = {{ {} }}\n", takes.join(", ")));
            }
            if step.redirects > 0 {
                text.push_str(&format!("redirects = {}\n", step.redirects));
            }
        }
        text
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut note = |count: usize, words: String| {
            if count > 0 {
                notes.push(words);
            }
        };
        note(
            self.carried,
            format!(
                "carried on from answers to later requests: {}",
                counted(self.carried, "value")
            ),
        );
        note(
            self.elsewhere,
            format!("left out: {} to other servers", counted(self.elsewhere, "request")),
        );
        note(
            self.of_pages,
            format!(
                "left out: {} for images, scripts and styles",
                counted(self.of_pages, "request")
            ),
        );
        note(
            self.left_out,
            format!("left out: {} that cannot be a step", counted(self.left_out, "request")),
        );
        let masked = counted(self.masked, "secret");
        note(
            self.masked,
            format!(
                "replaced by REMOVED: {masked}; put a column of workload.data there, such as {{{{password}}}}"
            ),
        );
        notes
    }
}

/// A text that names no variable of this host.
fn literally(text: &str) -> String {
    String::from_utf8(model::secret::escaped(text.as_bytes())).expect("text with a dollar put in")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HAR: &str = r#"{"log":{"version":"1.2","entries":[
        {"request":{"method":"POST","url":"http://shop.example/login","headers":[{"name":"Content-Type","value":"application/json"},
            {"name":"sec-fetch-mode","value":"cors"},{"name":"Cookie","value":"old=1"}],
            "postData":{"mimeType":"application/json","text":"{\"login\":\"ann\",\"password\":\"hunter22\"}"}},
         "response":{"status":200,"headers":[],"content":{"mimeType":"application/json","text":"{\"data\":{\"token\":\"tok-123456\",\"cart\":98765}}"}}},
        {"request":{"method":"GET","url":"http://shop.example/app.js","headers":[]},
         "response":{"status":200,"headers":[],"content":{"mimeType":"text/javascript","text":"x"}}},
        {"request":{"method":"GET","url":"http://cdn.example/x","headers":[]}},
        {"request":{"method":"GET","url":"http://shop.example/","headers":[{"name":"Authorization","value":"Bearer tok-123456"}]},
         "response":{"status":302,"headers":[{"name":"Location","value":"/cart/98765"}],"content":{}}},
        {"request":{"method":"GET","url":"http://shop.example/cart/98765","headers":[]},
         "response":{"status":200,"headers":[],"content":{"mimeType":"text/html","text":"<form><input type=\"hidden\" name=\"csrf\" value=\"c-abcdef\"></form>"}}},
        {"request":{"method":"POST","url":"http://shop.example/pay?cart=98765","headers":[{"name":"Content-Type","value":"application/x-www-form-urlencoded"},
            {"name":"X-Api-Key","value":"s3cr3tkey"}],
            "postData":{"mimeType":"application/x-www-form-urlencoded","text":"csrf=c-abcdef&ok=1"}},
         "response":{"status":200,"headers":[],"content":{}}}]}}"#;

    /// Claim: what an answer gave is taken there and stands in the later requests, a redirect is followed by its step, what a
    /// page brings with it is left out, and no secret is copied.
    #[test]
    fn a_recording_becomes_a_flow() {
        let found = import(HAR.as_bytes(), &ImportOptions::default()).unwrap();
        let expected = r#"
[[workload.step]]
name = "POST /login"
path = "/login"
body = "{\"login\":\"ann\",\"password\":\"REMOVED\"}"
headers = { "Content-Type" = "application/json" }
take = { "token" = "json:/data/token", "cart" = "json:/data/cart" }

[[workload.step]]
name = "GET /"
path = "/"
headers = { "Authorization" = "Bearer {{token}}" }
take = { "csrf" = "regex:name=\"csrf\"[^>]* value=\"([^\"]*)\"" }
redirects = 1

[[workload.step]]
name = "POST /pay"
path = "/pay?cart={{cart}}"
body = "csrf={{csrf}}&ok=1"
headers = { "Content-Type" = "application/x-www-form-urlencoded" }
# the header X-Api-Key was left out: it holds a secret that no answer gave
"#;
        assert_eq!(found.steps.as_deref(), Some(expected));
        assert_eq!(found.url.as_deref(), Some("http://shop.example"));
        assert_eq!(
            (found.target_count, found.secret_headers.as_slice()),
            (3, &["X-Api-Key".to_owned()][..])
        );
        assert_eq!(found.notes.len(), 4, "{:?}", found.notes);
        let experiment = crate::experiment(&found, "shop", None);
        for secret in ["hunter22", "tok-123456", "s3cr3tkey", "old=1"] {
            assert!(!experiment.contains(secret), "{experiment}");
        }
    }
}
