//! Which of the sampled transactions are drawn, and their rows: the slowest by what nodes stamped, and of the others
//! some that are spread over the measured window. Chosen before the rows stream past, so that only theirs are kept.

use model::node_events::Span;
use model::picture::{TRACE_SPANS_MAX, TRACES_MAX, Trace};
use model::{Row, TxId};
use stats::carry::Carry;

use crate::figures::grid::Grid;
use crate::figures::known::Known;
use crate::figures::part::Part;
use crate::figures::told;

/// The traces that are drawn, by transaction.
#[derive(Clone, Default)]
pub(crate) struct Traces {
    chosen: Vec<Trace>,
}

impl Part for Traces {
    fn of_trial(_: &Known<'_>) -> Self {
        Self::default()
    }

    fn block(&mut self, rows: &[&Row]) {
        rows.iter().for_each(|row| self.row(row));
    }

    /// Who is chosen is known to all; a row is one reader's.
    fn carry(&mut self, it: &mut Carry<'_>) {
        let mine = self.chosen.iter().enumerate().filter(|(_, trace)| trace.row.is_some());
        for at in it.places(mine.map(|(at, _)| at), self.chosen.len()) {
            let row = told::row(it, self.chosen[at].row.as_ref().unwrap_or(&Row::EMPTY));
            it.adding(|| self.chosen[at].row = Some(row));
        }
    }
}

impl Traces {
    /// Chooses among all spans that were kept, which come by transaction.
    pub fn choose(spans: &[Span], grid: &Grid) -> Self {
        let mut all: Vec<(i64, &[Span])> = spans
            .chunk_by(|a, b| a.tx == b.tx)
            .filter(|of| grid.holds(start(of)))
            .map(|of| (end(of).saturating_sub(start(of)), of))
            .collect();
        all.sort_by_key(|(length, of)| (std::cmp::Reverse(*length), of[0].tx));
        let rest = all.split_off((TRACES_MAX / 2).min(all.len()));
        let wanted = TRACES_MAX - TRACES_MAX / 2;
        let mut rest: Vec<&[Span]> = rest.into_iter().map(|(_, of)| of).collect();
        rest.sort_by_key(|of| (start(of), of[0].tx));
        let step = rest.len().div_ceil(wanted).max(1);
        let spread = rest.into_iter().step_by(step).take(wanted);
        let mut chosen: Vec<Trace> =
            all.into_iter().map(|(_, of)| of).chain(spread).map(trace).collect();
        chosen.sort_by_key(|trace| trace.tx);
        Self { chosen }
    }

    /// Keeps a row, if it is of one of them.
    #[inline]
    pub fn row(&mut self, row: &Row) {
        if !self.chosen.is_empty()
            && let Ok(place) = self.chosen.binary_search_by_key(&row.tx, |trace| trace.tx)
        {
            self.chosen[place].row = Some(*row);
        }
    }

    /// Those drawn, the slowest first.
    pub fn finish(self) -> Vec<Trace> {
        let length = |of: &Trace| end(&of.spans).saturating_sub(start(&of.spans));
        let mut chosen = self.chosen;
        chosen.sort_by_key(|trace| (std::cmp::Reverse(length(trace)), trace.tx));
        chosen
    }
}

fn trace(of: &[Span]) -> Trace {
    let tx: TxId = of[0].tx;
    let spans: Vec<Span> = of.iter().take(TRACE_SPANS_MAX).cloned().collect();
    Trace { row: None, tx, spans_left_out: of.len() - spans.len(), spans }
}

fn start(of: &[Span]) -> i64 {
    of.iter().map(|span| span.from).min().unwrap_or(0)
}

fn end(of: &[Span]) -> i64 {
    of.iter().map(|span| span.to).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the slowest are there whatever their number, the rest is spread over the window, what began outside it is
    /// not there, and each gets its row.
    #[test]
    fn the_slowest_and_some_others() {
        let second = 1_000_000_000;
        let spans: Vec<Span> = (0..10_000_u64)
            .flat_map(|tx| {
                let from = tx.cast_signed() * 1_000_000;
                let length = if tx % 1_000 == 500 { 90_000_000 } else { 1_000_000 };
                let span = |stage, from, to| Span { tx, stage, node: "a".into(), from, to };
                [span(0, from, from + 1_000), span(1, from + 1_000, from + length)]
            })
            .collect();
        let mut traces = Traces::choose(&spans, &Grid::new(2 * second, 8 * second));
        for tx in 0..10_000 {
            traces.row(&Row { tx, ..Row::EMPTY });
        }
        let drawn = traces.finish();
        assert_eq!(drawn.len(), TRACES_MAX);
        let slowest: Vec<u64> = drawn[..6].iter().map(|trace| trace.tx).collect();
        assert_eq!(slowest, [2_500, 3_500, 4_500, 5_500, 6_500, 7_500]);
        assert!(drawn.iter().all(|trace| (2_000..8_000).contains(&trace.tx)));
        assert!(drawn.iter().all(|trace| trace.row.is_some_and(|row| row.tx == trace.tx)));
        let late = drawn.iter().filter(|trace| trace.tx > 6_000).count();
        assert!(late >= 4, "{late} of the last third");
        assert!(Traces::choose(&[], &Grid::new(0, second)).finish().is_empty());
    }
}
