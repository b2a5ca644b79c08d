//! References to the environment where they are refused: for the whole process, so it is one of its own.

use model::secret::{expand, expand_bytes, forbid_environment};

/// Claim: once it is forbidden, no form of a reference takes a value, and no variable is even looked up; other texts stay.
#[test]
fn nothing_is_read() {
    let lookup = |name: &str| -> Option<String> { panic!("`{name}` was looked up") };
    forbid_environment();
    for text in ["${TOKEN}", "Bearer ${TOKEN}", "env:TOKEN", "Bearer env:TOKEN", "a ${TOKEN} b"] {
        let refused = expand(text, &lookup).expect_err(text);
        assert!(refused.contains("reads no environment"), "{refused}");
        assert!(refused.contains("asks for `TOKEN`"), "{refused}");
    }
    assert!(expand_bytes(b"\xff${TOKEN}", &lookup).is_err());
    assert_eq!(expand("$${TOKEN} {TOKEN}", &lookup).as_deref(), Ok("${TOKEN} {TOKEN}"));
}
