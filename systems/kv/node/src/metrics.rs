//! What a replica says of itself, in Prometheus's text format, on a listener of its own.

use wire::http1::{Limits, parse_request, write_response};

use crate::database;
use crate::node;

/// What is said.
#[derive(Clone, Copy, Debug)]
pub struct Said {
    /// Numbers of the database.
    pub database: database::Counts,
    /// Numbers of the replica.
    pub node: node::Counts,
    /// Whether its log waits for room on its disk.
    pub is_disk_full: bool,
}

/// Answers the request at the beginning of `bytes`. Gives how long it is and whether the connection goes on; `None` while
/// it is incomplete; an error's text if it is none.
///
/// # Errors
/// When the bytes are no request.
pub fn answer(
    bytes: &[u8],
    said: &Said,
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

fn text(said: &Said) -> String {
    let Said { database, node, is_disk_full } = said;
    let list: [(&str, &str, &str, u64); 14] = [
        ("kv_position_total", "counter", "Transactions executed.", database.position),
        ("kv_repeated_total", "counter", "Requests that had been executed.", database.repeated),
        ("kv_entries_total", "counter", "Entries of the log carried out.", node.entries),
        ("kv_reads_total", "counter", "Reads without the log.", node.reads),
        ("kv_busy_total", "counter", "Requests refused because too much waited.", node.busy),
        ("kv_malformed_total", "counter", "Connections closed for what they sent.", node.malformed),
        ("kv_tables", "gauge", "Tables.", database.tables),
        ("kv_sessions", "gauge", "Client sessions.", database.sessions),
        (
            "kv_sessions_forgotten_total",
            "counter",
            "Client sessions forgotten.",
            database.sessions_forgotten,
        ),
        ("kv_bytes", "gauge", "Bytes held, as they count for the bound.", database.bytes),
        (
            "kv_disk_full",
            "gauge",
            "1 while the log waits for room on the disk: nothing is acknowledged that needs it.",
            u64::from(*is_disk_full),
        ),
        ("kv_disk_full_total", "counter", "Times that the disk was found full.", node.disk_full),
        (
            "kv_cut_off_total",
            "counter",
            "Connections closed because they did not take their answers.",
            node.cut_off,
        ),
        ("kv_led_total", "counter", "Times that it began to lead.", node.led),
    ];
    let line = |(name, kind, help, value): (&str, &str, &str, u64)| {
        format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n")
    };
    list.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Database, Limits};

    /// Claim: one path says the numbers, each on a line of its own; another says nothing; half a request waits.
    #[test]
    fn what_is_said() {
        let database = Database::new(Limits::default()).counts();
        let node = node::Counts { entries: 7, ..node::Counts::default() };
        let said = Said { database, node, is_disk_full: true };
        let ask = |request: &str| {
            let mut out = Vec::new();
            let used = answer(request.as_bytes(), &said, &mut out);
            (used, String::from_utf8(out).unwrap())
        };
        let request = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
        let (used, text) = ask(request);
        assert_eq!(used, Ok(Some((request.len(), true))));
        assert!(text.contains("\nkv_entries_total 7\n"), "{text}");
        assert!(text.contains("\nkv_disk_full 1\n"), "{text}");
        assert!(ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").1.starts_with("HTTP/1.1 404 "));
        assert_eq!(ask(&request[..9]), (Ok(None), String::new()));
        assert!(ask("nonsense\r\n\r\n").0.is_err());
    }
}
