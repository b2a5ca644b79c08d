//! A submission that says whose it is, for servers that keep each client's order.

use super::{Mistake, OF_CLIENT, Request, read_submit, submit_head, u32_at};
use wire::frames::write_frame;

/// Bytes in front of the submission.
const HEAD_BYTES: usize = 8;

/// Appends a submission of a client.
pub fn write_of_client(
    out: &mut Vec<u8>,
    client: u32,
    run: u64,
    tx: u64,
    kind: u16,
    payload: &[u8],
) {
    let submission = submit_head(run, tx, kind, payload);
    write_frame(out, |out| {
        out.extend_from_slice(&[OF_CLIENT, 0, 0, 0]);
        out.extend_from_slice(&client.to_le_bytes());
        out.extend_from_slice(&submission);
        out.extend_from_slice(payload);
    });
}

/// Reads one.
pub(super) fn read(bytes: &[u8]) -> Result<Request<'_>, Mistake> {
    let (head, submission) =
        bytes.split_at_checked(HEAD_BYTES).ok_or(Mistake("it is too short"))?;
    if submission.first() != Some(&super::SUBMIT) {
        return Err(Mistake("what it says is a client's is no submission"));
    }
    Ok(Request::OfClient(u32_at(head, 4), read_submit(submission)?))
}

#[cfg(test)]
mod tests {
    use wire::frames::next_frame;

    use super::*;
    use crate::protocol::{Submit, read_request, write_submit};

    /// Claim: what is written is read with its client, as intact as a submission alone is; one that is cut off, or is
    /// something else than a submission, is refused.
    #[test]
    fn round_trip() {
        let mut bytes = Vec::new();
        write_of_client(&mut bytes, 77, 7, 8, 9, b"abc");
        let frame = next_frame(&bytes).unwrap().unwrap().payload.to_vec();
        let Ok(Request::OfClient(77, submit)) = read_request(&frame) else { panic!("{frame:?}") };
        let mut alone = Vec::new();
        write_submit(&mut alone, 7, 8, 9, b"abc");
        let alone = next_frame(&alone).unwrap().unwrap().payload.to_vec();
        assert_eq!(read_request(&alone), Ok(Request::Submit(submit)));
        assert!(matches!(submit, Submit { tx: 8, kind: 9, is_intact: true, .. }));
        for length in 0..HEAD_BYTES + 24 {
            assert!(read_request(&frame[..length]).is_err(), "{length}");
        }
        let mut other = frame.clone();
        other[HEAD_BYTES] = OF_CLIENT;
        assert!(read_request(&other).is_err());
    }
}
