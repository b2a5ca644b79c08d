//! Records that are kept until it is their turn. They lie together in pieces: an allocation for each would scatter the
//! memory of the database. A piece is free again when nothing in it is still to come.

use super::framed;

/// Records that reach beyond this close their piece.
const ASIDE_BYTES: usize = 64 << 10;

/// Pieces of kept records.
#[derive(Debug, Default)]
pub(super) struct Aside {
    pieces: Vec<Piece>,
}

#[derive(Debug, Default)]
struct Piece {
    bytes: Vec<u8>,
    /// How many [`Records`] of it are still to come.
    waiting: usize,
}

/// Where records that belong together are kept.
#[derive(Debug)]
pub(super) struct Records {
    piece: usize,
    next: usize,
    end: usize,
}

impl Aside {
    /// Keeps what `more` appends, record by record, until it says that there is no more.
    pub(super) fn keep(&mut self, mut more: impl FnMut(&mut Vec<u8>) -> bool) -> Records {
        if self.pieces.last().is_none_or(|last| last.bytes.len() >= ASIDE_BYTES) {
            let bytes = Vec::with_capacity(ASIDE_BYTES);
            self.pieces.push(Piece { bytes, waiting: 0 });
        }
        let piece = self.pieces.len() - 1;
        let last = &mut self.pieces[piece];
        let next = last.bytes.len();
        while framed(&mut last.bytes, &mut more) {}
        last.waiting += 1;
        Records { piece, next, end: last.bytes.len() }
    }

    /// Appends the next record to `out`; `None`: it was the last.
    pub(super) fn next(&mut self, mut kept: Records, out: &mut Vec<u8>) -> Option<Records> {
        let piece = &mut self.pieces[kept.piece];
        let (length, rest) = piece.bytes[kept.next..].split_first_chunk().expect("a frame");
        let length = u32::from_le_bytes(*length) as usize;
        out.extend_from_slice(&rest[..length]);
        kept.next += 4 + length;
        if kept.next < kept.end {
            return Some(kept);
        }
        piece.waiting -= 1;
        if piece.waiting == 0 {
            piece.bytes = Vec::new();
        }
        None
    }

    /// Bytes that are kept.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.bytes.len()).sum()
    }
}
