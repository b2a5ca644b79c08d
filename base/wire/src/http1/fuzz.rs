//! Entry points for fuzzing: bytes from outside, cut at arbitrary places. What is claimed is asserted: any
//! cut, and the learned head, must give the same findings as one piece and a full parse.

use super::limits::{HttpError, Limits};
use super::request::parse_request;
use super::response::{Asked, Response, ResponseReader};

/// Bounds that short inputs reach.
const NARROW: Limits = Limits {
    head_bytes_max: 300,
    headers_max: 6,
    body_bytes_max: 200,
    chunk_line_bytes_max: 12,
    trailer_bytes_max: 40,
    body_kept_max: 20,
};

/// Any bytes as answers. The first byte chooses which requests were HEAD, the second how the rest is cut.
///
/// # Panics
/// If a cut, or the learned head, changes what is found.
pub fn fuzz_response(bytes: &[u8]) {
    let [asks, cuts, input @ ..] = bytes else { return };
    for limits in [NARROW, Limits { body_kept_max: 50, ..Limits::CLIENT }] {
        let whole = read_all(ResponseReader::new(limits), input, *asks, usize::MAX);
        let parsed = read_all(ResponseReader::without_learning(limits), input, *asks, usize::MAX);
        assert_eq!(whole, parsed, "a learned head was taken for another");
        for piece in [1, usize::from(*cuts).max(1), usize::from(cuts >> 4) + 2] {
            let cut = read_all(ResponseReader::new(limits), input, *asks, piece);
            assert_eq!(whole, cut, "pieces of {piece} bytes changed what was found");
        }
    }
}

/// Everything that a reader found: answers with reason and kept body, and how it ended.
type Findings = (Vec<(Response, String, Vec<u8>)>, Result<Option<Response>, HttpError>);

/// Offers `input` in pieces, each behind what was left unused, as the engine does.
fn read_all(mut reader: ResponseReader, input: &[u8], asks: u8, piece: usize) -> Findings {
    let (mut found, mut start, mut end) = (Vec::new(), 0, 0);
    while end < input.len() {
        end = end.saturating_add(piece).min(input.len());
        loop {
            let is_head = asks >> (found.len() % 8) & 1 == 1;
            let asked = if is_head { Asked::Head } else { Asked::Other };
            let progress = match reader.read(&input[start..end], asked) {
                Ok(progress) => progress,
                Err(error) => return (found, Err(error)),
            };
            start += progress.used;
            assert!(start <= end, "no more can be used than there is");
            let Some(response) = progress.response else { break };
            found.push((response, reader.reason().to_owned(), reader.body().to_vec()));
            if start == end {
                break;
            }
        }
    }
    (found, reader.closed())
}

/// Any bytes as requests: never a panic, the same on every cut, and progress with each.
///
/// # Panics
/// If an incomplete request is taken for a complete one.
pub fn fuzz_request(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some(request)) = parse_request(rest, &Limits::SERVER) {
        assert!(request.used > 0, "a request takes bytes");
        let short = parse_request(&rest[..request.used - 1], &Limits::SERVER);
        assert!(matches!(short, Ok(None)), "a request was complete without its last byte");
        rest = &rest[request.used..];
    }
}
