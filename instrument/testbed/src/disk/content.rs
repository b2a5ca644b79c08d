//! What one file holds, twice: as programs see it, and as it would be found after the power was cut.
//!
//! The two share their pages until one is written to, so what is synced costs nothing twice. It must never let the
//! second take anything from the first but by [`Content::sync`], [`Content::lose`] or [`Content::forget_unsynced`].

use std::collections::BTreeMap;
use std::sync::Arc;

use model::Seed;

use super::Loss;

/// What is kept as one piece, as in the kernel's own cache of files.
pub(super) const PAGE: u64 = 4096;
/// What a disk writes whole or not at all: the smallest unit that disks promise.
const SECTOR: u64 = 512;
const SECTORS: u64 = PAGE / SECTOR;
/// All sectors of a page.
const ALL: u8 = 0xff;
const PAGE_BYTES: usize = PAGE as usize;
const SECTOR_BYTES: usize = SECTOR as usize;

type Page = Arc<[u8; PAGE_BYTES]>;

/// The bytes of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    /// Absent: zeros.
    pages: BTreeMap<u64, Page>,
    size: u64,
    safe_pages: BTreeMap<u64, Page>,
    safe_size: u64,
    /// Sectors that were changed since the last sync, a bit each, by page.
    unsynced: BTreeMap<u64, u8>,
}

/// What became of the unsynced sectors of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fate {
    pub(super) kept_bytes: u64,
    pub(super) lost_bytes: u64,
}

impl Content {
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// Pages that programs see.
    pub(super) fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Pages that it may hold in memory: what programs see, and what that has replaced and is not synced.
    pub(super) fn weight(&self) -> u64 {
        (self.pages.len() + self.unsynced.len()) as u64
    }

    /// Whether its size is another than the durable one: then a sync of data alone has to keep more than data.
    pub(super) const fn is_resized(&self) -> bool {
        self.size != self.safe_size
    }

    /// How many more pages a write would take.
    pub(super) fn needed(&self, offset: u64, length: u64) -> u64 {
        let Some(last) = length.checked_sub(1).and_then(|more| offset.checked_add(more)) else {
            return 0;
        };
        let (first, last) = (offset / PAGE, last / PAGE);
        last - first + 1 - self.pages.range(first..=last).count() as u64
    }

    pub(super) fn read(&self, offset: u64, length: u64) -> Vec<u8> {
        let end = offset.saturating_add(length).min(self.size);
        let mut bytes = Vec::new();
        let mut at = offset;
        while at < end {
            let (page, within) = (at / PAGE, at % PAGE);
            let upto = (PAGE - within).min(end - at);
            match self.pages.get(&page) {
                Some(page) => bytes.extend_from_slice(&page[index(within)..index(within + upto)]),
                None => bytes.resize(bytes.len() + index(upto), 0),
            }
            at += upto;
        }
        bytes
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let within = index(at % PAGE);
            let (now, later) = rest.split_at(rest.len().min(PAGE_BYTES - within));
            let page = self.change(at / PAGE, at % PAGE, now.len() as u64);
            page[within..within + now.len()].copy_from_slice(now);
            at += now.len() as u64;
            rest = later;
        }
        self.size = self.size.max(at);
    }

    /// Zeros, without a change of the size.
    pub(super) fn zero(&mut self, offset: u64, length: u64) {
        let end = offset.saturating_add(length).min(self.size);
        let mut at = offset;
        while at < end {
            let (page, within) = (at / PAGE, at % PAGE);
            let upto = (PAGE - within).min(end - at);
            if upto == PAGE {
                if self.pages.remove(&page).is_some() {
                    self.unsynced.insert(page, ALL);
                }
            } else if self.pages.contains_key(&page) {
                self.change(page, within, upto)[index(within)..index(within + upto)].fill(0);
            }
            at += upto;
        }
    }

    pub(super) fn resize(&mut self, size: u64) {
        if size < self.size {
            let whole = size.div_ceil(PAGE);
            for page in self.pages.split_off(&whole).into_keys() {
                self.unsynced.insert(page, ALL);
            }
            // What lies behind the end is zeros, should the file grow again.
            let upto = self.size.min(whole * PAGE);
            self.zero(size, upto.saturating_sub(size));
        }
        self.size = size;
    }

    /// What programs see is durable.
    pub(super) fn sync(&mut self) {
        for page in std::mem::take(&mut self.unsynced).into_keys() {
            match self.pages.get(&page) {
                Some(bytes) => self.safe_pages.insert(page, Arc::clone(bytes)),
                None => self.safe_pages.remove(&page),
            };
        }
        self.safe_size = self.size;
    }

    /// A sync failed: as Linux does, what was to be written counts as written and is not tried again.
    pub(super) fn forget_unsynced(&mut self) {
        self.unsynced.clear();
    }

    /// The power is cut: only what is durable is left and, with [`Loss::Tear`], what the disk had happened to write
    /// of the rest. What was appended survives up to some sector, since the end of a file is moved only
    /// after its data was written (ext4's ordered mode); of what was written over, any sector may.
    pub(super) fn lose(&mut self, loss: Loss, seed: Seed) -> Fate {
        let unsynced = std::mem::take(&mut self.unsynced);
        let sectors: Vec<u64> =
            unsynced.iter().flat_map(|(page, mask)| sectors(*page, *mask)).collect();
        let mut safe = std::mem::take(&mut self.safe_pages);
        let mut kept = 0;
        let mut size = self.safe_size;
        if loss == Loss::Tear {
            let mut rng = seed.rng();
            // The sector in which the durable end lies is the first of what was appended.
            let appended_from = self.safe_size / SECTOR;
            let appended = sectors.iter().filter(|sector| **sector >= appended_from).count();
            let mut kept_appended = rng.below(appended as u64 + 1);
            if self.size < self.safe_size {
                size = if rng.below(2) == 0 { self.safe_size } else { self.size };
            } else if kept_appended == appended as u64 {
                size = self.size;
            }
            for sector in &sectors {
                let is_kept = if *sector < appended_from {
                    rng.below(2) == 0
                } else if kept_appended > 0 {
                    kept_appended -= 1;
                    // A sector of data is the size that ends with it.
                    size = size.max(((sector + 1) * SECTOR).min(self.size));
                    true
                } else {
                    false
                };
                if is_kept {
                    kept += 1;
                    keep_sector(&mut safe, &self.pages, *sector);
                }
            }
            cut(&mut safe, size);
        }
        let all = sectors.len() as u64;
        self.pages.clone_from(&safe);
        self.safe_pages = safe;
        (self.size, self.safe_size) = (size, size);
        Fate { kept_bytes: kept * SECTOR, lost_bytes: (all - kept) * SECTOR }
    }

    /// A page that is about to be changed in these of its bytes.
    fn change(&mut self, page: u64, within: u64, length: u64) -> &mut [u8; PAGE_BYTES] {
        let (first, last) = (within / SECTOR, (within + length.max(1) - 1) / SECTOR);
        let mask = (first..=last).fold(0, |mask, sector| mask | 1 << sector);
        *self.unsynced.entry(page).or_insert(0) |= mask;
        Arc::make_mut(self.pages.entry(page).or_insert_with(|| Arc::new([0; PAGE_BYTES])))
    }
}

/// The sectors of a file that a page's mask means.
fn sectors(page: u64, mask: u8) -> impl Iterator<Item = u64> {
    (0..SECTORS).filter(move |sector| mask & (1 << sector) != 0).map(move |s| page * SECTORS + s)
}

fn keep_sector(safe: &mut BTreeMap<u64, Page>, seen: &BTreeMap<u64, Page>, sector: u64) {
    let (page, from) = (sector / SECTORS, index(sector % SECTORS * SECTOR));
    let to = Arc::make_mut(safe.entry(page).or_insert_with(|| Arc::new([0; PAGE_BYTES])));
    match seen.get(&page) {
        Some(bytes) => {
            to[from..from + SECTOR_BYTES].copy_from_slice(&bytes[from..from + SECTOR_BYTES])
        }
        None => to[from..from + SECTOR_BYTES].fill(0),
    }
}

/// Nothing lies behind the end.
fn cut(pages: &mut BTreeMap<u64, Page>, size: u64) {
    pages.split_off(&size.div_ceil(PAGE));
    if !size.is_multiple_of(PAGE)
        && let Some(last) = pages.get_mut(&(size / PAGE))
    {
        Arc::make_mut(last)[index(size % PAGE)..].fill(0);
    }
}

fn index(bytes: u64) -> usize {
    usize::try_from(bytes).expect("at most a page or what one read asks for")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(content: &Content) -> Vec<u8> {
        content.read(0, u64::MAX)
    }

    /// Claim: reads give what was written across pages, holes are zeros, a cut tail does not come back, and the pages
    /// counted are those that hold something.
    #[test]
    fn bytes_are_bytes() {
        let mut content = Content::default();
        let text: Vec<u8> = (0..10_000_u32).map(|n| (n % 251) as u8).collect();
        assert_eq!(content.needed(5_000, 10_000), 3);
        content.write(5_000, &text);
        assert_eq!((content.size(), content.pages()), (15_000, 3));
        assert_eq!(all(&content)[..5_000], [0; 5_000]);
        assert_eq!(all(&content)[5_000..], text);
        assert_eq!(content.read(14_990, 100), text[9_990..]);
        assert_eq!(content.read(20_000, 5), [0_u8; 0]);
        content.resize(6_000);
        content.resize(9_000);
        assert_eq!(all(&content)[5_000..6_000], text[..1_000]);
        assert_eq!(all(&content)[6_000..], [0; 3_000]);
        content.zero(4_096, 4_096);
        assert_eq!(all(&content), [0; 9_000]);
        assert_eq!(content.needed(0, 0), 0);
    }

    /// Claim: after a loss there is what was synced and nothing else, whatever was written, cut or punched since.
    #[test]
    fn what_was_synced_is_left() {
        let mut content = Content::default();
        content.write(0, &[1; 6_000]);
        content.sync();
        content.write(100, &[2; 50]);
        content.write(6_000, &[3; 9_000]);
        content.zero(4_096, 100);
        assert_eq!(content.weight(), 4 + 4);
        let fate = content.lose(Loss::Drop, Seed(1));
        assert_eq!(all(&content), [1; 6_000]);
        assert_eq!(fate.kept_bytes, 0);
        assert!(fate.lost_bytes >= 9_050, "{fate:?}");
        content.resize(10);
        content.lose(Loss::Drop, Seed(1));
        assert_eq!(all(&content), [1; 6_000]);
        content.resize(10);
        content.sync();
        content.lose(Loss::Drop, Seed(1));
        assert_eq!((all(&content), content.weight()), (vec![1; 10], 1));
    }

    /// Claim: a sync that failed leaves what it should have written to the next loss, even if a later one succeeds.
    #[test]
    fn a_failed_sync_is_not_tried_again() {
        let mut content = Content::default();
        content.write(0, &[1; 100]);
        content.sync();
        content.write(0, &[2; 100]);
        content.forget_unsynced();
        content.sync();
        assert_eq!(all(&content), [2; 100]);
        content.lose(Loss::Drop, Seed(1));
        assert_eq!(all(&content), [1; 100]);
    }

    /// Claim: of an append a torn loss keeps whole sectors up to some point, never beyond it and never zeros before
    /// it; every length occurs; the same seed keeps the same.
    #[test]
    fn a_torn_append_is_a_prefix() {
        let mut lengths = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let mut content = Content::default();
            content.write(0, &[1; 700]);
            content.sync();
            content.write(700, &[2; 2_000]);
            let mut again = content.clone();
            content.lose(Loss::Tear, Seed(seed));
            again.lose(Loss::Tear, Seed(seed));
            assert_eq!(all(&content), all(&again));
            let size = content.size();
            assert!(size == 700 || size == 2_700 || size % SECTOR == 0, "{size}");
            assert!(all(&content).iter().skip(700).all(|byte| *byte == 2), "seed {seed}");
            assert_eq!(all(&content)[..700], [1; 700]);
            lengths.insert(size);
        }
        assert_eq!(
            lengths.into_iter().collect::<Vec<_>>(),
            [700, 1_024, 1_536, 2_048, 2_560, 2_700]
        );
    }

    /// Claim: of what was written over, a torn loss keeps some sectors and not others, each whole.
    #[test]
    fn a_torn_overwrite_is_a_mixture() {
        let mut content = Content::default();
        content.write(0, &[1; 65_536]);
        content.sync();
        content.write(0, &[2; 65_536]);
        let fate = content.lose(Loss::Tear, Seed(3));
        let sectors: Vec<Vec<u8>> =
            all(&content).chunks(SECTOR_BYTES).map(<[u8]>::to_vec).collect();
        assert!(sectors.iter().all(|s| s.iter().all(|byte| byte == &s[0])));
        let kept = sectors.iter().filter(|sector| sector[0] == 2).count() as u64;
        assert_eq!((fate.kept_bytes, fate.lost_bytes), (kept * SECTOR, (128 - kept) * SECTOR));
        assert!((32..96).contains(&kept), "{kept} of 128");
    }
}
