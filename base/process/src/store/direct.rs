//! Writing around the kernel's cache: what is written once and read only after a crash does not belong there. Each page
//! of the cache would be memory taken from others and a copy; on a virtual machine whose memory was never touched before,
//! the page costs several times its copy.
//!
//! The kernel asks for whole blocks, in the file and in memory. A [`Blocks`] therefore begins at a block of the file, keeps
//! the bytes of the last one until it is full, and writes them again with what comes behind them: the same bytes at the
//! same place, as the cache would do with its page.

use std::io;

use super::files::OpenFile;

/// Places and lengths are multiples of this: as large as any disk's own blocks.
pub const BLOCK_BYTES: usize = 4096;

/// Bytes on their way to a file, from a block's beginning on.
#[derive(Debug, Default)]
pub struct Blocks {
    /// Some bytes that only move what follows to a block's beginning in memory, and the content.
    bytes: Vec<u8>,
    lead: usize,
}

impl Blocks {
    /// So many zeros.
    #[must_use]
    pub fn zeros(count: usize) -> Self {
        let mut blocks = Self::default();
        blocks.buffer(count);
        blocks.bytes.resize(blocks.lead + count, 0);
        blocks
    }

    /// How many bytes there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes.len() - self.lead
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes.
    #[must_use]
    pub fn content(&self) -> &[u8] {
        &self.bytes[self.lead..]
    }

    /// The buffer, to add at most `more` bytes to: its beginning is not the content's.
    pub fn buffer(&mut self, more: usize) -> &mut Vec<u8> {
        // Padding to the end of the block has room, too.
        let room = self.bytes.capacity() - self.bytes.len();
        if room < more + BLOCK_BYTES {
            let wanted = (self.len() + more).next_power_of_two();
            let mut bytes: Vec<u8> = Vec::with_capacity(wanted + 2 * BLOCK_BYTES);
            // A pointer that cannot be aligned is written from where it is; the kernel then says no.
            let lead = bytes.as_ptr().align_offset(BLOCK_BYTES).min(BLOCK_BYTES);
            bytes.resize(lead, 0);
            bytes.extend_from_slice(self.content());
            *self = Self { bytes, lead };
        }
        &mut self.bytes
    }

    /// Writes everything, with zeros to the end of the last block, to `offset`, which is a block's beginning. The bytes of
    /// a block that is not full stay here. Gives how many bytes did not.
    ///
    /// # Errors
    /// What the kernel says; the same can be tried again.
    pub fn write(&mut self, file: &(impl OpenFile + ?Sized), offset: u64) -> io::Result<usize> {
        let length = self.len();
        self.buffer(0);
        let padded = length.next_multiple_of(BLOCK_BYTES);
        self.bytes.resize(self.lead + padded, 0);
        let written = file.write_all_at(self.content(), offset);
        self.bytes.truncate(self.lead + length);
        written?;
        let full = length / BLOCK_BYTES * BLOCK_BYTES;
        self.forget(full);
        Ok(full)
    }

    /// Drops the first `count` bytes.
    pub fn forget(&mut self, count: usize) {
        let from = self.lead + count;
        self.bytes.copy_within(from.., self.lead);
        self.bytes.truncate(self.bytes.len() - count);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;

    use super::*;

    /// Claim: what is added piece by piece stands in the file as one, whatever the pieces, with and without the cache, and
    /// from a beginning in memory that the kernel takes.
    #[test]
    fn pieces_become_one() {
        let folder = tempfile::tempdir().unwrap();
        for is_direct in [false, true] {
            let file = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(folder.path().join("file"))
                .unwrap();
            let mut blocks = Blocks::default();
            OpenFile::set_direct(&file, is_direct);
            let (mut expected, mut at) = (Vec::new(), 0_u64);
            for size in [1, 4095, 1, 0, 5000, 70_000, 3, 8192, 100] {
                let piece: Vec<u8> =
                    (0..size).map(|byte| u8::try_from(byte % 251).unwrap()).collect();
                blocks.buffer(piece.len()).extend_from_slice(&piece);
                expected.extend_from_slice(&piece);
                assert_eq!(blocks.content().as_ptr().align_offset(BLOCK_BYTES), 0);
                at += u64::try_from(blocks.write(&file, at).unwrap()).unwrap();
                OpenFile::set_direct(&file, false);
                let mut found = vec![0; expected.len()];
                file.read_exact_at(&mut found, 0).unwrap();
                assert!(found == expected, "{size}");
                OpenFile::set_direct(&file, is_direct);
            }
        }
    }
}
