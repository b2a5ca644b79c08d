//! Where a redirect goes: a target of the same server. Another server is never asked: it is no declared target.

use crate::url::{self, Origin};

/// Statuses that name another place (RFC 9110 §15.4).
pub(super) const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

/// Whether the request there is a GET without a body: 303 says so, and of a POST the older two mean it (§15.4.2, §15.4.3).
pub(super) fn becomes_get(status: u16, method: &str) -> bool {
    status == 303 && method != "HEAD" || matches!(status, 301 | 302) && method == "POST"
}

/// Puts the target of a `Location` in an answer to `target` in the place of what stood in `out`.
///
/// # Errors
/// When it is another server's, or nowhere.
pub(super) fn resolve(
    location: &str,
    origin: &Origin,
    target: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), String> {
    out.clear();
    let location = location.split('#').next().unwrap_or_default().trim();
    let is_absolute = location.contains("://") || location.starts_with("//");
    let path_end = target.iter().position(|byte| *byte == b'?').unwrap_or(target.len());
    if is_absolute {
        let scheme = if origin.is_tls { "https:" } else { "http:" };
        let whole = if location.starts_with("//") {
            format!("{scheme}{location}")
        } else {
            location.to_owned()
        };
        let place = url::parse(&whole).map_err(|why| format!("redirected to nowhere: {why}"))?;
        match place.origin {
            Some(to) if to == *origin => out.extend_from_slice(place.target.as_bytes()),
            _ => {
                return Err(
                    "redirected to another server, which is no target of this trial".to_owned()
                );
            }
        }
    } else if location.starts_with('/') {
        out.extend_from_slice(location.as_bytes());
    } else if location.is_empty() {
        return Err("redirected to nowhere: Location is empty".to_owned());
    } else {
        let is_query = location.starts_with('?');
        let slash =
            target[..path_end].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        out.extend_from_slice(&target[..if is_query { path_end } else { slash }]);
        out.extend_from_slice(location.as_bytes());
    }
    if !out.iter().all(u8::is_ascii_graphic) {
        return Err("redirected to nowhere: Location holds what cannot stand in a URL".to_owned());
    }
    without_dots(out);
    Ok(())
}

/// RFC 3986 §5.2.4, for the path alone.
fn without_dots(target: &mut Vec<u8>) {
    let end = target.iter().position(|byte| *byte == b'?').unwrap_or(target.len());
    if !target[..end].windows(2).any(|two| two == b"/.") {
        return;
    }
    let (path, query) = target.split_at(end);
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut segments = path.split(|byte| *byte == b'/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        match segment {
            b"." | b".." => {
                if segment == b".." {
                    kept.pop();
                }
                if segments.peek().is_none() {
                    kept.push(b"");
                }
            }
            other => kept.push(other),
        }
    }
    let mut whole = Vec::with_capacity(target.len());
    kept.iter().for_each(|segment| {
        whole.push(b'/');
        whole.extend_from_slice(segment);
    });
    whole.extend_from_slice(query);
    *target = whole;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: every form of Location comes out as the target that a browser would ask for, and another server is refused.
    #[test]
    fn locations() {
        let origin = Origin { is_tls: false, host: "h".into(), port: 8080 };
        for (location, expected) in [
            ("/x?y=1#z", Ok("/x?y=1")),
            ("http://h:8080/x", Ok("/x")),
            ("HTTP://H:8080", Ok("/")),
            ("//h:8080/x", Ok("/x")),
            ("next", Ok("/a/next")),
            ("./next?q=../x", Ok("/a/next?q=../x")),
            ("../up", Ok("/up")),
            ("..", Ok("/")),
            ("?page=2", Ok("/a/b?page=2")),
            ("", Err("redirected to nowhere: Location is empty")),
            ("/a b", Err("redirected to nowhere: Location holds what cannot stand in a URL")),
            (
                "https://h:8080/x",
                Err("redirected to another server, which is no target of this trial"),
            ),
            (
                "http://other/x",
                Err("redirected to another server, which is no target of this trial"),
            ),
        ] {
            let mut out = b"before".to_vec();
            let got = resolve(location, &origin, b"/a/b?c=/d", &mut out);
            let got = got.map(|()| String::from_utf8(out).unwrap());
            assert_eq!(got, expected.map(str::to_owned).map_err(str::to_owned), "{location}");
        }
        let gets = [(303, "PUT"), (303, "HEAD"), (302, "POST"), (302, "PUT"), (307, "POST")];
        assert_eq!(
            gets.map(|(status, method)| becomes_get(status, method)),
            [true, false, true, false, false]
        );
    }
}
