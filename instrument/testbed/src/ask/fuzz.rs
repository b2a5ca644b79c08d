//! The entry point for fuzzing: any bytes as a server's answer, cut anywhere. What is claimed is asserted.

use wire::http1::{Asked, Limits, Response, ResponseReader};

use super::dialogue::{ended, take};

/// Bounds that short inputs reach.
const NARROW: Limits = Limits {
    head_bytes_max: 200,
    headers_max: 6,
    body_bytes_max: 120,
    chunk_line_bytes_max: 12,
    trailer_bytes_max: 40,
    body_kept_max: 30,
};

/// Any bytes as what a server says to one question. The first byte says whether it was HEAD and where it is cut.
///
/// # Panics
/// If the cut changes what is found, or if more is held than the bounds allow.
pub fn fuzz_ask(bytes: &[u8]) {
    let [how, input @ ..] = bytes else { return };
    let asked = if how & 1 == 1 { Asked::Head } else { Asked::Other };
    for limits in [NARROW, Limits { body_kept_max: 50, ..Limits::CLIENT }] {
        let whole = found(limits, asked, input, usize::MAX);
        for piece in [1, usize::from(how >> 1) + 2] {
            assert_eq!(whole, found(limits, asked, input, piece), "pieces of {piece} bytes");
        }
    }
}

/// The answer with what is kept of its body, or why there is none.
fn found(
    limits: Limits,
    asked: Asked,
    input: &[u8],
    piece: usize,
) -> Result<(Response, Vec<u8>), String> {
    let (mut reader, mut unread) = (ResponseReader::new(limits), Vec::new());
    let line = limits.chunk_line_bytes_max.max(limits.trailer_bytes_max);
    let held_max = limits.head_bytes_max.max(line) + 2;
    for piece in input.chunks(piece.min(input.len()).max(1)) {
        let answer = take(&mut reader, &mut unread, piece, asked).map_err(|e| e.to_string())?;
        assert!(
            reader.body().len() <= limits.body_kept_max,
            "more of a body is kept than asked for"
        );
        if let Some(response) = answer {
            return Ok((response, reader.body().to_vec()));
        }
        assert!(unread.len() <= held_max, "{} bytes wait to be read", unread.len());
    }
    let response = ended(&mut reader).map_err(|error| error.to_string())?;
    Ok((response, reader.body().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: answers with a length, in chunks, to the end of the connection, broken and none at all are found alike
    /// wherever they are cut.
    #[test]
    fn cut_anywhere() {
        let answers: [&[u8]; 7] = [
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            b"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\nmore than was asked for",
            b"HTTP/1.0 200 OK\r\n\r\nto the end",
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
            b"SSH-2.0-OpenSSH_9.9\r\n",
            b"",
        ];
        let bounds = Limits { body_kept_max: 50, ..Limits::CLIENT };
        let complete = answers.map(|answer| found(bounds, Asked::Other, answer, 3).is_ok());
        assert_eq!(complete, [true, true, true, true, false, false, false]);
        for answer in answers {
            for how in 0..=u8::MAX {
                fuzz_ask(&[&[how], answer].concat());
            }
        }
    }
}
