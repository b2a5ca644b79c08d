//! The functions of `include/sampler.h`: pointers become references here, and nowhere else.

#![expect(
    unsafe_code,
    reason = "a caller in C gives pointers; each function says what must hold of them"
)]

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr::null_mut;

use clock::{Clock, Instant};
use sampler::{Options, Ring, STAGES_MAX, Sampler, Stage};

/// A ring, and how many stages there are: a caller in C is not to end the program with a wrong number, whatever it gives.
pub struct CRing {
    ring: Ring,
    stages: u8,
    /// The reading of `CLOCK_MONOTONIC` at the sampler's instant 0.
    origin_ns: i64,
}

impl CRing {
    /// The sampler's instant of a reading of `CLOCK_MONOTONIC`; one that no clock gives becomes the nearest that is one.
    fn instant(&self, monotonic_ns: u64) -> Instant {
        let monotonic_ns = i64::try_from(monotonic_ns).unwrap_or(i64::MAX);
        Instant::from_ns(monotonic_ns.saturating_sub(self.origin_ns))
    }

    fn monotonic_ns(&self, at: Instant) -> u64 {
        u64::try_from(at.as_ns().saturating_add(self.origin_ns)).unwrap_or(0)
    }
}

/// As `sampler_open`.
///
/// # Safety
/// `path` and `node` are null or end with a zero; `stages` is null or has `count` of the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sampler_open(
    path: *const c_char,
    node: *const c_char,
    stages: *const *const c_char,
    count: usize,
) -> *mut Sampler {
    if path.is_null() || node.is_null() || stages.is_null() || !(1..=STAGES_MAX).contains(&count) {
        return null_mut();
    }
    // SAFETY: not null, and the caller says that both end with a zero.
    let (path, node) = unsafe { (CStr::from_ptr(path), CStr::from_ptr(node)) };
    let mut named = Vec::new();
    for index in 0..count {
        // SAFETY: the caller says that there are `count` of them.
        let name = unsafe { *stages.add(index) };
        if name.is_null() {
            return null_mut();
        }
        // SAFETY: not null, and the caller says that it ends with a zero.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        named.push(Stage::new(&name, &name));
    }
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    let node = node.to_string_lossy();
    match Sampler::create(path, &node, &named, Clock::start(), Options::default()) {
        Ok(sampler) => Box::into_raw(Box::new(sampler)),
        Err(_) => null_mut(),
    }
}

/// As `sampler_ring_new`.
///
/// # Safety
/// `of` is null or a sampler that was not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sampler_ring_new(of: *const Sampler) -> *mut CRing {
    // SAFETY: the caller says that it is null or a sampler of ours.
    let Some(sampler) = (unsafe { of.as_ref() }) else { return null_mut() };
    let stages = u8::try_from(sampler.head().stages.len()).unwrap_or(u8::MAX);
    let origin_ns = sampler.clock().origin_monotonic_ns();
    Box::into_raw(Box::new(CRing { ring: sampler.ring(), stages, origin_ns }))
}

/// As `sampler_now`.
///
/// # Safety
/// `ring` is null or a ring that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sampler_now(ring: *const CRing) -> u64 {
    // SAFETY: the caller says that it is null or a ring of ours.
    unsafe { ring.as_ref() }.map_or(0, |it| it.monotonic_ns(it.ring.now()))
}

/// As `sampler_event`.
///
/// # Safety
/// `ring` is null or a ring that was not freed, and nobody else uses it now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sampler_event(
    ring: *mut CRing,
    stage: u8,
    from: u64,
    to: u64,
    count: u64,
) -> c_int {
    // SAFETY: the caller says that it is null or a ring of ours that nobody else uses.
    match unsafe { ring.as_mut() }.filter(|it| stage < it.stages) {
        Some(it) => it.ring.event(stage, it.instant(from), it.instant(to), count),
        None => return -1,
    }
    0
}

/// As `sampler_done`.
///
/// # Safety
/// As of [`sampler_event`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sampler_done(ring: *mut CRing, stage: u8, from: u64, count: u64) -> u64 {
    // SAFETY: the caller says that it is null or a ring of ours that nobody else uses.
    match unsafe { ring.as_mut() }.filter(|it| stage < it.stages) {
        Some(it) => {
            let done = it.ring.done(stage, it.instant(from), count);
            it.monotonic_ns(done)
        }
        None => 0,
    }
}

/// As `sampler_span`.
///
/// # Safety
/// As of [`sampler_event`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sampler_span(
    ring: *mut CRing,
    stage: u8,
    from: u64,
    to: u64,
    key: u64,
) -> c_int {
    // SAFETY: the caller says that it is null or a ring of ours that nobody else uses.
    match unsafe { ring.as_mut() }.filter(|it| stage < it.stages) {
        Some(it) => it.ring.span(stage, it.instant(from), it.instant(to), key),
        None => return -1,
    }
    0
}

/// As `sampler_ring_free`.
///
/// # Safety
/// `ring` is null or a ring that was not freed, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sampler_ring_free(ring: *mut CRing) {
    if !ring.is_null() {
        // SAFETY: it was made by `sampler_ring_new`, and the caller says that it is freed once.
        drop(unsafe { Box::from_raw(ring) });
    }
}

/// As `sampler_close`.
///
/// # Safety
/// `of` is null or a sampler that was not closed, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sampler_close(of: *mut Sampler) -> i64 {
    if of.is_null() {
        return -1;
    }
    // SAFETY: it was made by `sampler_open`, and the caller says that it is closed once.
    let sampler = unsafe { Box::from_raw(of) };
    match sampler.close() {
        Ok(totals) => i64::try_from(totals.lost).unwrap_or(i64::MAX),
        Err(_) => -1,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::ptr::null;

    use sampler::Reader;

    use super::*;

    fn monotonic_ns() -> u64 {
        let clock = Clock::with_origin(0);
        u64::try_from(clock.now().as_ns()).expect("a machine that has started")
    }

    /// Claim: no number that a caller in C may give ends its program.
    #[test]
    fn any_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = CString::new(folder.path().join("events").to_str().unwrap()).unwrap();
        let names = [path.as_ptr(), path.as_ptr()];
        // SAFETY: all pointers are of what lives until the end of the test.
        unsafe {
            let sampler = sampler_open(path.as_ptr(), path.as_ptr(), names.as_ptr(), 2);
            let ring = sampler_ring_new(sampler);
            let ends = [0, 1, i64::MAX as u64, 1 << 63, u64::MAX];
            for from in ends {
                for to in ends {
                    assert_eq!(sampler_event(ring, 0, from, to, u64::MAX), 0);
                    assert_eq!(sampler_span(ring, 1, from, to, u64::MAX), 0);
                    assert_eq!(sampler_event(ring, 255, from, to, 1), -1);
                }
                assert!(sampler_done(ring, 0, from, u64::MAX) > 0);
            }
            sampler_ring_free(ring);
            assert_eq!(sampler_close(sampler), 0);
        }
    }

    /// Claim: what a caller in C stamps stands in the file, and wrong pointers and stages are refused.
    #[test]
    fn a_caller_in_c() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let text = |text: &str| CString::new(text).unwrap();
        let (at, node) = (text(path.to_str().unwrap()), text("service"));
        let (first, second) = (text("read"), text("write"));
        let names = [first.as_ptr(), second.as_ptr()];
        // SAFETY: all pointers are of what lives until the end of the test, or null.
        unsafe {
            assert!(sampler_open(null(), node.as_ptr(), names.as_ptr(), 2).is_null());
            assert!(sampler_open(at.as_ptr(), node.as_ptr(), names.as_ptr(), 0).is_null());
            assert!(sampler_ring_new(null()).is_null());
            let sampler = sampler_open(at.as_ptr(), node.as_ptr(), names.as_ptr(), 2);
            assert!(!sampler.is_null());
            let ring = sampler_ring_new(sampler);
            let before = monotonic_ns();
            let from = sampler_now(ring);
            assert!((before..=monotonic_ns()).contains(&from), "it is CLOCK_MONOTONIC");
            assert!(sampler_done(ring, 1, from, 3) >= from);
            assert_eq!(sampler_event(ring, 0, 5, 7, 1), 0);
            assert_eq!(sampler_span(ring, 0, 5, 7, 99), 0);
            assert_eq!(
                (sampler_event(ring, 2, 5, 7, 1), sampler_done(null_mut(), 0, 0, 1)),
                (-1, 0)
            );
            sampler_ring_free(ring);
            sampler_ring_free(null_mut());
            assert_eq!(sampler_close(sampler), 0);
            assert_eq!(sampler_close(null_mut()), -1);
        }
        let mut reader = Reader::open(std::fs::File::open(&path).unwrap()).unwrap();
        let mut records = 0;
        while reader.next(|_| records += 1).unwrap() {}
        assert_eq!((records, reader.problem()), (3, None));
        assert_eq!(reader.totals().stages[1].transactions, 3);
    }
}
