//! Headers of a step, made once for the version of HTTP that it is sent in: lines of text, or a block whose values that never
//! change were encoded before the load. It writes no pseudo-header but those of the server.

use wire::http2::{FieldName, server_block, write_header};

use crate::flow::template::{Moment, Template};
use crate::flow::user::User;
use crate::url::Origin;

/// Headers, with places for values.
#[derive(Clone, Debug)]
pub(crate) enum Headers {
    /// For HTTP/1.1: each with its line end.
    Lines(Template),
    /// For HTTP/2: those that are always the same, then the others.
    Block { fixed: Vec<u8>, fields: Vec<(FieldName, Template)> },
}

impl Headers {
    /// Of names and values.
    pub(crate) fn new(is_http2: bool, list: Vec<(String, Template)>) -> Self {
        if is_http2 {
            return Self::block(Vec::new(), list);
        }
        let lines = list.into_iter().fold(Template::default(), |lines, (name, value)| {
            let name = Template::text(format!("{name}: ").as_bytes());
            lines.then(name).then(value).then(Template::text(b"\r\n"))
        });
        Self::Lines(lines)
    }

    /// The same of a request to a server: over HTTP/2 its scheme and authority stand before them.
    pub(crate) fn to_server(
        is_http2: bool,
        origin: &Origin,
        list: Vec<(String, Template)>,
    ) -> Self {
        if !is_http2 {
            return Self::new(false, list);
        }
        let scheme = if origin.is_tls { "https" } else { "http" };
        let host = list.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let host = host.and_then(|(_, value)| std::str::from_utf8(value.as_text()?).ok());
        let authority = host.map_or_else(|| origin.authority(), str::to_owned);
        Self::block(server_block(scheme, &authority), list)
    }

    fn block(mut fixed: Vec<u8>, list: Vec<(String, Template)>) -> Self {
        let mut fields = Vec::new();
        for (name, value) in list {
            match (value.as_text(), FieldName::new(&name)) {
                (Some(text), _) => write_header(&mut fixed, &name, text),
                (None, Some(name)) => fields.push((name, value)),
                (None, None) => {}
            }
        }
        Self::Block { fixed, fields }
    }

    /// Appends them; `scratch` holds a value at a time.
    pub(crate) fn fill(
        &self,
        user: &mut User,
        moment: &Moment<'_>,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        match self {
            Self::Lines(lines) => lines.fill(user, moment, out),
            Self::Block { fixed, fields } => {
                out.extend_from_slice(fixed);
                for (name, value) in fields {
                    scratch.clear();
                    value.fill(user, moment, scratch);
                    name.write(scratch, out);
                }
            }
        }
    }
}
