//! Progress as lanes: one a node, by how far it is behind the highest of all, and empty where it did not answer.
//!
//! Thirteen lines of height lie on each other and hide what matters: who fell behind, who was down, and when it was
//! back. States are made here, once; the static chart and the script draw them. It must never bridge a gap.

use model::picture::{Lane, LaneState, Lanes, Series, is_node, natural_order};
use model::series::{SeriesFacts, SeriesRole};

/// Lanes of one chart; more nodes have none of each.
const LANES_MAX: usize = 32;

/// The lanes of every series that is progress and that several nodes have.
pub(crate) fn of(series: &[Series], declared: &[SeriesFacts]) -> Vec<Lanes> {
    let of_progress = declared.iter().filter_map(|facts| match &facts.role {
        SeriesRole::Progress { unit, with_max, near_max } => {
            let bounds = (f64::from(*with_max), f64::from(*near_max));
            lanes(series, &facts.name, unit, bounds)
        }
        SeriesRole::Plain | SeriesRole::Throughput { .. } => None,
    });
    of_progress.collect()
}

fn lanes(series: &[Series], name: &str, unit: &str, bounds: (f64, f64)) -> Option<Lanes> {
    let mut nodes: Vec<&Series> =
        series.iter().filter(|it| it.name == name && is_node(&it.source)).collect();
    if nodes.len() < 2 || nodes.len() > LANES_MAX {
        return None;
    }
    nodes.sort_by_cached_key(|it| natural_order(&it.source));
    let sampled: Vec<Vec<Option<f64>>> = nodes.iter().map(|it| sampled(it)).collect();
    let behind = behind(&sampled);
    let lanes = nodes.iter().zip(&sampled).zip(behind).map(|((node, sampled), behind)| Lane {
        source: node.source.clone(),
        states: behind.iter().map(|behind| state(*behind, bounds)).collect(),
        reached: held(sampled).into_iter().map(|it| it.unwrap_or(f64::NAN)).collect(),
        behind: behind.into_iter().map(|it| it.unwrap_or(f64::NAN)).collect(),
    });
    let (with_max, near_max) = bounds;
    let (name, unit) = (name.to_owned(), unit.to_owned());
    Some(Lanes { name, unit, with_max, near_max, lanes: lanes.collect() })
}

fn state(behind: Option<f64>, (with_max, near_max): (f64, f64)) -> LaneState {
    match behind {
        None => LaneState::Absent,
        Some(behind) if behind <= with_max => LaneState::With,
        Some(behind) if behind <= near_max => LaneState::Near,
        Some(_) => LaneState::Far,
    }
}

/// Progress by column, as sampled.
fn sampled(of: &Series) -> Vec<Option<f64>> {
    of.max.iter().map(|value| value.is_finite().then_some(*value)).collect()
}

/// The last of what is known, by column; where samples are rarer than columns, one holds until the next, but for less than
/// twice the usual time between two.
fn held(values: &[Option<f64>]) -> Vec<Option<f64>> {
    let reach = 2 * usual_distance(values);
    let mut last: Option<(usize, f64)> = None;
    let each = values.iter().enumerate().map(|(at, value)| {
        last = value.map(|value| (at, value)).or(last);
        last.filter(|(seen, _)| at - seen < reach).map(|(_, value)| value)
    });
    each.collect()
}

/// How many columns lie between a sample and the next, usually.
fn usual_distance(points: &[Option<f64>]) -> usize {
    let known: Vec<usize> =
        points.iter().enumerate().filter(|(_, it)| it.is_some()).map(|(at, _)| at).collect();
    let mut distances: Vec<usize> = known.windows(2).map(|pair| pair[1] - pair[0]).collect();
    distances.sort_unstable();
    distances.get(distances.len() / 2).copied().unwrap_or(1)
}

/// How far each node is behind the highest in each column. It is told at each sample, by the highest of its time, and holds
/// until the next: progress that is held would fall behind by itself.
fn behind(nodes: &[Vec<Option<f64>>]) -> Vec<Vec<Option<f64>>> {
    let columns = nodes.iter().map(Vec::len).max().unwrap_or(0);
    let known: Vec<Vec<Option<f64>>> = nodes.iter().map(|node| held(node)).collect();
    let highest: Vec<f64> = (0..columns)
        .map(|column| {
            let of_nodes = known.iter().filter_map(|node| node.get(column).copied().flatten());
            of_nodes.fold(f64::NEG_INFINITY, f64::max)
        })
        .collect();
    let told = nodes.iter().map(|node| {
        let each = node.iter().zip(&highest).map(|(own, highest)| own.map(|own| highest - own));
        let mut held = held(&each.collect::<Vec<_>>());
        held.resize(columns, None);
        held
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use model::series::SeriesUnit;

    use super::*;

    fn node(source: &str, values: &[f64]) -> Series {
        let values = values.to_vec();
        Series {
            source: source.to_owned(),
            name: "pages_turned".to_owned(),
            min: values.clone(),
            mean: values.clone(),
            max: values,
        }
    }

    fn pages() -> Vec<SeriesFacts> {
        let of_node = |name: &str| SeriesFacts::of_node(name, name, SeriesUnit::Number);
        vec![of_node("height_blocks"), of_node("pages_turned").progress("pages", 2, 20)]
    }

    /// Claim: a sample holds until the next where columns are finer than samples, and a node that is down has a gap.
    #[test]
    fn gaps_stay_gaps() {
        let nan = f64::NAN;
        let every_second = node("a", &[1.0, nan, 2.0, nan, 3.0, nan, nan, nan, nan, nan, 8.0, nan]);
        let held = held(&sampled(&every_second));
        let known: Vec<bool> = held.iter().map(Option::is_some).collect();
        let expected = [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1].map(|it| it == 1);
        assert_eq!(known, expected);
        assert_eq!(held[3], Some(2.0));
    }

    /// Claim: a node is judged by the highest of its time and by the bounds that were declared, and one that is absent is
    /// neither behind nor the highest.
    #[test]
    fn who_is_behind() {
        let nan = f64::NAN;
        let series = [
            node("a", &[100.0, 101.0, nan, nan]),
            node("b", &[98.0, 95.0, 100.0, 50.0]),
            node("c", &[1.0, nan, 101.0, 51.0]),
        ];
        use LaneState::{Absent, Far, Near, With};
        let lanes = &of(&series, &pages())[0];
        let states: Vec<&[LaneState]> = lanes.lanes.iter().map(|it| it.states.as_slice()).collect();
        // Where columns are as wide as samples are apart, one may be missed.
        let expected =
            [[With, With, With, Absent], [With, Near, With, With], [Far, Far, With, With]];
        assert_eq!(states, expected);
        assert_eq!((lanes.lanes[1].behind[1], lanes.lanes[1].reached[1]), (6.0, 95.0));
        assert!(lanes.lanes[0].behind[3].is_nan() && lanes.lanes[0].reached[3].is_nan());
        assert_eq!((lanes.unit.as_str(), lanes.with_max, lanes.near_max), ("pages", 2.0, 20.0));
    }

    /// Claim: what is declared as progress has lanes, whatever it is called, and nothing else has; nodes stand in their
    /// natural order, and a single one has none.
    #[test]
    fn which_lanes() {
        let mut other = node("node-1", &[1.0]);
        other.name = "height_blocks".to_owned();
        let second = Series { source: "node-7".to_owned(), ..other.clone() };
        let series = [
            other,
            second,
            node("node-10", &[1.0]),
            node("node-2", &[1.0]),
            node("nodes.max", &[1.0]),
        ];
        let found = of(&series, &pages());
        assert_eq!(found.len(), 1);
        let sources: Vec<&str> = found[0].lanes.iter().map(|it| it.source.as_str()).collect();
        assert_eq!(sources, ["node-2", "node-10"]);
        assert!(of(&[node("a", &[1.0])], &pages()).is_empty());
    }
}
