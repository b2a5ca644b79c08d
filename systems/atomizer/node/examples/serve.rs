//! The nodes alone, without the instrument: `serve node|archiver|watchtower …`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    atomizer_node::serve(&words)
}
