//! An atomizer's metrics, in Prometheus's text format, on a listener of their own.

use wire::metrics::{Number, text};

use super::Atomizer;

pub(super) fn text_of(node: &Atomizer) -> String {
    let (counts, fates, missed) = (node.counts(), node.machine().fates(), node.missed());
    let standing = node.standing();
    let leads = u64::from(standing.leader == standing.replica);
    let numbers: [Number; 25] = [
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
            "atomizer_partial_bytes",
            false,
            "Bytes of transactions that wait for attestations.",
            node.intake().partial_bytes() as u64,
        ),
        (
            "atomizer_unarchived_bytes",
            false,
            "Bytes of blocks that not all archivers have stored.",
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
    text(&numbers) + &counts.refusals.text("atomizer_malformed_total")
}
