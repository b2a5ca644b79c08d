//! A segment of a node's log, as a disk may have left it.
#![no_main]

use process::store::format::{read_header, scan, was_durable};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some(header) = read_header(bytes) else {
        let _ = was_durable(bytes, 0, 0, None);
        return;
    };
    if let Ok(found) = scan(bytes, &header) {
        assert!(found.end <= bytes.len());
        assert_eq!(found.next.wrapping_sub(header.first), found.records.len() as u64);
    }
});
