//! For the report: tables, and what the page draws beside the result.

mod lanes;
pub(crate) mod picture;
pub(crate) mod tables;
