//! What a replica says of itself, in Prometheus's text format, on a listener of its own.

use wire::metrics::Number;

use crate::database;

/// Numbers that only grow, beside those of the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries of the log that were carried out.
    pub entries: u64,
    /// Reads without the log.
    pub reads: u64,
    /// Requests that were refused because too much waited.
    pub busy: u64,
    /// Connections closed for what they sent.
    pub malformed: u64,
    /// Snapshots made here.
    pub snapshots_made: u64,
    /// Snapshots of another replica that took the place of what was here.
    pub snapshots_installed: u64,
    /// Times that this replica began to lead.
    pub led: u64,
    /// Times that the disk was found full.
    pub disk_full: u64,
    /// Connections closed because their answers were too long to wait for them.
    pub cut_off: u64,
}

/// What is said.
#[derive(Clone, Copy, Debug)]
pub struct Said {
    /// Numbers of the database.
    pub database: database::Counts,
    /// Numbers of the replica.
    pub node: Counts,
    /// Whether its log waits for room on its disk.
    pub is_disk_full: bool,
}

/// It as text.
#[must_use]
pub fn text(said: &Said) -> String {
    let Said { database, node, is_disk_full } = said;
    let list: [Number; 14] = [
        ("kv_position_total", true, "Transactions executed.", database.position),
        ("kv_repeated_total", true, "Requests that had been executed.", database.repeated),
        ("kv_entries_total", true, "Entries of the log carried out.", node.entries),
        ("kv_reads_total", true, "Reads without the log.", node.reads),
        ("kv_busy_total", true, "Requests refused because too much waited.", node.busy),
        ("kv_malformed_total", true, "Connections closed for what they sent.", node.malformed),
        ("kv_tables", false, "Tables.", database.tables),
        ("kv_sessions", false, "Client sessions.", database.sessions),
        (
            "kv_sessions_forgotten_total",
            true,
            "Client sessions forgotten.",
            database.sessions_forgotten,
        ),
        ("kv_bytes", false, "Bytes held, as they count for the bound.", database.bytes),
        (
            "kv_disk_full",
            false,
            "1 while the log waits for room on the disk: nothing is acknowledged that needs it.",
            u64::from(*is_disk_full),
        ),
        ("kv_disk_full_total", true, "Times that the disk was found full.", node.disk_full),
        (
            "kv_cut_off_total",
            true,
            "Connections closed because they did not take their answers.",
            node.cut_off,
        ),
        ("kv_led_total", true, "Times that it began to lead.", node.led),
    ];
    wire::metrics::text(&list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Database, Limits};

    /// Claim: numbers of the database, of the replica and of its disk stand under their names.
    #[test]
    fn what_is_said() {
        let database = Database::new(Limits::default()).counts();
        let node = Counts { entries: 7, ..Counts::default() };
        let text = text(&Said { database, node, is_disk_full: true });
        for line in ["\nkv_position_total 0\n", "\nkv_entries_total 7\n", "\nkv_disk_full 1\n"] {
            assert!(text.contains(line), "{text}");
        }
    }
}
