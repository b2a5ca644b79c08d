//! The Huffman code of HPACK (RFC 7541, appendix B). It is canonical, so that the lengths of its codes say everything: codes of
//! one length follow each other in the order of their symbols, and those of the next length go on from there.

/// The end of a text, whose beginning pads the last byte.
const END: usize = 256;
const BITS_MAX: usize = 30;

#[rustfmt::skip]
const LENGTHS: [u8; END + 1] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/// By length: how many codes, the first code, and where its symbols begin in the order of codes.
struct Codes {
    count: [u32; BITS_MAX + 1],
    first: [u32; BITS_MAX + 1],
    start: [usize; BITS_MAX + 1],
    symbols: [u16; END + 1],
}

const CODES: Codes = codes();

const fn codes() -> Codes {
    let mut codes = Codes {
        count: [0; BITS_MAX + 1],
        first: [0; BITS_MAX + 1],
        start: [0; BITS_MAX + 1],
        symbols: [0; END + 1],
    };
    let (mut length, mut code, mut place) = (1, 0, 0);
    while length <= BITS_MAX {
        code <<= 1;
        codes.first[length] = code;
        codes.start[length] = place;
        let mut symbol = 0;
        while symbol <= END {
            if LENGTHS[symbol] as usize == length {
                codes.symbols[place] = symbol as u16;
                codes.count[length] += 1;
                place += 1;
                code += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    codes
}

/// Appends the text of `bytes`, up to `bytes_max` of it; `None`: they are no text of this code, or a longer one.
pub(super) fn decode(bytes: &[u8], bytes_max: usize, out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    let (mut code, mut length) = (0_u32, 0);
    for byte in bytes {
        for bit in (0..8).rev() {
            code = code << 1 | u32::from(byte >> bit & 1);
            length += 1;
            let Some(place) = code.checked_sub(CODES.first[length]) else { continue };
            if place < CODES.count[length] {
                let symbol = CODES.symbols[CODES.start[length] + place as usize];
                if usize::from(symbol) == END || out.len() - start >= bytes_max {
                    return None;
                }
                out.push(symbol as u8);
                (code, length) = (0, 0);
            } else if length == BITS_MAX {
                return None;
            }
        }
    }
    // The padding is the beginning of the end: less than a byte of ones (§5.2).
    (length < 8 && code == (1 << length) - 1).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the texts of the RFC's examples come out (appendix C.4, C.6).
    #[test]
    fn examples_of_the_rfc() {
        for (bytes, text) in [
            (
                &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff][..],
                "www.example.com",
            ),
            (&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf], "no-cache"),
            (&[0x64, 0x02], "302"),
            (&[0xae, 0xc3, 0x77, 0x1a, 0x4b], "private"),
            (&[], ""),
        ] {
            let mut out = Vec::new();
            assert_eq!(decode(bytes, 100, &mut out), Some(()), "{text}");
            assert_eq!(out, text.as_bytes());
        }
    }

    /// Claim: every symbol comes back, and the end in a text, padding of a byte or of zeros, and what is too long are refused.
    #[test]
    fn symbols_and_padding() {
        for length in 1..=BITS_MAX {
            for nth in 0..CODES.count[length] {
                let symbol = CODES.symbols[CODES.start[length] + nth as usize];
                let code =
                    u64::from(CODES.first[length] + nth) << (64 - length) | u64::MAX >> length;
                let bytes = &code.to_be_bytes()[..length.div_ceil(8)];
                let mut out = Vec::new();
                let decoded = decode(bytes, 100, &mut out);
                match u8::try_from(symbol) {
                    Ok(symbol) => assert_eq!((decoded, out), (Some(()), vec![symbol])),
                    Err(_) => assert_eq!(decoded, None, "the end is no text"),
                }
            }
        }
        assert_eq!(decode(&[0x64, 0x02, 0xff], 100, &mut Vec::new()), None);
        assert_eq!(decode(&[0x60], 100, &mut Vec::new()), None, "padded with zeros");
        assert_eq!(decode(&[0x64, 0x02], 2, &mut Vec::new()), None, "longer than it may be");
    }
}
