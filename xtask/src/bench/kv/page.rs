//! What was measured as a page: a table a load, then what of it is ours by etcd's of the same round.

use std::fmt::Write as _;

use super::super::spread;
use super::{KEYS, Outcome, Row, Shape, Size, Whose, to_f64};

pub(super) const fn name(whose: Whose) -> &'static str {
    match whose {
        Whose::Etcd => "etcd 3.7.3",
        Whose::Kv => "kv",
    }
}

pub(super) fn text(rows: &[Row], size: &Size, host: &str) -> String {
    let mut text = format!(
        "# kv beside etcd\n\nMade by `cargo xtask bench kv`. {host}\n\n\
         Three replicas on this machine, loaded through the one that leads: etcd 3.7.3 by its own load tool (3.6.8, \
         `put` and `txn-put`), and `assay serve kv --replicas 3` by Assay attached to it. Both get the same certificates \
         and show them on every connection, of clients and between replicas; both acknowledge once a majority has synced its log, which \
         is what they do when nothing is said of it. The same closed loop of clients on the same number of connections, \
         {KEYS} random keys of 8 bytes, nothing gathered on purpose: both sides put together what happens to be ready. Each turn has an \
         empty group of its own, a short pilot, then {} s; turns alternate. CPU: of all three replicas and of the whole \
         client process, its start and report included, by the kernel's account. Latency is as each tool says it, and \
         both count from when a client could send. After each turn the group's own count of what it executed is compared with \
         what the client was told: any difference ends the benchmark. Syncs are of the three logs together, by each system's own \
         count, from its start to its end. Where the load average above is high, other work ran beside: rates are then lower bounds, \
         and what a transaction costs and the ratios of one round say more.\n\n\
         | clients, connections | transaction | system | transactions/s (range) | CPU µs each (range) | of that the client | p50 ms | p99 ms (range) | syncs each |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        size.seconds
    );
    for (shape, whose, list) in rows {
        let of = |value: fn(&Outcome) -> f64| list.iter().map(value).collect::<Vec<f64>>();
        let client = of(|it| it.client_cpu_us / to_f64(it.transactions));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            loaded(*shape),
            transaction(*shape),
            name(*whose),
            spread(&of(|it| it.per_second), 0),
            spread(&of(Outcome::cpu_us), 1),
            super::super::middle(&client, 1),
            super::super::middle(&of(|it| it.p50_ms), 2),
            spread(&of(|it| it.p99_ms), 2),
            super::super::middle(&of(|it| it.syncs), 3),
        );
    }
    text.push_str(
        "\nkv by etcd in the same round: how many times as many transactions a second, as much CPU, as long a p99.\n\n\
         | clients, connections | transaction | transactions/s (range) | CPU (range) | p99 (range) |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for shape in size.shapes {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            loaded(*shape),
            transaction(*shape),
            spread(&ratios(rows, *shape, |it| it.per_second), 1),
            spread(&ratios(rows, *shape, Outcome::cpu_us), 3),
            spread(&ratios(rows, *shape, |it| it.p99_ms), 3),
        );
    }
    let _ = writeln!(text, "\nMedians of {} rounds.", size.rounds);
    text
}

fn ratios(rows: &[Row], shape: Shape, of: fn(&Outcome) -> f64) -> Vec<f64> {
    let list = |whose| {
        let found = rows.iter().find(|(s, w, _)| *s == shape && *w == whose);
        found.map_or(&[][..], |(.., list)| list.as_slice())
    };
    list(Whose::Kv)
        .iter()
        .zip(list(Whose::Etcd))
        .map(|(own, theirs)| of(own) / of(theirs))
        .collect()
}

fn loaded(shape: Shape) -> String {
    format!("{}, {}", shape.clients, shape.connections)
}

fn transaction(shape: Shape) -> String {
    match (shape.puts, shape.value_bytes) {
        (1, bytes) => format!("one put of {bytes} B"),
        (puts, bytes) => format!("{puts} puts of {bytes} B"),
    }
}
