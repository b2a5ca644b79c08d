//! A part of a trial's analysis: which rows it is shown, and its share of the result. The parts stand in a list ([`parts`]),
//! so that one more is a file and a line.

use model::Row;
use model::result::TrialResult;
use stats::carry::Carry;

use crate::figures::known::Known;

/// Counts rows. All rows of a block go to one part before they go to the next, so that what it counts with stays in the
/// processor's cache.
pub(crate) trait Part {
    fn of_trial(trial: &Known<'_>) -> Self;

    /// Plausible rows of any stream and any phase, at most [`crate::figures::block::BLOCK_ROWS`].
    fn block(&mut self, _rows: &[&Row]) {}

    /// The rows among them of one stream that were due in one slot of the measured window.
    fn window(&mut self, _rows: &[&Row]) {}

    /// The rows among these of the stream whose latency is the result.
    fn measured(&mut self, _slot: usize, _rows: &[&Row]) {}

    /// Adds what a reader of later rows of the same trial has counted, or writes what this one has. What entries of the ledger,
    /// spans and seconds of nodes make is no part of it: they are read when all rows are in.
    fn carry(&mut self, it: &mut Carry<'_>);

    /// Adds its numbers to the result, when all rows and entries are in. The parts before it in the list have added theirs.
    fn add_to(&mut self, _trial: &Known<'_>, _result: &mut TrialResult) {}
}

/// A struct of parts, which is a part itself.
macro_rules! parts {
    ($(#[$of_all:meta])* $all:ident { $($(#[$of_part:meta])* $name:ident: $part:ty,)* }) => {
        $(#[$of_all])*
        #[derive(Clone)]
        pub(crate) struct $all {
            $($(#[$of_part])* pub $name: $part,)*
        }

        impl crate::figures::part::Part for $all {
            fn of_trial(trial: &crate::figures::known::Known<'_>) -> Self {
                Self { $($name: crate::figures::part::Part::of_trial(trial),)* }
            }

            fn block(&mut self, rows: &[&model::Row]) {
                $(self.$name.block(rows);)*
            }

            fn window(&mut self, rows: &[&model::Row]) {
                $(self.$name.window(rows);)*
            }

            fn measured(&mut self, slot: usize, rows: &[&model::Row]) {
                $(self.$name.measured(slot, rows);)*
            }

            fn carry(&mut self, it: &mut stats::carry::Carry<'_>) {
                $(self.$name.carry(it);)*
            }

            fn add_to(
                &mut self,
                trial: &crate::figures::known::Known<'_>,
                result: &mut model::result::TrialResult,
            ) {
                $(self.$name.add_to(trial, result);)*
            }
        }
    };
}
pub(crate) use parts;
