//! What a service says of itself: numbers in Prometheus's text format (version 0.0.4) over HTTP, at `/metrics` and nowhere
//! else.

use crate::http1::{Limits, parse_request, write_response};

/// With more than this to be sent, the connection ends: its other end asks and does not read.
const UNSENT_BYTES_MAX: usize = 256 << 10;

/// A number: name, whether it only grows, help, value.
pub type Number = (&'static str, bool, &'static str, u64);

/// Numbers in the text format, each with its help and its type.
#[must_use]
pub fn text(numbers: &[Number]) -> String {
    let line = |(name, grows, help, value): &Number| {
        let kind = if *grows { "counter" } else { "gauge" };
        format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n")
    };
    numbers.iter().map(line).collect()
}

/// Answers the requests in `bytes` with the text. Gives how many bytes were read, and whether the connection is over: because
/// the other end asked for it, because it does not read, or because what came is no request, which is answered with 400.
pub fn serve(bytes: &[u8], text: impl Fn() -> String, out: &mut Vec<u8>) -> (usize, bool) {
    let mut used = 0;
    loop {
        if out.len() > UNSENT_BYTES_MAX {
            return (bytes.len(), true);
        }
        let request = match parse_request(&bytes[used..], &Limits::SERVER) {
            Ok(None) => return (used, false),
            Ok(Some(request)) => request,
            Err(error) => {
                let kind: &[(&str, &[u8])] = &[("Content-Type", b"text/plain")];
                write_response(out, 400, kind, format!("{error}\n").as_bytes(), false);
                return (bytes.len(), true);
            }
        };
        used += request.used;
        let keep_alive = request.head.keep_alive;
        if request.head.path() == "/metrics" {
            let kind: &[(&str, &[u8])] = &[("Content-Type", b"text/plain; version=0.0.4")];
            write_response(out, 200, kind, text().as_bytes(), keep_alive);
        } else {
            write_response(out, 404, &[], b"", keep_alive);
        }
        if !keep_alive {
            return (bytes.len(), true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: one path says the numbers, each on a line of its own; another says nothing; requests behind one another are
    /// each answered up to a bound, and half of one waits; nonsense, and who asks for it, ends the connection.
    #[test]
    fn what_is_said() {
        let ask = |request: &str| {
            let mut out = Vec::new();
            let said = serve(request.as_bytes(), || text(&[("a_total", true, "b.", 7)]), &mut out);
            (said, String::from_utf8(out).expect("text"))
        };
        let request = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
        let (said, text) = ask(&format!("{request}{request}{}", &request[..9]));
        assert_eq!(said, (2 * request.len(), false));
        let number = "\n# HELP a_total b.\n# TYPE a_total counter\na_total 7\n";
        assert_eq!(text.matches(number).count(), 2, "{text}");
        let (said, text) = ask(&request.replace("Host: a", "Host: a\r\nConnection: close"));
        assert!(said.1 && text.contains(number), "{text}");
        assert!(ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").1.starts_with("HTTP/1.1 404 "));
        assert_eq!(ask(&request[..9]), ((0, false), String::new()));
        let ((used, is_over), text) = ask(&request.repeat(1 << 14));
        assert!(used == request.len() << 14 && is_over && text.len() < 2 * UNSENT_BYTES_MAX);
        let ((used, is_over), text) = ask("nonsense\r\n\r\n");
        assert!(used == 12 && is_over && text.starts_with("HTTP/1.1 400 "), "{text}");
    }
}
