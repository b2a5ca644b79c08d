//! The example at the size of a toy, so that it cannot rot.

#[path = "../examples/in_process.rs"]
#[expect(dead_code, reason = "its main is for the command line")]
mod in_process;

/// Claim: with and without bytes in between, at each window, everything that three replicas are given to decide is decided.
#[test]
fn decisions_are_made() {
    for window in [1, 16, 256] {
        for as_bytes in [false, true] {
            assert!(in_process::measure(window, 100, as_bytes, 1_000) > 0);
        }
    }
}
