//! Descriptors that the program inherits, whose numbers the environment says. The one place with `unsafe` code, because a number
//! is no descriptor until somebody vouches for it.
#![expect(unsafe_code, reason = "a number from the environment is made a descriptor; see SAFETY")]

use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

/// Sockets with these numbers: `9,10,11`. To be called once, before anything else is opened.
pub(crate) fn sockets(numbers: &str) -> Result<Vec<UnixStream>, String> {
    let mut taken = Vec::new();
    for text in numbers.split(',') {
        let number: i32 = text
            .parse()
            .ok()
            .filter(|number| *number > 2 && !taken.contains(number))
            .ok_or_else(|| format!("`{numbers}` are no numbers of descriptors"))?;
        if std::fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_err() {
            return Err(format!("descriptor {number} is not open"));
        }
        taken.push(number);
    }
    // SAFETY: each number was open when it was looked at, is named once, and was opened by who started this program for it
    // alone: the program has opened nothing that stays, so nobody else owns it.
    let own = |number: i32| UnixStream::from(unsafe { OwnedFd::from_raw_fd(number) });
    Ok(taken.into_iter().map(own).collect())
}
