//! A family of observations that a number is made of: an audit that voids the family voids the number.

use model::result::{Direction, Family, Voided};

/// A family that a number is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    family: Family,
    /// How the number moves when the family's numbers rise.
    moves: Moves,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moves {
    Up,
    Down,
    Either,
}

impl Need {
    /// A number that rises with the family's.
    pub const fn of(family: Family) -> Self {
        Self { family, moves: Moves::Up }
    }

    /// A number that falls as the family's rise.
    pub const fn against(family: Family) -> Self {
        Self { family, moves: Moves::Down }
    }

    /// A number that may move either way when the family's rise.
    pub const fn either_way(self) -> Self {
        Self { moves: Moves::Either, ..self }
    }

    /// Which way the number may be wrong because of this; `None` if it is not among what is voided.
    pub fn error(&self, voided: &Voided) -> Option<Direction> {
        if voided.family != self.family {
            return None;
        }
        Some(match (voided.may_be, self.moves) {
            (may_be, Moves::Up) => may_be,
            (Direction::TooHigh, Moves::Down) => Direction::TooLow,
            (Direction::TooLow, Moves::Down) => Direction::TooHigh,
            (Direction::Either, _) | (_, Moves::Either) => Direction::Either,
        })
    }
}
