//! `[load.batch]` of one setting: what leaves together. It knows nothing of sessions and frames.

use model::plan::BatchPlan;
use model::quantity::show_duration;

use crate::keys;
use crate::table::{Reading, Table};

/// The most transactions of a batch: what waits on a connection is kept in memory, prepared.
const SIZE_MAX: u32 = 65_536;
/// The most batches outstanding on a connection.
const IN_FLIGHT_MAX: u32 = 1_024;

/// Reads `load.batch`, if there is one. `load` is the table around it.
pub(crate) fn read(
    load: &mut Table<'_>,
    connections: u32,
    connections_max: u32,
    timeout: std::time::Duration,
    reading: &mut Reading<'_>,
) -> Option<BatchPlan> {
    let given = load.given("batch")?;
    let mut table = Table::open(given, "load.batch", reading);
    let fixed = keys::fixed_count("load.batch.size_max");
    let size_max = table.count_or("size_max", 1, SIZE_MAX, fixed, reading);
    let fixed = keys::fixed_duration("load.batch.delay_max");
    let delay_max = table.duration_or("delay_max", fixed, reading);
    if delay_max >= timeout {
        let message = format!(
            "`load.batch.delay_max` is {}, and `load.timeout` {}: what waits would be given up before it leaves",
            show_duration(delay_max),
            show_duration(timeout)
        );
        table.reject("delay_max", message, Some("lower one or raise the other"), reading);
    }
    let fixed = keys::fixed_count("load.batch.in_flight_max");
    let in_flight_max = table.count_or("in_flight_max", 1, IN_FLIGHT_MAX, fixed, reading);
    table.finish(reading);
    if connections_max > connections {
        let message = "`load.connections_max` does not go with `load.batch`: each connection has a queue, so none is opened because all are busy";
        let help = "raise load.connections instead: there are as many queues";
        load.reject("connections_max", message, Some(help), reading);
    }
    Some(BatchPlan { size_max, delay_max, in_flight_max })
}
