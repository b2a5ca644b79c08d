//! What the server says of itself, in Prometheus's text format, on a listener of its own: never through the queue, and
//! with no lies in it. It must never say more than its own counters.

use wire::http1::{Limits, parse_request, write_response};

/// What is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// Transactions and requests that have been served.
    pub(crate) commits: u64,
    /// Those that were taken and have not been served yet.
    pub(crate) queued: u64,
}

/// Answers the request at the beginning of `bytes`. Gives how long it is and whether the connection goes on; `None` while
/// it is incomplete; an error's text if it is none.
pub(crate) fn answer(
    bytes: &[u8],
    said: Said,
    out: &mut Vec<u8>,
) -> Result<Option<(usize, bool)>, String> {
    let Some(request) = parse_request(bytes, &Limits::SERVER).map_err(|error| error.to_string())?
    else {
        return Ok(None);
    };
    let (used, keep_alive) = (request.used, request.head.keep_alive);
    if request.head.path() == "/metrics" {
        let kind: &[(&str, &[u8])] = &[("Content-Type", b"text/plain; version=0.0.4")];
        write_response(out, 200, kind, text(said).as_bytes(), keep_alive);
    } else {
        write_response(out, 404, &[], b"", keep_alive);
    }
    Ok(Some((used, keep_alive)))
}

fn text(said: Said) -> String {
    let Said { commits, queued } = said;
    format!(
        "# HELP echo_commits_total Transactions that have been served.\n# TYPE echo_commits_total counter\n\
         echo_commits_total {commits}\n\
         # HELP echo_queue_length Transactions that wait or are being served.\n# TYPE echo_queue_length gauge\n\
         echo_queue_length {queued}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: one path says both numbers, each on a line of its own; another path says nothing; half a request waits.
    #[test]
    fn what_is_said() {
        let said = Said { commits: 7, queued: 2 };
        let ask = |request: &str| {
            let mut out = Vec::new();
            let used = answer(request.as_bytes(), said, &mut out);
            (used, String::from_utf8(out).unwrap())
        };
        let request = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
        let (used, text) = ask(request);
        assert_eq!(used, Ok(Some((request.len(), true))));
        assert!(text.contains("\necho_commits_total 7\n"), "{text}");
        assert!(text.ends_with("\necho_queue_length 2\n"), "{text}");
        assert!(ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").1.starts_with("HTTP/1.1 404 "));
        assert_eq!(ask(&request[..9]), (Ok(None), String::new()));
        assert!(ask("nonsense\r\n\r\n").0.is_err());
    }
}
