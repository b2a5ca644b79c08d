//! The database against a naive one, and what it promises by hand.

mod model;
mod promises;
