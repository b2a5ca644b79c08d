//! The page's Content-Security-Policy: its own style and its own script, and nothing else from anywhere.
//!
//! It must never allow what it did not hash: were a text from outside to become a script, it would not run.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};

/// The meta element for a page with one `<style>` and one `<script>`.
pub(super) fn meta(style: &str, script: &str) -> String {
    meta_with(style, script, "")
}

/// The same, with what else it allows; each directive ends with `; `.
pub(super) fn meta_with(style: &str, script: &str, more: &str) -> String {
    format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; {more}\
         style-src {}; script-src {}; base-uri 'none'; form-action 'none'\">\n",
        hash(style),
        hash(script)
    )
}

fn hash(of: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(digest(&SHA256, of.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the hash is that of the CSP specification's own example.
    #[test]
    fn known_hash() {
        let expected = "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='";
        assert_eq!(hash("alert('Hello, world.');"), expected);
    }
}
