//! assay
fn main() {}
