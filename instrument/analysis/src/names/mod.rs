//! The numbers of a result by name: one namespace for thresholds, tables and `assay list`.

pub(crate) mod check_metric;
pub(crate) mod doubt;
pub(crate) mod foreign;
pub(crate) mod listed;
pub(crate) mod metric;
pub(crate) mod metric_list;
pub(crate) mod metric_names;
pub(crate) mod need;
pub(crate) mod unit;
