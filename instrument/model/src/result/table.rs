//! The tables that an experiment asks for.

use serde::{Deserialize, Serialize};

/// One table that the experiment asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TableResult {
    /// Its subject.
    pub title: String,
    /// Column heads.
    pub columns: Vec<String>,
    /// Rows of cells.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Cell {
    /// As shown.
    pub text: String,
    /// The number behind it, if it is one.
    pub value: Option<f64>,
    /// Rests on too few samples.
    pub grey: bool,
    /// Not valid: an audit of its trial voids it.
    #[serde(default)]
    pub void: bool,
}
