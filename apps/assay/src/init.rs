//! `assay init`: an experiment file to start from. Every template is resolved in a test.

use model::result::Exit;

use crate::cli::{InitArguments, Template};
use crate::terminal;

/// An HTTP API.
pub const HTTP: &str = include_str!("../templates/http.toml");
/// The built-in queue.
pub const ECHO: &str = include_str!("../templates/echo.toml");

/// Prints the template.
pub fn init(arguments: &InitArguments) -> Exit {
    let text = match arguments.template {
        Template::Http => HTTP,
        Template::Echo => ECHO,
    };
    match terminal::print(text) {
        Ok(()) => Exit::Ok,
        Err(message) => {
            eprintln!("assay: {message}");
            Exit::CouldNotRun
        }
    }
}
