//! How much a client may ask. A client is a key that the operator gave out, an account with a token, or an address, each with an
//! allowance of its own. It is a value: it is told the time.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clock::Instant;

/// Clients that are counted at once; beyond that those whose allowance is whole again are forgotten.
const CLIENTS_MAX: usize = 50_000;
/// How many seconds of its allowance a client may use at once.
const BURST_S: f64 = 1.0;

/// A key of the operator's.
#[derive(Clone, Debug)]
struct Key {
    name: String,
    rps: Option<f64>,
}

/// See the module.
pub struct Limits {
    /// By the secret that a client shows.
    keys: HashMap<String, Key>,
    /// Of a client without a key.
    client_rps: Option<f64>,
    used: Mutex<HashMap<String, Instant>>,
}

/// A client, as it is counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    name: String,
    rps: Option<f64>,
}

impl Limits {
    /// Reads the keys' file: a table for each client, `[NAME]` with `key` and, if it is limited, `rps`.
    pub fn new(file: Option<&Path>, client_rps: Option<f64>) -> Result<Self, String> {
        let mut keys = HashMap::new();
        if let Some(path) = file {
            let shown = path.display();
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("reading {shown}: {error}"))?;
            let table: toml::Table =
                text.parse().map_err(|_| format!("{shown}: expected tables [NAME] with `key`"))?;
            for (name, entry) in table {
                let (secret, key) = key(&name, &entry)
                    .ok_or_else(|| format!("{shown}: [{name}] needs `key`, a text, and `rps`, a number above 0, or none"))?;
                if keys.insert(secret, key).is_some() {
                    return Err(format!("{shown}: the key of [{name}] is another one's, too"));
                }
            }
            // Else all would be let in, as where no keys are wanted.
            if keys.is_empty() {
                return Err(format!(
                    "{shown}: expected a table [NAME] with `key` for each client, got none; write one, or leave `keys` out"
                ));
            }
        }
        Ok(Self { keys, client_rps, used: Mutex::default() })
    }

    /// Whether clients need a key.
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// The client that shows this key.
    pub fn of_key(&self, shown: &str) -> Option<Client> {
        let key = self.keys.get(shown)?;
        Some(Client { name: format!("key {}", key.name), rps: key.rps })
    }

    /// A client without a key, by its account or its address, which is made only where it is counted.
    pub fn of_name(&self, name: impl FnOnce() -> String) -> Client {
        let rps = self.client_rps;
        Client { name: if rps.is_some() { name() } else { String::new() }, rps }
    }

    /// Takes so many calls out of a client's allowance; where there are not so many left, after how long there are.
    pub fn take(&self, client: &Client, calls: usize, now: Instant) -> Result<(), Duration> {
        let Some(rps) = client.rps else { return Ok(()) };
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let earliest = now.minus(Duration::from_secs_f64(BURST_S));
        if used.len() >= CLIENTS_MAX && !used.contains_key(&client.name) {
            used.retain(|_, turn| *turn > earliest);
        }
        let turn = used.get(&client.name).copied().unwrap_or(earliest).max(earliest);
        if turn > now {
            return Err(turn.saturating_since(now));
        }
        let calls = u32::try_from(calls).unwrap_or(u32::MAX);
        let cost = Duration::from_secs_f64(f64::from(calls) / rps);
        used.insert(client.name.clone(), turn.plus(cost));
        Ok(())
    }
}

fn key(name: &str, entry: &toml::Value) -> Option<(String, Key)> {
    let table = entry.as_table()?;
    let secret = table.get("key")?.as_str().filter(|key| !key.is_empty())?;
    let rps = match table.get("rps") {
        None => None,
        Some(toml::Value::Integer(rps)) => Some(f64::from(i32::try_from(*rps).ok()?)),
        Some(toml::Value::Float(rps)) => Some(*rps),
        Some(_) => return None,
    };
    let is_known = table.keys().all(|key| matches!(key.as_str(), "key" | "rps"));
    let is_good = rps.is_none_or(|rps| rps.is_finite() && rps > 0.0) && is_known;
    is_good.then(|| (secret.to_owned(), Key { name: name.to_owned(), rps }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO.plus(Duration::from_millis(ms))
    }

    /// Claim: each client has an allowance of its own, a batch counts by its calls, and one that is used up says for how long.
    #[test]
    fn allowances() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys.toml");
        std::fs::write(&file, "[a]\nkey = \"ka\"\nrps = 10\n[b]\nkey = \"kb\"\n").unwrap();
        let limits = Limits::new(Some(&file), Some(2.0)).unwrap();
        let (a, b) = (limits.of_key("ka").unwrap(), limits.of_key("kb").unwrap());
        assert!(limits.has_keys() && limits.of_key("kc").is_none());
        let given = (0..30).filter(|_| limits.take(&a, 1, at(5_000)).is_ok()).count();
        assert_eq!(given, 11);
        assert_eq!(limits.take(&a, 1, at(5_000)), Err(Duration::from_millis(100)));
        assert!((0..1000).all(|_| limits.take(&b, 1, at(5_000)).is_ok()));
        assert!(limits.take(&a, 50, at(5_100)).is_ok());
        assert_eq!(limits.take(&a, 1, at(5_100)), Err(Duration::from_secs(5)));
        let anybody = limits.of_name(|| "127.0.0.1".to_owned());
        assert_eq!((0..9).filter(|_| limits.take(&anybody, 1, at(9_000)).is_ok()).count(), 3);
        for wrong in [
            "[a]\n",
            "[a]\nkey = 1\n",
            "[a]\nkey = \"x\"\nrps = 0\n",
            "a = 1\n",
            "[a]\nkey=\"x\"\nrp=1\n",
            "",
            "# none yet\n",
        ] {
            std::fs::write(&file, wrong).unwrap();
            assert!(Limits::new(Some(&file), None).is_err(), "{wrong}");
        }
    }
}
