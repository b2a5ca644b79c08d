//! A family of observations that a number is made of: an audit that voids the family voids the number.

use model::result::{Direction, Family, Voided};

/// A family that a number is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Need {
    family: Family,
    /// How the number moves when the family's numbers rise.
    moves: Moves,
    /// Which quantile of a distribution it is; `None` for what all samples make.
    quantile: Option<f64>,
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
        Self { family, moves: Moves::Up, quantile: None }
    }

    /// A number that falls as the family's rise.
    pub const fn against(family: Family) -> Self {
        Self { family, moves: Moves::Down, quantile: None }
    }

    /// The quantile `q` of the family's numbers.
    pub const fn at(self, q: f64) -> Self {
        Self { quantile: Some(q), ..self }
    }

    /// A number that may move either way when the family's rise.
    pub const fn either_way(self) -> Self {
        Self { moves: Moves::Either, ..self }
    }

    /// Which way the number may be wrong because of this; `None` if it is not among what is voided.
    pub fn error(&self, voided: &Voided) -> Option<Direction> {
        let reaches = match (voided.from, self.quantile) {
            (None, _) => true,
            (Some(from), Some(q)) => q >= from,
            (Some(_), None) => self.moves == Moves::Either,
        };
        if voided.family != self.family || !reaches {
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
