//! What the fuzz targets of adapters do with a session: any bytes, at once and in pieces, on the calling thread. A target that
//! fails has panicked; one that hangs is ended by who runs it.

use std::path::Path;

use super::replay;
use crate::{Session, Transaction};

/// The longest piece, in bytes.
const PIECE_BYTES_MAX: u8 = 64;

/// A session to which `count` transactions have been submitted, numbered from 0, of kind 0 and a few bytes.
#[must_use]
pub fn with_outstanding(mut session: impl Session + 'static, count: u64) -> Box<dyn Session> {
    for id in 0..count {
        session.submit(&Transaction::new(id, 0, b"value"), &mut Vec::new());
    }
    Box::new(session)
}

/// Gives `stream` to like sessions, to one at once and to one in pieces of a length that `piece` says (1 to 64 bytes). Both
/// must find the same: marks and observations in their order, what is sent back, how much is used, and why they fail, up to
/// the first colon: after it may stand what was there, which differs where it is cut.
///
/// # Panics
/// When they do not, or when a session takes more than there is.
pub fn same_in_pieces(session: &dyn Fn() -> Box<dyn Session>, stream: &[u8], piece: u8) {
    let piece = usize::from(piece % PIECE_BYTES_MAX) + 1;
    let heard = |pieces: &[usize]| {
        let mut heard = replay::read(session().as_mut(), stream, pieces)
            .unwrap_or_else(|words| panic!("{words}"));
        // How far it had come does not matter: the connection is closed.
        if heard.error.is_some() || heard.found.is_closing {
            heard.used = 0;
        }
        let cause = |why: String| why.split(':').next().unwrap_or_default().to_owned();
        heard.error = heard.error.map(cause);
        heard
    };
    let pieces: Vec<usize> = stream.chunks(piece).map(<[u8]>::len).collect();
    assert_eq!(heard(&pieces), heard(&[stream.len()]), "in pieces of {piece}");
}

/// Gives `fuzz` each seed of a folder, and all that differ from one in a byte that is one of `others` instead. Says how many
/// seeds there are.
///
/// # Panics
/// When the folder cannot be read, or when `fuzz` panics.
pub fn seeds_and_neighbours(folder: &Path, others: &[u8], fuzz: fn(&[u8])) -> usize {
    let mut seeds = 0;
    for entry in std::fs::read_dir(folder).expect("there are seeds").flatten() {
        let seed = std::fs::read(entry.path()).expect("a seed");
        fuzz(&seed);
        for at in 0..seed.len() {
            for other in others {
                let mut near = seed.clone();
                near[at] = *other;
                fuzz(&near);
            }
        }
        seeds += 1;
    }
    seeds
}
