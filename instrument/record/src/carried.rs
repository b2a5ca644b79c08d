//! What a connection carried last, as far as the rows of a file have been passed: the stamp at which it became
//! free for the next transaction. Writer and reader of transactions.parquet keep one each, over the same rows in
//! the same order, so that a stamp which says nothing new need not be stored.
//!
//! It forgets rather than grows: connections whose numbers are equal in their low bits share a place. What it
//! knows is always right, what it does not know is stored.

use model::{NO_STAMP, Row, Stamp};

/// Places for connections, 1 MB of them: more than one address has ports.
const PLACES: usize = 1 << 16;

/// The end of the last row that each connection carried.
pub struct Carried {
    places: Vec<Place>,
    /// Rows are passed from the middle of a file: one may follow another that was before them.
    pub is_from_the_middle: bool,
}

#[derive(Clone, Copy)]
struct Place {
    end: Stamp,
    connection: u32,
    worker: u8,
}

impl Carried {
    /// Before the first row.
    pub fn new() -> Self {
        let place = Place { end: NO_STAMP, connection: 0, worker: 0 };
        Self { places: vec![place; PLACES], is_from_the_middle: false }
    }

    /// Before the first row of a group in the middle of a file, of which nothing is asked that was before it.
    pub fn from_the_middle() -> Self {
        Self { is_from_the_middle: true, ..Self::new() }
    }

    /// When the last row that was sent on the connection of `row` ended; [`NO_STAMP`] if that is not known.
    pub fn end_before(&self, row: &Row) -> Stamp {
        let place = &self.places[place(row)];
        if place.connection == row.connection && place.worker == row.worker {
            place.end
        } else {
            NO_STAMP
        }
    }

    /// Passes a row. One that was never sent leaves its connection as it was.
    pub fn pass(&mut self, row: &Row) {
        if row.sent != NO_STAMP {
            let (connection, worker) = (row.connection, row.worker);
            self.places[place(row)] = Place { end: row.end, connection, worker };
        }
    }
}

/// Connections are numbered through all workers of a trial, so that the number alone spreads them.
const fn place(row: &Row) -> usize {
    row.connection as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(connection: u32, worker: u8, end: Stamp) -> Row {
        Row { connection, worker, sent: 0, end, ..Row::EMPTY }
    }

    /// Claim: the last row that was sent on a connection is known, that of another worker or a connection with
    /// the same place is not taken for it, and a row that was never sent changes nothing.
    #[test]
    fn only_the_same_connection_counts() {
        let mut carried = Carried::new();
        let same_place = 7 + u32::try_from(PLACES).unwrap();
        assert_eq!(carried.end_before(&row(7, 0, 0)), NO_STAMP);
        carried.pass(&row(7, 0, 100));
        carried.pass(&Row { sent: NO_STAMP, ..row(7, 0, 200) });
        assert_eq!(carried.end_before(&row(7, 0, 0)), 100);
        assert_eq!(carried.end_before(&row(7, 1, 0)), NO_STAMP);
        assert_eq!(carried.end_before(&row(same_place, 0, 0)), NO_STAMP);
        carried.pass(&row(same_place, 0, 300));
        assert_eq!(carried.end_before(&row(same_place, 0, 0)), 300);
        assert_eq!(carried.end_before(&row(7, 0, 0)), NO_STAMP);
    }
}
