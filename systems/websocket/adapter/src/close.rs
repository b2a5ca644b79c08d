//! Close codes (RFC 6455, section 7.4, and IANA's registry): their names, and what each means for a transaction that is outstanding.

use model::{Class, Outcome};

/// The code of a close frame without one.
pub(crate) const NONE: u16 = 1005;

/// The name of a code, for people.
pub(crate) const fn name(code: u16) -> &'static str {
    match code {
        1000 => "normal closure",
        1001 => "going away",
        1002 => "protocol error",
        1003 => "unsupported data",
        1005 => "no code",
        1007 => "invalid payload data",
        1008 => "policy violation",
        1009 => "message too big",
        1010 => "mandatory extension",
        1011 => "internal error",
        1012 => "service restart",
        1013 => "try again later",
        1014 => "bad gateway",
        3000 => "unauthorized",
        3003 => "forbidden",
        3008 => "timeout",
        _ => "a code of the application",
    }
}

/// The end of a transaction whose connection is closed with a code. A server that leaves in good order says nothing of what it
/// has done, so that is unknown.
pub(crate) const fn outcome(code: u16) -> Outcome {
    match code {
        1000 | 1001 | 1005 | 1012 => Outcome::Unknown,
        1013 => Outcome::Rejected(Class::Overloaded),
        1002 | 1003 | 1007..=1010 | 3000 | 3003 => Outcome::Rejected(Class::BadRequest),
        _ => Outcome::Rejected(Class::Server),
    }
}
