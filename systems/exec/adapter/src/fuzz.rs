//! What a program says, for the coverage-guided fuzz target: lines of a channel of the load, in pieces, and of the control
//! channel.

use std::sync::Arc;

use sut::conformance::{same_in_pieces, with_outstanding};

use crate::line::{self, Answer, Vocabulary};
use crate::session::LineSession;

/// Transactions that are outstanding.
const OUTSTANDING: u64 = 8;

/// Reads `bytes` behind the first, which says how long the pieces are.
///
/// # Panics
/// When reading takes more than there is, or reads something else in pieces than at once.
pub fn fuzz_line(bytes: &[u8]) {
    let Some((piece, bytes)) = bytes.split_first() else { return };
    let _ = line::read::<Answer>(bytes);
    let session = || LineSession::new(Arc::new(words()), Arc::default(), 64);
    same_in_pieces(&|| with_outstanding(session(), OUTSTANDING), bytes, *piece);
}

/// Words that seeds use.
fn words() -> Vocabulary {
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Vocabulary {
        stages: list(&["accepted", "committed"]),
        kinds: list(&["put", "get"]),
        steps: list(&["queued"]),
        keys: None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sut::conformance::seeds_and_neighbours;

    use super::*;

    /// Claim: the seeds of the fuzz target are read, as is what differs from them in one byte.
    #[test]
    fn seeds_and_their_neighbours() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/exec_lines");
        let seeds = seeds_and_neighbours(&folder, b"{}[],:\"\n09\xff", fuzz_line);
        assert!(seeds >= 5, "{seeds}");
    }
}
