//! What it costs to apply the published transaction of seven operations: `cargo run --release -p kv-node --example apply`.
//! In time of the processor, on one thread. Each of 16,384 clients has a table of its own, as the published workload has; the log is groups of 1,024 transactions.

use clock::CpuTime;
use kv_node::database::compose::published;
use kv_node::database::group::{self, Group};
use kv_node::database::{Database, LOOKED_AHEAD, Limits};

const CLIENTS: u64 = 16_384;
const GROUP: u64 = 1_024;
const ROUNDS: u64 = 40;

fn main() {
    for value_bytes in [16, 1 << 10] {
        let value = vec![b'v'; value_bytes];
        let mut database = Database::new(Limits::default());
        let (mut busy, mut count) = (std::time::Duration::ZERO, 0_u64);
        let mut results = Vec::new();
        for round in 0..ROUNDS {
            for first in (0..CLIENTS).step_by(usize::try_from(GROUP).expect("small")) {
                let log = entry(first, round + 1, &value);
                let start = CpuTime::of_this_thread();
                let group = Group::read(&log).expect("written above");
                results.clear();
                let mut ahead = group.requests();
                for (index, request) in group.requests().enumerate() {
                    if index % LOOKED_AHEAD == 0 {
                        database.look_ahead(ahead.by_ref().take(LOOKED_AHEAD));
                    }
                    let (client, sequence) = (request.client, request.sequence);
                    database.apply(
                        group.since,
                        client,
                        sequence,
                        request.transaction,
                        &mut results,
                    );
                }
                // The first rounds make the tables.
                if round >= ROUNDS / 4 {
                    busy += CpuTime::of_this_thread().since(start);
                    count += GROUP;
                }
            }
        }
        let ns = busy.as_nanos() / u128::from(count);
        let counts = database.counts();
        println!(
            "{value_bytes} B: {ns} ns/tx, {} tables, {} bytes held, {} result bytes a group",
            counts.tables,
            counts.bytes,
            results.len()
        );
    }
}

fn entry(first: u64, sequence: u64, value: &[u8]) -> Vec<u8> {
    let mut log = Vec::new();
    group::begin(&mut log, 0);
    for client in first..first + GROUP {
        group::push(&mut log, 0, client, sequence, |out| published(out, client, value));
    }
    log
}
