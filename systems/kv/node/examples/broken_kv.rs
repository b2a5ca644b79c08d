//! A replica that is broken on purpose, to see whether the audit of a real run finds it. What is broken is in the name by
//! which it is called: `broken-acknowledges`, `broken-results`, `broken-reads`, `broken-order` (links to this program); the
//! words are those of `assay`: `broken-reads serve kv --replica 0 …`. For tests alone: no program that is installed can do it.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args();
    let program = words.next().unwrap_or_default();
    let words: Vec<String> = words.skip_while(|word| !word.starts_with("--")).collect();
    let name = Path::new(&program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match name.strip_prefix("broken-") {
        Some(what) => kv_node::serve_broken(&words, what),
        None => {
            eprintln!(
                "{name}: call it by a link named broken-WHAT, WHAT being acknowledges, results, reads or order"
            );
            ExitCode::from(2)
        }
    }
}
