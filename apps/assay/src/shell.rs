//! What other programs read: schemas, completions, the manual page.

use clap::CommandFactory as _;
use model::result::Exit;

use crate::cli::{Cli, CompletionsArguments, Schema, SchemaArguments};
use crate::terminal;

/// Prints a published schema.
pub fn schema(arguments: &SchemaArguments) -> Exit {
    put(match arguments.of {
        Schema::Result => report::RESULT_SCHEMA,
        Schema::Experiment => plan::EXPERIMENT_SCHEMA,
    })
}

/// Prints a shell's completions.
pub fn completions(arguments: &CompletionsArguments) -> Exit {
    let mut bytes = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "assay", &mut bytes);
    put(&String::from_utf8_lossy(&bytes))
}

/// Prints the manual page.
pub fn man() -> Exit {
    let mut bytes = Vec::new();
    match clap_mangen::Man::new(Cli::command()).render(&mut bytes) {
        Ok(()) => put(&String::from_utf8_lossy(&bytes)),
        Err(error) => {
            eprintln!("assay: rendering the manual page: {error}");
            Exit::CouldNotRun
        }
    }
}

fn put(text: &str) -> Exit {
    match terminal::print(text) {
        Ok(()) => Exit::Ok,
        Err(message) => {
            eprintln!("assay: {message}");
            Exit::CouldNotRun
        }
    }
}
