//! JSON documents of a run folder: written whole and without the secrets that are known, read or refused with their path.

use std::io;
use std::path::Path;

use model::secret;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::disk;
use crate::error::RecordError;

/// The first key of a document: the version that wrote it.
#[derive(Deserialize)]
pub(crate) struct Schema {
    #[serde(default)]
    pub schema: String,
}

/// Writes a value as JSON, whole, without the secrets that are known.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), RecordError> {
    let text = serde_json::to_vec_pretty(value).map_err(|error| {
        RecordError::writing(path, io::Error::new(io::ErrorKind::InvalidData, error))
    })?;
    let mut text = secret::scrub_json(text);
    text.push(b'\n');
    disk::write_whole(path, &text)
}

/// Reads a value from JSON.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, RecordError> {
    let text = disk::read_text(path)?;
    serde_json::from_str(&text).map_err(|error| {
        RecordError::damaged(path, format!("it does not hold what it should: {error}"))
    })
}
