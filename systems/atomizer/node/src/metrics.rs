//! What nodes say of themselves, in Prometheus's text format, on a listener of their own.

use wire::http1::{Limits, parse_request, write_response};

use crate::node::Atomizer;
use crate::protocol::Malformed;

/// A number: name, whether it only grows, help, value.
pub(crate) type Number = (&'static str, bool, &'static str, u64);

/// Answers the requests in `bytes`. Gives how many were read, and whether the connection is over.
pub(crate) fn serve(bytes: &[u8], text: impl Fn() -> String, out: &mut Vec<u8>) -> (usize, bool) {
    let mut used = 0;
    loop {
        let request = match parse_request(&bytes[used..], &Limits::SERVER) {
            Ok(None) => return (used, false),
            Ok(Some(request)) => request,
            Err(_) => return (bytes.len(), true),
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

/// The numbers as text.
pub(crate) fn text(numbers: &[Number]) -> String {
    let line = |(name, grows, help, value): &Number| {
        let kind = if *grows { "counter" } else { "gauge" };
        format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n")
    };
    numbers.iter().map(line).collect()
}

/// How often bytes were refused, by reason, under this name.
pub(crate) fn refusals(name: &str, refusals: &crate::protocol::Refusals) -> String {
    let mut text = format!(
        "# HELP {name} Connections closed for what they sent, by reason.\n# TYPE {name} counter\n"
    );
    for why in Malformed::ALL {
        text.push_str(&format!("{name}{{reason=\"{}\"}} {}\n", why.name(), refusals.of(why)));
    }
    text
}

pub(crate) fn of_atomizer(node: &Atomizer) -> String {
    let (counts, fates, missed) = (node.counts(), node.machine().fates(), node.missed());
    let standing = node.standing();
    let leads = u64::from(standing.leader == standing.replica);
    let numbers: [Number; 24] = [
        ("atomizer_height", false, "The height of the last block.", standing.height),
        ("atomizer_leads", false, "Whether this replica leads.", leads),
        (
            "atomizer_waiting",
            false,
            "Transactions that wait for the log.",
            node.intake().waiting() as u64,
        ),
        (
            "atomizer_partial",
            false,
            "Transactions that wait for attestations.",
            node.intake().partial() as u64,
        ),
        (
            "atomizer_unarchived_bytes",
            false,
            "Bytes of blocks that nobody has stored.",
            node.machine().kept().bytes(),
        ),
        ("atomizer_received_total", true, "Notifications read.", counts.received),
        (
            "atomizer_complete_total",
            true,
            "Transactions whose inputs were all vouched for.",
            counts.complete,
        ),
        ("atomizer_busy_total", true, "Transactions refused because too much waited.", counts.busy),
        (
            "atomizer_early_total",
            true,
            "Transactions refused before the log because of their heights.",
            counts.early,
        ),
        (
            "atomizer_incomplete_total",
            true,
            "Transactions not vouched for in time.",
            counts.incomplete,
        ),
        (
            "atomizer_misled_total",
            true,
            "Notifications while this replica did not lead.",
            counts.misled,
        ),
        ("atomizer_proposed_total", true, "Transactions proposed for the log.", counts.proposed),
        ("atomizer_batches_total", true, "Batches proposed for the log.", counts.batches),
        ("atomizer_entries_total", true, "Entries of the log carried out.", counts.entries),
        ("atomizer_applied_total", true, "Transactions of entries carried out.", counts.applied),
        ("atomizer_admitted_total", true, "Transactions admitted.", fates.admitted),
        (
            "atomizer_expired_total",
            true,
            "Transactions discarded because of their heights.",
            fates.expired,
        ),
        (
            "atomizer_spent_total",
            true,
            "Transactions discarded because an input was spent.",
            fates.spent,
        ),
        ("atomizer_in_blocks_total", true, "Transactions in blocks.", fates.in_blocks),
        ("atomizer_blocks_total", true, "Blocks made while this replica led.", counts.blocks),
        (
            "atomizer_sets_grown",
            false,
            "Times that a set of inputs was too small.",
            node.machine().grown(),
        ),
        (
            "atomizer_blocks_missed_total",
            true,
            "Blocks left out for slow listeners.",
            missed.blocks,
        ),
        (
            "atomizer_errors_missed_total",
            true,
            "Errors left out for slow listeners.",
            missed.errors,
        ),
        ("atomizer_led_total", true, "Times that this replica began to lead.", counts.led),
    ];
    text(&numbers) + &refusals("atomizer_malformed_total", &counts.refusals)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: one path says the numbers, each on a line of its own; another says nothing; half a request waits; nonsense ends
    /// the connection.
    #[test]
    fn what_is_said() {
        let ask = |request: &str| {
            let mut out = Vec::new();
            let said = serve(request.as_bytes(), || text(&[("a_total", true, "b.", 7)]), &mut out);
            (said, String::from_utf8(out).unwrap())
        };
        let request = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
        let (said, text) = ask(request);
        assert_eq!(said, (request.len(), false));
        assert!(text.contains("\na_total 7\n"), "{text}");
        assert!(ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").1.starts_with("HTTP/1.1 404 "));
        assert_eq!(ask(&request[..9]), ((0, false), String::new()));
        assert!(ask("nonsense\r\n\r\n").0.1);
    }
}
