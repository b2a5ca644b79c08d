//! `[system.deploy]` and `[workload]`: what an experiment can ask for.

use model::options::{Problems, Section};
use sut::content::payload_bytes;
use sut::{Request, System};

use crate::members::Members;
use crate::system::Etcd;

/// Puts outstanding on a connection, unless the experiment says otherwise, and at most: of as many that were given up at once
/// late answers are known as such. A client of etcd knows no bound.
const IN_FLIGHT: u64 = 256;
const IN_FLIGHT_MAX: u64 = 1_024;

/// The largest value: etcd bounds a request at 1.5 MiB.
const PAYLOAD_BYTES_MAX: usize = 512 << 10;

/// Members at most.
const MEMBERS_MAX: u64 = 5;

/// Reads both tables.
pub(crate) fn build(request: &Request<'_>, problems: &mut Problems) -> Option<Box<dyn System>> {
    let before = problems.list.len();
    let mut deploy = Section::open(request.deploy, "system.deploy", problems);
    let attach = deploy.addresses("attach", "127.0.0.1:2379", problems);
    let count = deploy.integer("members", 1, MEMBERS_MAX, problems);
    let program = deploy.string("program", problems).map(|path| request.folder.join(path));
    let arguments = deploy.strings("options", problems).unwrap_or_default();
    let in_flight_max = deploy.integer("in_flight_max", 1, IN_FLIGHT_MAX, problems);
    let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
    if let Some(wrong) = arguments.iter().find(|it| it.starts_with('-') || it.contains(' ')) {
        let message =
            format!("expected an option without its dashes such as unsafe-no-fsync, got `{wrong}`");
        deploy.reject("options", message, None, problems);
    }
    let ours = ["members", "program", "options"];
    let message = "members that run already have their own settings";
    deploy.reject_beside("attach", &ours, message, problems);
    if count.is_some_and(|count| count % 2 == 0) {
        let message =
            "expected an odd number of members, of which a majority can be had: 1, 3 or 5";
        deploy.reject("members", message, None, problems);
    }
    deploy.finish(problems);
    let payload_bytes = payload_bytes(request.workload, 0..=PAYLOAD_BYTES_MAX, problems);
    if problems.list.len() > before {
        return None;
    }
    Some(Box::new(Etcd {
        members: Members {
            count: u8::try_from(count.unwrap_or(3)).ok()?,
            run_mark: request.run_mark,
            program,
            arguments,
        },
        attach,
        in_flight_max: u32::try_from(in_flight_max.unwrap_or(IN_FLIGHT)).ok()?,
        payload_bytes,
        run_mark: request.run_mark,
    }))
}
