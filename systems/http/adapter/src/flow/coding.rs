//! Codings of bodies: what a server compressed is read as it was before, up to what is kept of a body. Nothing is written here,
//! and a few bytes that would become gigabytes are not unpacked beyond that.

use std::borrow::Cow;
use std::io::Read;

use brotli_decompressor::Decompressor;
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use wire::http1::header_of;

use crate::expect::Answered;

/// The value of `Accept-Encoding`.
pub(crate) const ACCEPTED: &str = "gzip, br, zstd";

/// Bytes that the reader of brotli takes up at a time: the longest body that is kept is a few of them.
const PIECE_BYTES: usize = 4 << 10;

/// The body as it was before it was compressed, as far as it is kept, and how long it is: longer than what is kept where
/// the rest is not known. One that cannot be read stays as it came: what is looked for in it is not found.
pub(super) fn plain<'a>(answered: &Answered<'a>, kept_max: usize) -> (Cow<'a, [u8]>, u64) {
    let packed = answered.body;
    let as_it_came = (Cow::Borrowed(packed), answered.response.body_bytes);
    let coding = header_of(answered.head, "content-encoding").unwrap_or_default();
    let is = |name: &str| coding.eq_ignore_ascii_case(name.as_bytes());
    let read = if is("gzip") || is("x-gzip") {
        read(MultiGzDecoder::new(packed), kept_max)
    } else if is("br") {
        read(Decompressor::new(packed, PIECE_BYTES), kept_max)
    } else if is("zstd") {
        match StreamingDecoder::new(packed) {
            Ok(decoder) => read(decoder, kept_max),
            Err(_) => return as_it_came,
        }
    } else {
        return as_it_came;
    };
    let is_cut = answered.response.body_bytes > packed.len() as u64;
    match read {
        (_, false) if !is_cut => as_it_came,
        (mut body, _) => {
            let length = body.len() as u64 + u64::from(is_cut);
            body.truncate(kept_max);
            (Cow::Owned(body), length)
        }
    }
}

/// Up to one byte more than is kept, and whether it could be read so far.
fn read(decoder: impl Read, kept_max: usize) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    let read = decoder.take(kept_max as u64 + 1).read_to_end(&mut body);
    (body, read.is_ok())
}
