//! Files of an experiment, and texts with the variables of the environment that they name; what is secret in them is known from here on,
//! and stored nowhere.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::secret;

use crate::targets;

/// The longest body of one request.
pub(crate) const BODY_BYTES_MAX: u64 = 16 << 20;

/// Bytes of a body that are looked through for secrets: passwords stand at its beginning, and files may be large.
const SECRETS_BYTES_MAX: usize = 64 << 10;

/// The shortest value in a cookie that is taken for a secret of its own, in bytes.
const COOKIE_BYTES_MIN: usize = 8;

/// A text with the variables of the environment that it names (`${NAME}`): secrets then stand in no file. What it holds
/// that is secret is known from here on.
pub(crate) fn given(text: &str) -> Result<String, String> {
    let value = secret::expand(text, &variable)?;
    taint(&value);
    Ok(value)
}

/// The same of a URL, whose host may not come from the environment: a name server would be told it.
pub(crate) fn given_url(text: &str) -> Result<String, String> {
    if secret::has_host_of_environment(text) {
        return Err(format!(
            "expected a host name, got `{text}`, whose host a name server would learn from the environment; write the host \
             itself, or take the whole URL from one variable: url = \"${{URL}}\""
        ));
    }
    given(text)
}

/// The same of bytes, such as a body.
pub(crate) fn given_bytes(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let bytes = secret::expand_bytes(bytes, &variable)?;
    taint(beginning(&bytes));
    Ok(bytes)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn taint(text: &str) {
    secret::spans(text).iter().for_each(|span| secret::taint(&text[span.range.clone()]));
}

/// A header's value, which may also be `env:NAME`, or `Bearer env:NAME`.
pub(crate) fn looked_up(header: &str, text: &str) -> Result<String, String> {
    let value =
        secret::expand(text, &variable).map_err(|why| format!("header `{header}`: {why}"))?;
    if secret::is_secret_name(header) || secret::looks_secret(&value) {
        taint_header(header, &value);
    }
    targets::check_header(header, &value)?;
    Ok(value)
}

/// The value of a header with credentials, without its scheme; the password in basic ones; each part of a cookie that is
/// long enough to be one.
fn taint_header(header: &str, value: &str) {
    let Some(span) = secret::value_span(header, value) else { return };
    let credentials = &value[span.range];
    secret::taint(credentials);
    let pair =
        STANDARD.decode(credentials.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    if let Some((_, password)) = pair.as_deref().and_then(|pair| pair.split_once(':')) {
        secret::taint(password);
    }
    let parts = credentials.split("; ").filter_map(|part| part.split_once('='));
    parts
        .filter(|(_, value)| value.len() >= COOKIE_BYTES_MIN)
        .for_each(|(_, value)| secret::taint(value));
}

/// The first bytes of a body, as far as it is text: what is looked through for secrets.
fn beginning(body: &[u8]) -> &str {
    let bytes = &body[..body.len().min(SECRETS_BYTES_MAX)];
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

/// A file's content, up to a bound.
pub(crate) fn bytes_of(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let read = || {
        let mut bytes = Vec::new();
        File::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes: Vec<u8> = read().map_err(|error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("there is no such file ({})", path.display()),
        _ => format!("cannot be read: {error}"),
    })?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("longer than {} MiB, the most that is read", bytes_max >> 20));
    }
    Ok(bytes)
}
