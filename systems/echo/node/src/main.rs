//! The server as a program of its own: what `assay serve echo` is, without the rest of `assay`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    echo_node::serve(&words)
}
