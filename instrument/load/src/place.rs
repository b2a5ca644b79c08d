//! Where a connection goes: an address that is dialled, in each life anew, or a channel to a program, with as many lives as
//! the program is given.
//! Whose failure it is when something goes wrong there follows from that, and is decided here alone.

use std::fmt;

use model::{Class, Outcome};
use rustix::io::Errno;
use sut::{Channel, Endpoint};

use crate::driver::{Driver, Key};

/// Where a connection goes.
#[derive(Clone)]
pub(crate) enum Place {
    Address(Endpoint),
    Channel(Channel),
}

impl Place {
    /// Begins to open a connection to it.
    pub(crate) fn open<D: Driver>(
        &self,
        driver: &mut D,
        token: u32,
        is_stamped: bool,
    ) -> Result<Key, Errno> {
        match self {
            Self::Address(endpoint) => driver.connect(token, endpoint.address, is_stamped),
            Self::Channel(channel) => match channel.take() {
                Some(socket) => driver.adopt(token, socket),
                None => Err(Errno::PIPE),
            },
        }
    }

    /// Where it is dialled, if it is.
    pub(crate) const fn endpoint(&self) -> Option<&Endpoint> {
        match self {
            Self::Address(endpoint) => Some(endpoint),
            Self::Channel(_) => None,
        }
    }

    /// The program at its other end, if there is one.
    pub(crate) const fn channel(&self) -> Option<&Channel> {
        match self {
            Self::Address(_) => None,
            Self::Channel(channel) => Some(channel),
        }
    }

    /// Whether the kernel can say when something arrived from there: of a socket pair it does not.
    pub(crate) const fn is_stampable(&self) -> bool {
        matches!(self, Self::Address(_))
    }

    /// The outcome of a transaction that was sent there and has no answer. A program is to answer in any case: that it
    /// has not is its failure, and says nothing of the system; where a fault of the plan ended it, it is a node like others.
    pub(crate) fn unanswered(&self) -> Outcome {
        match self {
            Self::Channel(channel) if !channel.is_ended_by_plan() => {
                Outcome::Rejected(Class::Client)
            }
            Self::Address(_) | Self::Channel(_) => Outcome::Unknown,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(endpoint) => endpoint.address.fmt(f),
            Self::Channel(channel) => channel.name().fmt(f),
        }
    }
}
