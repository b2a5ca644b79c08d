//! Tests of what users see: golden pages, the published vegeta reports, the result's schema.

mod golden;
mod pages;
mod result_schema;
mod sample_parts;
mod sample_runs;
mod vegeta_published;
