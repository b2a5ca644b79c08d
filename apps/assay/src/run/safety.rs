//! Loads that could hurt somebody else ask first. What is loaded is what the adapter says: no key of any system is
//! known here.

use std::net::IpAddr;

use model::plan::SettingPlan;
use sut::{Adapter, Request};

use crate::experiment::Experiment;
use crate::systems;

/// Beyond this rate a target that is neither loopback nor private needs its owner's word.
const RATE_MAX: f64 = 1_000.0;

/// Refuses a fast load on a public address unless the user says that it is his.
pub fn check(experiment: &Experiment, is_owned: bool) -> Result<(), String> {
    if is_owned || experiment.rate_max().is_some_and(|rate| rate <= RATE_MAX) {
        return Ok(());
    }
    for setting in &experiment.plan.settings {
        // The reader of the plan has refused kinds that do not exist.
        let Some(adapter) = systems::adapter(&setting.system.kind) else { continue };
        if let Some(host) = far(adapter, &experiment.request(setting, 0)) {
            return Err(format!(
                "{host} is neither loopback nor private, and the load may exceed 1,000/s: if it is yours, say --i-own-this-target"
            ));
        }
    }
    Ok(())
}

/// Where the load of a setting goes, in the adapter's words, without what a URL may say of a user.
pub fn targets(experiment: &Experiment, setting: &SettingPlan) -> Vec<String> {
    let Some(adapter) = systems::adapter(&setting.system.kind) else { return Vec::new() };
    let without_user = |target: String| match target.split_once("://") {
        Some((scheme, rest)) => match rest.split_once('@') {
            Some((user, host)) if !user.contains('/') => format!("{scheme}://{host}"),
            _ => target,
        },
        None => target,
    };
    (adapter.targets)(&experiment.request(setting, 0)).into_iter().map(without_user).collect()
}

/// The first host that will be loaded and may be somebody else's.
fn far(adapter: &Adapter, request: &Request<'_>) -> Option<String> {
    let targets = (adapter.targets)(request);
    targets.iter().map(|target| host(target)).find(|host| !is_near(host)).map(str::to_owned)
}

/// The host in a URL, in `host:port`, or alone.
fn host(target: &str) -> &str {
    let rest = target.split_once("://").map_or(target, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if let Some(inside) = authority.strip_prefix('[') {
        return inside.split(']').next().unwrap_or(inside);
    }
    if authority.parse::<IpAddr>().is_ok() {
        // An IPv6 address without brackets: its last colon is no port's.
        return authority;
    }
    authority.rsplit_once(':').map_or(authority, |(host, _)| host)
}

/// Whether a host is this one or in a private network. A name other than `localhost` may be anywhere, and so may
/// what is no host at all.
fn is_near(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => {
            address.is_loopback() || address.is_private() || address.is_link_local()
        }
        Ok(IpAddr::V6(address)) => {
            address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
        }
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use model::options::{Options, Value};

    use super::*;

    fn text(text: &str) -> Options {
        Options { value: Value::String(text.to_owned()), ..Options::empty() }
    }

    fn list(texts: &[&str]) -> Options {
        let items = texts.iter().copied().map(self::text).collect();
        Options { value: Value::Array(items), ..Options::empty() }
    }

    fn found(adapter: &Adapter, key: &str, value: Options, workload: &Options) -> Option<String> {
        let mut deploy = Options::empty();
        deploy.set(key, value);
        let folder = Path::new("/");
        far(adapter, &Request { deploy: &deploy, workload, folder, run_mark: 0, load: None })
    }

    /// Claim: what a system calls its address is its own affair: one whose key is `endpoint` is looked at like any other.
    #[test]
    fn a_key_of_its_own() {
        let adapter = Adapter {
            kind: "bucket",
            summary: "reached at `endpoint`",
            build: |_, _| None,
            targets: |request| {
                request.deploy.get("endpoint").map(Options::labels).unwrap_or_default()
            },
            serve: None,
            checks: &[],
        };
        let found = |value| found(&adapter, "endpoint", value, &Options::empty());
        assert_eq!(
            found(text("https://objects.example.com/b")).as_deref(),
            Some("objects.example.com")
        );
        assert_eq!(found(text("http://127.0.0.1:9000/b")), None);
        assert_eq!(found(list(&["10.0.0.1:9000", "8.8.8.8:9000"])).as_deref(), Some("8.8.8.8"));
        assert_eq!(found(text("")).as_deref(), Some(""), "no host is not a near one");
    }

    /// Claim: every system in the list says where its load goes, one by one, a file of HTTP targets without a base URL included.
    #[test]
    fn each_system_says_its_own() {
        let adapter = |kind| systems::adapter(kind).unwrap();
        let none = Options::empty();
        let one = text("8.8.8.8:7000");
        assert_eq!(found(adapter("echo"), "attach", one, &none).as_deref(), Some("8.8.8.8"));
        let nodes = list(&["127.18.116.1:26657", "8.8.4.4:26657"]);
        assert_eq!(found(adapter("cometbft"), "attach", nodes, &none).as_deref(), Some("8.8.4.4"));
        let url = text("https://example.com/x,y");
        assert_eq!(found(adapter("http"), "url", url, &none).as_deref(), Some("example.com"));
        let mut workload = Options::empty();
        workload.set("targets_text", text("GET http://example.org:8080/a"));
        let file = found(adapter("http"), "http_version", text("1.1"), &workload);
        assert_eq!(file.as_deref(), Some("example.org"));
        for kind in ["echo", "cometbft"] {
            assert_eq!(found(adapter(kind), "in_flight_max", text("1"), &none), None, "{kind}");
        }
    }

    /// Claim: only loopback and private addresses are near; a public name or address is not.
    #[test]
    fn near_and_far() {
        for near in [
            "http://127.0.0.1:80/",
            "http://[::1]:80",
            "::1",
            "localhost:7000",
            "localhost",
            "https://10.1.2.3/x",
            "http://192.168.0.9",
        ] {
            assert!(is_near(host(near)), "{near}");
        }
        for far in [
            "http://example.com/",
            "https://user:word@8.8.8.8/",
            "http://[2001:db8::1]/",
            "2001:db8::1",
            "localhost.example.com:80",
            "private-looking-name",
            "http://",
        ] {
            assert!(!is_near(host(far)), "{far}");
        }
    }
}
