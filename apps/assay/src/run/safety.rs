//! Loads that could hurt somebody else ask first.

use std::net::IpAddr;

use model::options::{Options, Value};

use crate::experiment::Experiment;

/// Beyond this rate a target that is neither loopback nor private needs its owner's word.
const RATE_MAX: f64 = 1_000.0;

/// Refuses a fast load on a public address unless the user says that it is his.
pub fn check(experiment: &Experiment, is_owned: bool) -> Result<(), String> {
    if is_owned || experiment.rate_max().is_some_and(|rate| rate <= RATE_MAX) {
        return Ok(());
    }
    for setting in &experiment.plan.settings {
        let deploy = &setting.system.deploy;
        for target in ["url", "attach"].iter().filter_map(|key| deploy.get(key)).flat_map(targets) {
            if let Some(host) = host(&target)
                && !is_near(host)
            {
                return Err(format!(
                    "{host} is neither loopback nor private, and the load may exceed 1,000/s: if it is yours, say --i-own-this-target"
                ));
            }
        }
    }
    Ok(())
}

/// The one target, or each of a list: one that is far makes the load far.
fn targets(option: &Options) -> Vec<String> {
    match &option.value {
        Value::Array(list) => list.iter().map(Options::label).collect(),
        _ => vec![option.label()],
    }
}

/// The host in a URL or in `host:port`.
fn host(target: &str) -> Option<&str> {
    let rest = target.split_once("://").map_or(target, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.rsplit('@').next()?;
    if let Some(inside) = authority.strip_prefix('[') {
        return inside.split(']').next();
    }
    Some(authority.rsplit_once(':').map_or(authority, |(host, _)| host))
        .filter(|host| !host.is_empty())
}

/// Whether a host is this one or in a private network. A name other than `localhost` may be anywhere.
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
    use super::*;

    /// Claim: of a list every target is looked at by itself, and one alone is one.
    #[test]
    fn each_of_a_list() {
        let text =
            |text: &str| Options { value: Value::String(text.to_owned()), ..Options::empty() };
        let list = vec![text("127.18.116.1:26657"), text("8.8.8.8:26657")];
        let targets = super::targets(&Options { value: Value::Array(list), ..Options::empty() });
        let near: Vec<bool> = targets.iter().map(|it| is_near(host(it).unwrap())).collect();
        assert_eq!(near, [true, false]);
        assert_eq!(super::targets(&text("http://127.0.0.1/a,b")), ["http://127.0.0.1/a,b"]);
    }

    /// Claim: only loopback and private addresses are near; a public name or address is not.
    #[test]
    fn near_and_far() {
        for near in [
            "http://127.0.0.1:80/",
            "http://[::1]:80",
            "localhost:7000",
            "https://10.1.2.3/x",
            "http://192.168.0.9",
        ] {
            assert!(is_near(host(near).unwrap()), "{near}");
        }
        for far in [
            "http://example.com/",
            "https://user:word@8.8.8.8/",
            "http://[2001:db8::1]/",
            "localhost.example.com:80",
        ] {
            assert!(!is_near(host(far).unwrap()), "{far}");
        }
    }
}
