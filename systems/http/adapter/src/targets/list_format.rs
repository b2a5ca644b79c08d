//! A plain list: one URL (or path) a line, each asked for with GET.

use super::{Body, Mistake, Target, place};

/// One line of the list.
pub(super) fn parse(line: usize, text: &str) -> Result<Target, Mistake> {
    let place = place(line, text)?;
    Ok(Target { line, method: "GET".to_owned(), place, headers: Vec::new(), body: Body::None })
}
