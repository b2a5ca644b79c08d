//! Tests of what users see: golden pages, the published vegeta reports, the result's schema.

mod answers;
mod durability;
mod figure_samples;
mod figures;
mod formats;
mod golden;
mod html_hostile;
mod html_inside;
mod html_nodes;
mod html_numbers;
mod html_page;
mod html_reader;
mod html_samples;
mod html_words;
mod inside_samples;
mod json_schema;
mod made_runs;
mod node_samples;
mod pages;
mod result_schema;
mod sample_parts;
mod sample_runs;
mod sending_samples;
mod vegeta_published;
mod xml;
