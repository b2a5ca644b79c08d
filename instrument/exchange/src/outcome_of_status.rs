//! The meaning of a status where only that and an error text are known: [`Outcome::of_http_status`], but for a success with
//! an error, which is none, and where there was no answer what the client's error text says. Unknown stays unknown.

use model::{Class, Outcome};

/// The error text of results that were never answered and have no other.
pub(crate) const NO_ANSWER: &str = "no answer";

/// The outcome of a result with this status; `error` decides if it is 0, which means that there was no answer, and if it is a
/// success by its status alone.
pub(crate) fn outcome(status: u16, error: &str) -> Outcome {
    match (status, Outcome::of_http_status(status)) {
        (0, _) => without_answer(error),
        (_, Outcome::Committed) if error == NO_ANSWER => Outcome::Unknown,
        (_, Outcome::Committed) if !error.is_empty() => Outcome::Rejected(Class::Server),
        (_, by_status) => by_status,
    }
}

/// Go's words for what the client itself ran out of.
const CLIENT: [&str; 4] = [
    "no such host",
    "too many open files",
    "cannot assign requested address",
    "server misbehaving",
];
/// Go's words for a connection that was never there.
const TRANSPORT: [&str; 5] =
    ["connection refused", "no route to host", "network is unreachable", "tls:", "x509:"];

fn without_answer(error: &str) -> Outcome {
    let says = |words: &[&str]| words.iter().any(|word| error.contains(word));
    if says(&CLIENT) {
        Outcome::Rejected(Class::Client)
    } else if says(&TRANSPORT) {
        Outcome::Rejected(Class::Transport)
    } else {
        // A timeout, a connection that died: the request may have been carried out.
        Outcome::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: statuses mean what the HTTP adapter's table says, a success with an error is none, and no answer is unknown
    /// unless the client says that it never got as far as asking.
    #[test]
    fn outcomes() {
        for (status, error, expected) in [
            (200, "", "committed"),
            (399, "", "committed"),
            (200, "spent", "rejected(server)"),
            (200, "no answer", "unknown"),
            (404, "404 Not Found", "rejected(bad_request)"),
            (408, "", "rejected(server)"),
            (409, "", "rejected(conflict)"),
            (429, "", "rejected(limited)"),
            (503, "", "rejected(overloaded)"),
            (599, "", "rejected(server)"),
            (0, "Get \"http://h/\": context deadline exceeded", "unknown"),
            (0, "EOF", "unknown"),
            (0, "dial tcp 127.0.0.1:9: connect: connection refused", "rejected(transport)"),
            (0, "dial tcp: lookup h: no such host", "rejected(client)"),
        ] {
            assert_eq!(outcome(status, error).to_string(), expected, "{status} {error}");
        }
    }
}
