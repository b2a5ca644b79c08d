//! Target files: read to say what is wrong with them and which server they name; used as they are.

use super::{Imported, counted};
use crate::targets::{self, FILE_BYTES_MAX, Format, MISTAKES_MAX};
use crate::url::Origin;

pub(super) fn import(bytes: &[u8]) -> Result<Imported, String> {
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!(
            "it is longer than {} MiB, the longest target file",
            FILE_BYTES_MAX >> 20
        ));
    }
    let text = targets::text(bytes)
        .map_err(|mistake| format!("line {}: {}", mistake.line, mistake.message))?;
    let format = Format::of(text);
    let found = targets::parse(text, format).map_err(|mistakes| {
        let shown = mistakes.iter().take(MISTAKES_MAX);
        let lines: String = shown
            .map(|mistake| format!("\n  line {}: {}", mistake.line, mistake.message))
            .collect();
        format!(
            "it is no HAR, no OpenAPI description, and as a target file it has {}:{lines}",
            counted(mistakes.len(), "mistake")
        )
    })?;
    let mut origins: Vec<&Origin> = Vec::new();
    for origin in found.iter().filter_map(|target| target.place.origin.as_ref()) {
        if !origins.contains(&origin) {
            origins.push(origin);
        }
    }
    if let [first, second, ..] = origins.as_slice() {
        return Err(format!(
            "it has targets of two servers, {first} and {second}; a trial loads one, so split it"
        ));
    }
    let form = match format {
        Format::Http => "a target file in vegeta's http form",
        Format::Json => "a target file in vegeta's JSON form",
        Format::List => "a list of URLs",
    };
    Ok(Imported {
        form: form.to_owned(),
        url: origins.first().map(|origin| {
            format!("{}://{}", if origin.is_tls { "https" } else { "http" }, origin.authority())
        }),
        target_count: found.len(),
        ..Imported::default()
    })
}
