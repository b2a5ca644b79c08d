//! Secrets of clouds: from a file, or from the environment. They are never shown.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

/// What the names of variables begin with: `OBJECT_LEDGER_ZPR_AWS_SECRET` is the `secret` of `zpr-aws`.
const PREFIX: &str = "OBJECT_LEDGER_";

/// One of a cloud.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Credential {
    /// aws: the access key's id; azure: the account.
    pub id: Option<String>,
    /// aws: the secret access key; azure: the account's key; gcp: the service account's JSON.
    pub secret: Option<String>,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credential")
    }
}

/// All that were given.
#[derive(Debug, Default)]
pub struct Credentials(BTreeMap<String, Credential>);

impl Credentials {
    /// Reads the file, if there is one: a table for each name.
    ///
    /// # Errors
    /// When it cannot be read; the message has nothing of its content.
    pub fn read(path: Option<&Path>) -> Result<Self, String> {
        let Some(path) = path else { return Ok(Self::default()) };
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("reading credentials {}: {error}", path.display()))?;
        let parsed = toml::from_str(&text).map_err(|_| {
            format!(
                "{}: a table for each name is wanted, as [zpr-aws], with the texts id and secret",
                path.display()
            )
        });
        parsed.map(Self)
    }

    /// The one with this name; what the environment has comes first.
    ///
    /// # Errors
    /// When there is none.
    pub fn get(&self, name: &str) -> Result<Credential, String> {
        let mut found = self.0.get(name).cloned().unwrap_or_default();
        let upper: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
            .collect();
        let variable = |part: &str| std::env::var(format!("{PREFIX}{upper}_{part}")).ok();
        found.id = variable("ID").or(found.id);
        found.secret = variable("SECRET").or(found.secret);
        if found.id.is_none() && found.secret.is_none() {
            return Err(format!(
                "there are no credentials `{name}`: set {PREFIX}{upper}_ID and {PREFIX}{upper}_SECRET, or name a file with [{name}] in `credentials`"
            ));
        }
        Ok(found)
    }
}
