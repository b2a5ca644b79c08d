//! What archivers have said that they have stored. Only what all of them have may be forgotten, and only of connections that
//! said which archiver they are: any other client could make the atomizers forget blocks that are stored nowhere.

use process::Connection;

/// Archivers by number.
#[derive(Debug)]
pub(crate) struct Archivers(Vec<Archiver>);

#[derive(Clone, Copy, Debug, Default)]
struct Archiver {
    connection: Option<Connection>,
    /// All blocks below are stored there.
    below: u64,
}

impl Archivers {
    /// So many, none of whom has said anything.
    pub(crate) fn new(count: u8) -> Self {
        Self(vec![Archiver::default(); count.into()])
    }

    /// A connection is of the archiver of this number from now on, and no other is; `None`: there is no such archiver.
    pub(crate) fn begin(&mut self, connection: Connection, number: u8) -> Option<()> {
        self.0.get_mut(usize::from(number))?.connection = Some(connection);
        Some(())
    }

    /// The archiver of a connection has all blocks below this. A block that was not made is stored nowhere: what is said beyond the last
    /// block, of `height`, counts as up to it. What was said last holds, so that one which has lost its disk is waited for.
    /// `None`: the connection is no archiver's.
    pub(crate) fn stored(&mut self, of: Connection, below: u64, height: u64) -> Option<()> {
        let mut is_its = false;
        for archiver in self.0.iter_mut().filter(|it| it.connection == Some(of)) {
            archiver.below = below.min(height + 1);
            is_its = true;
        }
        is_its.then_some(())
    }

    /// A connection has ended. What was stored stays stored.
    pub(crate) fn gone(&mut self, connection: Connection) {
        let of = self.0.iter_mut().filter(|it| it.connection == Some(connection));
        of.for_each(|it| it.connection = None);
    }

    /// Below this all archivers have all blocks; 0 where there are none.
    pub(crate) fn all_below(&self) -> u64 {
        self.0.iter().map(|it| it.below).min().unwrap_or(0)
    }
}
