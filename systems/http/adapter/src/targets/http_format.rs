//! vegeta's `http` format: `METHOD URL`, then header lines, then at most one `@file` line; an empty line or
//! the next `METHOD URL` ends a target; `#` begins a comment.

use super::{Body, Found, Mistake, Target, header, is_significant, method, numbered, place};

/// Reads the whole text; goes on after a mistake with the next target.
pub(super) fn parse(text: &str) -> Found {
    let (mut targets, mut mistakes): Found = (Vec::new(), Vec::new());
    let mut open: Option<Target> = None;
    let mut skips = false;
    for (line, text) in numbered(text) {
        if text.starts_with('#') {
            continue;
        }
        if !is_significant(text) {
            targets.extend(open.take());
            skips = false;
        } else if begins_target(text) || (open.is_none() && !skips) {
            targets.extend(open.take());
            skips = false;
            match first_line(line, text) {
                Ok(target) => open = Some(target),
                Err(mistake) => {
                    mistakes.push(mistake);
                    // Its headers would only be mistaken for targets.
                    skips = true;
                }
            }
        } else if let Some(target) = &mut open {
            mistakes.extend(further_line(target, line, text).err());
        }
    }
    targets.extend(open);
    (targets, mistakes)
}

/// vegeta's own test: capital letters (or hyphens), then a space.
fn begins_target(text: &str) -> bool {
    text.split_once([' ', '\t']).is_some_and(|(word, _)| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
    })
}

fn first_line(line: usize, text: &str) -> Result<Target, Mistake> {
    let Some((word, rest)) = text.split_once([' ', '\t']) else {
        let message = format!(
            "`{}` is not a target; a target is a method and a URL, such as: GET http://127.0.0.1:8080/",
            text.escape_debug()
        );
        return Err(Mistake::new(line, message));
    };
    let method = method(line, word)?;
    let place = place(line, rest.trim())?;
    Ok(Target { line, method, place, headers: Vec::new(), body: Body::None })
}

fn further_line(target: &mut Target, line: usize, text: &str) -> Result<(), Mistake> {
    if target.body != Body::None {
        let message =
            "nothing may follow the body of a target; put an empty line before the next one";
        return Err(Mistake::new(line, message));
    }
    if let Some(path) = text.strip_prefix('@') {
        let path = path.trim();
        if path.is_empty() {
            return Err(Mistake::new(line, "`@` names no file; write @body.json"));
        }
        target.body = Body::File(path.to_owned());
        return Ok(());
    }
    let Some((name, value)) = text.split_once(':') else {
        let message = format!(
            "`{}` is neither a header (Name: value) nor a body (@file)",
            text.escape_debug()
        );
        return Err(Mistake::new(line, message));
    };
    target.headers.push(header(line, name.trim_end(), value.trim())?);
    Ok(())
}
