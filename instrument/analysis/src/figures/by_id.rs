//! A few bits, or two times, of each of very many transactions, by their numbers: in pages, of which only those are kept that
//! something stands in.

use model::{NO_STAMP, Stamp};
use stats::carry::Carry;

/// Ids a page.
const PAGE: usize = 1 << 16;
/// Ids that there can be: 2 GB of half bytes, which no dense numbering of rows reaches.
pub(crate) const IDS_MAX: u64 = 1 << 32;
/// And pages.
const PAGES_MAX: usize = IDS_MAX as usize / PAGE;

/// One half byte an id, in pages.
#[derive(Clone, Default)]
pub(crate) struct Nibbles {
    pages: Vec<Option<Box<[u8; PAGE / 2]>>>,
}

impl Nibbles {
    #[inline]
    pub fn get(&self, id: u64) -> u8 {
        let (page, at, high) = place(id);
        let byte = self.pages.get(page).and_then(Option::as_ref).map_or(0, |page| page[at]);
        if high { byte >> 4 } else { byte & 15 }
    }

    #[inline]
    pub fn set(&mut self, id: u64, value: u8) {
        self.replace(id, value);
    }

    /// The value that was there.
    #[inline]
    pub fn replace(&mut self, id: u64, value: u8) -> u8 {
        let (page, at, high) = place(id);
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let page = self.pages[page].get_or_insert_with(new_page);
        let shift = u32::from(high) * 4;
        let before = page[at] >> shift & 15;
        page[at] = page[at] & !(15 << shift) | value << shift;
        before
    }

    /// Adds the values of another, or writes them; says how many ids both have. The other's count: it is later.
    pub fn carry(&mut self, it: &mut Carry<'_>) -> u64 {
        let mine = self.pages.iter().enumerate().filter(|(_, page)| page.is_some());
        let (mut theirs, mut both) = (new_page(), 0);
        for at in it.places(mine.map(|(at, _)| at), PAGES_MAX) {
            if let Some(Some(mine)) = self.pages.get(at) {
                theirs.copy_from_slice(&mine[..]);
            }
            it.runs(&mut theirs[..]);
            it.adding(|| {
                if at >= self.pages.len() {
                    self.pages.resize_with(at + 1, || None);
                }
                let mine = self.pages[at].get_or_insert_with(new_page);
                for (mine, theirs) in mine.iter_mut().zip(theirs.iter()) {
                    for half in [15, 15 << 4] {
                        both += u64::from(*mine & half != 0 && theirs & half != 0);
                        if theirs & half != 0 {
                            *mine = *mine & !half | theirs & half;
                        }
                    }
                }
            });
        }
        both
    }

    /// Ids whose value is not zero, ascending.
    pub fn each(&self) -> impl Iterator<Item = (u64, u8)> + '_ {
        self.pages.iter().enumerate().flat_map(|(index, page)| {
            page.iter().flat_map(move |page| {
                (0..PAGE).filter_map(move |at| {
                    let byte = page[at / 2];
                    let value = if at % 2 == 1 { byte >> 4 } else { byte & 15 };
                    let id = u64::try_from(index * PAGE + at).expect("bounded by IDS_MAX");
                    (value != 0).then_some((id, value))
                })
            })
        })
    }
}

/// Apart from the path of a row, and never on the stack: a caller's frame of half a megabyte would be touched for each
/// block of rows.
#[cold]
#[inline(never)]
fn new_page() -> Box<[u8; PAGE / 2]> {
    vec![0; PAGE / 2].try_into().expect("as long as a page")
}

#[cold]
#[inline(never)]
fn new_times_page() -> TimesPage {
    vec![(0, NEVER_ACKNOWLEDGED); PAGE].try_into().expect("as long as a page")
}

#[inline]
fn place(id: u64) -> (usize, usize, bool) {
    let id = usize::try_from(id).expect("bounded by IDS_MAX");
    (id / PAGE, id % PAGE / 2, id % 2 == 1)
}

/// A length of time that others are divided by, without a division: two of them a row would cost more than the rest.
#[derive(Clone, Copy, Default)]
pub(crate) struct Unit {
    ns: u64,
    /// 2^64 ÷ `ns`, rounded up.
    inverse: u64,
}

impl Unit {
    pub fn new(ns: i64) -> Self {
        let ns = u64::try_from(ns).expect("a positive length");
        Self { ns, inverse: u64::MAX / ns + 1 }
    }

    /// The quotient, rounded down; −1 for whatever is negative.
    #[inline]
    fn floor(self, stamp: i64) -> i64 {
        let Ok(stamp) = u64::try_from(stamp) else { return -1 };
        let product = u128::from(stamp) * u128::from(self.inverse);
        let estimate = u64::try_from(product >> 64).expect("the upper half");
        // Rounding `inverse` up adds less than one to the quotient.
        let is_above = estimate * self.ns > stamp;
        (estimate - u64::from(is_above)).cast_signed()
    }
}

/// When a transaction was sent and when it was acknowledged, in units that fit 32 bits.
#[derive(Clone, Default)]
pub(crate) struct Times {
    unit: Unit,
    pages: Vec<Option<TimesPage>>,
}

/// Sent, acknowledged.
type TimesPage = Box<[(u32, u32); PAGE]>;

/// Not acknowledged.
const NEVER_ACKNOWLEDGED: u32 = u32::MAX;

impl Times {
    /// None yet, in this unit.
    pub fn of(unit: Unit) -> Self {
        Self { unit, pages: Vec::new() }
    }

    #[inline]
    pub fn set(&mut self, id: u64, sent: Stamp, mark: Stamp) {
        let (page, at) = split(id);
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        // Sent is rounded down and acknowledged up, so that rounding can hide a contradiction of less than a
        // unit and can never make one.
        let sent = clamp(self.unit.floor(sent));
        let acknowledged =
            if mark == NO_STAMP { NEVER_ACKNOWLEDGED } else { clamp(self.unit.floor(mark) + 1) };
        let page = self.pages[page].get_or_insert_with(new_times_page);
        page[at] = (sent, acknowledged);
    }

    /// Adds the times of another, or writes them; those of an id that both have are the later's.
    pub fn carry(&mut self, it: &mut Carry<'_>) {
        let mine = self.pages.iter().enumerate().filter(|(_, page)| page.is_some());
        for at in it.places(mine.map(|(at, _)| at), PAGES_MAX) {
            if at >= self.pages.len() {
                self.pages.resize_with(at + 1, || None);
            }
            let page = self.pages[at].get_or_insert_with(new_times_page);
            // So that an id without times is two zeros.
            let mut sent: Vec<u32> = page.iter().map(|(sent, _)| *sent).collect();
            let mut left: Vec<u32> =
                page.iter().map(|(_, mark)| NEVER_ACKNOWLEDGED - mark).collect();
            it.each(&mut sent, |_, later| Some(later));
            it.each(&mut left, |_, later| Some(later));
            for ((known, sent), left) in page.iter_mut().zip(sent).zip(left) {
                *known = (sent, NEVER_ACKNOWLEDGED - left);
            }
        }
    }

    pub fn get(&self, id: u64) -> Option<(u32, u32)> {
        let (page, at) = split(id);
        self.pages.get(page)?.as_ref().map(|page| page[at])
    }
}

fn split(id: u64) -> (usize, usize) {
    let id = usize::try_from(id).expect("bounded by IDS_MAX");
    (id / PAGE, id % PAGE)
}

fn clamp(value: i64) -> u32 {
    u32::try_from(value.clamp(0, i64::from(u32::MAX - 1))).expect("clamped")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the quotient is that of a division, at every edge and for any unit.
    #[test]
    fn quotients_are_exact() {
        for ns in [1_000, 1_001, 1_024, 4_096, 7_919, 86_400_000, 1 << 40, (1 << 40) + 1] {
            let unit = Unit::new(ns);
            for n in [0, 1, 2, 999, 123_456, (1 << 59) / ns, ((1 << 62) - 1) / ns] {
                for stamp in [n * ns - 1, n * ns, n * ns + 1, n * ns + ns - 1] {
                    let exact = if stamp < 0 { -1 } else { stamp / ns };
                    assert_eq!(unit.floor(stamp), exact, "{stamp} / {ns}");
                }
            }
        }
        assert_eq!((Unit::new(1_000).floor(i64::MIN), Unit::new(1_000).floor(-1)), (-1, -1));
    }
}
