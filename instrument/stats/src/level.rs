//! Levels of a distribution: a value, with what lies beyond it.

/// Levels whose excursions say how large those of a tail above them may be, with how much smaller they are there: a
/// window that met few excursions of the tail shows too little of them there, and enough further down. The factors are
/// those of an autoregressive series, whose excursions get shorter the higher the level.
pub(crate) const BELOW: [(f64, f64); 4] = [(0.75, 0.5), (0.9, 0.7), (0.95, 0.85), (0.99, 0.85)];

/// A value, the share of samples beyond it, and how many of these come together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Level {
    pub value: f64,
    pub beyond: f64,
    pub size: f64,
}
