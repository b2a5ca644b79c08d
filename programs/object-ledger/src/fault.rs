//! Faults that a service commits on purpose, for experiments that ask whether anybody notices.

/// A fault, and after how many requests it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The fault that is committed.
    pub kind: Kind,
    /// Requests that are still answered rightly: objects of a bucket, numbers, or tokens.
    pub after: u64,
}

/// The fault that is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A bucket keeps something else than it is given, with hashes that fit.
    Lies,
    /// A bucket acknowledges and keeps nothing.
    Forgets,
    /// A bucket goes back, once, to what it had at half of the count.
    RolledBack,
    /// A sequencer gives the next number to two blocks.
    Forks,
    /// A timestamp service signs with another key.
    OtherKey,
}

impl Kind {
    const NAMES: [(&'static str, Self); 5] = [
        ("lies", Self::Lies),
        ("forgets", Self::Forgets),
        ("rolled_back", Self::RolledBack),
        ("forks", Self::Forks),
        ("other_key", Self::OtherKey),
    ];
}

impl Fault {
    /// Reads `KIND@COUNT`, or `KIND` for one that begins at once.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, after) = text.split_once('@').unwrap_or((text, "0"));
        let kind = Kind::NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
        match (kind, after.parse()) {
            (Some(kind), Ok(after)) => Ok(Self { kind, after }),
            _ => Err(format!(
                "expected lies, forgets, rolled_back, forks or other_key, with @COUNT, got `{text}`"
            )),
        }
    }

    /// Whether the fault is this one, and the count is past its beginning.
    #[must_use]
    pub fn is_on(of: Option<Self>, kind: Kind, count: u64) -> bool {
        of.is_some_and(|it| it.kind == kind && count > it.after)
    }
}
