//! When bytes arrived, by the kernel: receive stamps of the network stack (Documentation/networking/timestamping.rst,
//! `SO_TIMESTAMPNS`), which come as a message's control data. On TCP the stamp is that of the last byte that is read. It
//! is made when the packet enters this host's stack, before any queue that this process could be late for, by the wall
//! clock. Where the kernel makes none, none comes.
#![expect(unsafe_code, reason = "rustix has neither the option nor its control message")]

use std::os::fd::{AsFd, AsRawFd as _};

use clock::WallTime;
use rustix::io::Errno;

/// Bytes of the control data: one stamp and its head, as `CMSG_SPACE` counts.
pub(super) const CONTROL_BYTES: usize = HEAD + STAMP;
/// The same as the smallest of numbers: a length of control data has 4 bytes in one C library and 8 in another.
const CONTROL_LENGTH: u8 = 32;
const _: () = assert!(CONTROL_LENGTH as usize == CONTROL_BYTES, "as many as there are");
const HEAD: usize = size_of::<libc::cmsghdr>();
/// Seconds and nanoseconds.
const STAMP: usize = 16;

/// Room for control data, aligned as the kernel's heads are.
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// Asks the kernel to stamp what is received on a socket; says whether it will.
pub(super) fn ask(socket: impl AsFd) -> bool {
    let on: libc::c_int = 1;
    let length = libc::socklen_t::try_from(size_of_val(&on)).expect("four bytes");
    // SAFETY: the option's value is a number that lives until the call returns, of the length that is given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            length,
        )
    };
    result == 0
}

/// As `recv(2)`, with the stamp of the last byte.
pub(super) fn receive(
    socket: impl AsFd,
    buffer: &mut [u8],
) -> Result<(usize, Option<WallTime>), Errno> {
    let mut control = Control([0; CONTROL_BYTES]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut message = request();
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: every pointer of the message is to memory of this function or of its caller that is as long as is said
    // beside it, and that nothing else looks at until the call returns.
    let received = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, 0) };
    let Ok(length) = usize::try_from(received) else {
        let error = std::io::Error::last_os_error();
        return Err(error.raw_os_error().map_or(Errno::INVAL, Errno::from_raw_os_error));
    };
    // Where the kernel wrote nothing zeros stand, which are no stamp.
    Ok((length, stamp(&control.0)))
}

/// A message that asks for control data and for nothing else; whoever uses it says where bytes go.
pub(super) fn request() -> libc::msghdr {
    // SAFETY: a struct of numbers and pointers, for which zeros are a value: none of each.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_controllen = CONTROL_LENGTH.into();
    message
}

/// The stamp in control data, if there is one.
pub(super) fn stamp(control: &[u8]) -> Option<WallTime> {
    // A head is its length (a machine word), its level and its type (a C int each).
    let number = |at: usize| Some(i32::from_ne_bytes(control.get(at..at + 4)?.try_into().ok()?));
    let word = |at: usize| Some(i64::from_ne_bytes(control.get(at..at + 8)?.try_into().ok()?));
    let (level, kind) = (number(HEAD - 8)?, number(HEAD - 4)?);
    if (level, kind) != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
        return None;
    }
    let (seconds, ns) = (word(HEAD)?, word(HEAD + 8)?);
    let ns = seconds.checked_mul(1_000_000_000)?.checked_add(ns)?;
    // The kernel says 0 for what it has not stamped.
    (ns > 0).then(|| WallTime::from_unix_ns(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(level: i32, kind: i32, seconds: i64, ns: i64) -> Vec<u8> {
        let mut bytes = CONTROL_BYTES.to_ne_bytes().to_vec();
        bytes.extend([level, kind].iter().flat_map(|number| number.to_ne_bytes()));
        bytes.extend([seconds, ns].iter().flat_map(|number| number.to_ne_bytes()));
        bytes
    }

    /// Claim: a stamp is read from control data of its kind, whole, and from nothing else.
    #[test]
    fn stamps_of_control_data() {
        let (level, kind) = (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
        let whole = control(level, kind, 3, 7);
        assert_eq!(whole.len(), CONTROL_BYTES);
        assert_eq!(stamp(&whole), Some(WallTime::from_unix_ns(3_000_000_007)));
        for length in 0..whole.len() {
            assert_eq!(stamp(&whole[..length]), None, "{length}");
        }
        for other in [
            vec![0; CONTROL_BYTES],
            control(level, libc::SCM_RIGHTS, 3, 7),
            control(libc::SOL_IP, kind, 3, 7),
            control(level, kind, 0, 0),
            control(level, kind, i64::MAX, 7),
        ] {
            assert_eq!(stamp(&other), None);
        }
    }
}
