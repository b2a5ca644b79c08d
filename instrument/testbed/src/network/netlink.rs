//! The one thing of a device that the older calls leave to root of the host alone: how many packets it queues. Asked of the
//! kernel by netlink (rtnetlink(7)), which whoever owns the namespace may.

use std::io;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

/// `RTM_SETLINK`, and `NLM_F_REQUEST | NLM_F_ACK`.
const SET_LINK: u16 = 19;
const ASKED_AND_ANSWERED: u16 = 0x5;
/// `NLMSG_ERROR`: the answer, 0 for none.
const ERROR: u16 = 2;
/// `IFLA_IFNAME`, `IFLA_TXQLEN`.
const NAME: u16 = 3;
const QUEUE: u16 = 13;
/// Bytes of `struct nlmsghdr` and of `struct ifinfomsg`.
const HEAD_BYTES: usize = 16;
const LINK_BYTES: usize = 16;

/// Has `device` of the calling thread's namespace queue so many packets.
pub(super) fn set_queue(device: &str, packets: u32) -> io::Result<()> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&socket, &request(device, packets), SendFlags::empty())?;
    let mut answer = [0; 512];
    let (_, length) = recv(&socket, &mut answer, RecvFlags::empty())?;
    outcome(&answer[..length])
}

fn request(device: &str, packets: u32) -> Vec<u8> {
    let mut message = vec![0; HEAD_BYTES + LINK_BYTES];
    let mut name = device.as_bytes().to_vec();
    name.push(0);
    attribute(&mut message, NAME, &name);
    attribute(&mut message, QUEUE, &packets.to_ne_bytes());
    let length = u32::try_from(message.len()).expect("a name and a number");
    message[..4].copy_from_slice(&length.to_ne_bytes());
    message[4..6].copy_from_slice(&SET_LINK.to_ne_bytes());
    message[6..8].copy_from_slice(&ASKED_AND_ANSWERED.to_ne_bytes());
    message
}

/// A length, a kind and a value, filled up to four bytes.
fn attribute(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(4 + value.len()).expect("a name or a number");
    message.extend_from_slice(&length.to_ne_bytes());
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

fn outcome(answer: &[u8]) -> io::Result<()> {
    let other = || io::Error::other("the kernel's answer by netlink has another form");
    let kind = answer.get(4..6).and_then(|it| it.try_into().ok()).map(u16::from_ne_bytes);
    if kind != Some(ERROR) {
        return Err(other());
    }
    let code = answer.get(HEAD_BYTES..HEAD_BYTES + 4).and_then(|it| it.try_into().ok());
    match code.map(i32::from_ne_bytes).ok_or_else(other)? {
        0 => Ok(()),
        error => Err(Errno::from_raw_os_error(-error).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a request is what rtnetlink(7) lays down, and the kernel's refusals are told as errors of the system.
    #[test]
    fn forms() {
        let message = request("assay0", 10_000);
        assert_eq!(message.len(), HEAD_BYTES + LINK_BYTES + 12 + 8);
        assert_eq!(&message[36..43], b"assay0\0");
        let refused = |code: i32| {
            let mut answer = vec![0; 36];
            answer[4..6].copy_from_slice(&ERROR.to_ne_bytes());
            answer[16..20].copy_from_slice(&code.to_ne_bytes());
            outcome(&answer)
        };
        assert!(refused(0).is_ok());
        assert_eq!(refused(-1).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(outcome(&[0; 3]).is_err());
        // There is no such device anywhere.
        assert!(set_queue("no-such-one", 5).is_err());
    }
}
