//! `[system.deploy]` and `[workload]`: what an experiment can ask for.

use model::options::{Problems, Section};
use model::quantity::parse_duration;
use sut::content::{DIGITS, payload_bytes};
use sut::{Request, System};

use crate::servers::Servers;
use crate::system::Nats;

/// The largest body: half of what a server takes unless told otherwise.
const PAYLOAD_BYTES_MAX: usize = 512 << 10;

/// Outstanding on a connection unless said otherwise.
const IN_FLIGHT_MAX: u64 = 256;

/// The newest version that is pinned, and those that are beside it.
const NEWEST: &str = "newest";
const VERSIONS: [&str; 2] = [NEWEST, "2.12.1"];

/// The word that leaves a setting to the server.
const DEFAULT: &str = "default";

/// Servers at most.
const SERVERS_MAX: u64 = 5;

/// Reads both tables.
pub(crate) fn build(request: &Request<'_>, problems: &mut Problems) -> Option<Box<dyn System>> {
    let before = problems.list.len();
    let mut deploy = Section::open(request.deploy, "system.deploy", problems);
    let attach = deploy.addresses("attach", "127.0.0.1:4222", problems);
    let count = deploy.integer("servers", 1, SERVERS_MAX, problems);
    let program = deploy.string("program", problems).map(|path| request.folder.join(path));
    let version = deploy.one_of("version", &VERSIONS, problems);
    let version = version.filter(|version| *version != NEWEST).map(str::to_owned);
    let sync_interval = deploy.string("sync_interval", problems).map(str::to_owned);
    let sync_interval = sync_interval.filter(|interval| interval != DEFAULT);
    if let Some(text) = &sync_interval
        && text != "always"
        && parse_duration(text).is_err()
    {
        let message =
            format!("expected `always`, `default` or a duration such as 2m, got `{text}`");
        deploy.reject("sync_interval", message, None, problems);
    }
    let in_flight_max = deploy.integer("in_flight_max", 1, 4_096, problems);
    let has_ids = deploy.boolean("message_ids", problems);
    let ours = ["servers", "program", "version", "sync_interval"];
    let message = "servers that run already have their own settings";
    deploy.reject_beside("attach", &ours, message, problems);
    if count.is_some_and(|count| count % 2 == 0) {
        let message =
            "expected an odd number of servers, of which a majority can be had: 1, 3 or 5";
        deploy.reject("servers", message, None, problems);
    }
    deploy.finish(problems);
    let payload_bytes = payload_bytes(request.workload, DIGITS..=PAYLOAD_BYTES_MAX, problems);
    if problems.list.len() > before {
        return None;
    }
    Some(Box::new(Nats {
        servers: Servers {
            count: u8::try_from(count.unwrap_or(3)).ok()?,
            run_mark: request.run_mark,
            program,
            version,
            sync_interval,
        },
        attach,
        in_flight_max: u32::try_from(in_flight_max.unwrap_or(IN_FLIGHT_MAX)).ok()?,
        has_ids: has_ids.unwrap_or(false),
        payload_bytes,
        run_mark: request.run_mark,
    }))
}
