//! The command line, and the only place where the parts of the instrument and the systems meet.
//!
//! Each command is a module; this file only chooses. It must never compute a figure.

mod agent;
mod check;
mod check_secrets;
mod cli;
mod compare;
mod conclude;
mod convert;
mod doctor;
mod experiment;
mod init;
mod interrupt;
mod list;
mod live_display;
mod report_command;
mod run;
mod sandbox;
mod seal;
mod served;
mod shell;
mod systems;
mod terminal;
mod umask;
mod watch_command;

use std::process::ExitCode;

use clap::FromArgMatches as _;
use model::result::Exit;
use model::secret;

use cli::{Cli, Command};

/// Makes the secrets of the command line and of settings in the environment known before anything can be said, in a panic
/// either.
fn keep_secrets() {
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    for (word, spans) in words.iter().zip(secret::command_spans(&words)) {
        spans.into_iter().for_each(|span| secret::taint(&word[span.range]));
    }
    for (name, value) in std::env::vars_os() {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        if name.starts_with("ASSAY_") && secret::is_secret_name(&name) {
            secret::taint(&value);
        }
    }
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if secret::is_any() { terminal::say!("assay: {panic}") } else { default(panic) }
    }));
}

fn main() -> ExitCode {
    keep_secrets();
    let parsed = shell::command().try_get_matches();
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(mut error) => {
            shell::suggest(&mut error);
            // Help and version go to standard output and are no errors.
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            // The error quotes what was typed, which may hold a secret.
            if error.use_stderr() && secret::is_any() {
                terminal::say!("{}", error.render().to_string().trim_end());
            } else {
                let _ = error.print();
            }
            return ExitCode::from(code);
        }
    };
    let Some(command) = cli.command else {
        let _ = terminal::print(cli::WELCOME);
        return ExitCode::SUCCESS;
    };
    let exit = match command {
        Command::Serve(arguments) => {
            // A node keeps what its clients gave it.
            umask::only_own_files();
            return systems::serve(&arguments.words);
        }
        Command::Agent(arguments) => agent::agent(&arguments),
        Command::Run(arguments) => run::run(&arguments, cli.color),
        Command::Check(arguments) => check::check(&arguments, cli.color),
        Command::Watch(arguments) => watch_command::watch(&arguments, cli.color),
        Command::Tell(arguments) => run::tell(&arguments),
        Command::Report(arguments) => report_command::report(&arguments, cli.color),
        Command::Seal(arguments) => seal::seal(&arguments),
        Command::Compare(arguments) => compare::compare(&arguments, cli.color),
        Command::Mark(arguments) => compare::mark(&arguments),
        Command::List(arguments) => list::list(&arguments, cli.color),
        Command::Convert(arguments) => convert::convert(&arguments),
        Command::Init(arguments) => init::init(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Schema(arguments) => shell::schema(&arguments),
        Command::Completions(arguments) => shell::completions(&arguments),
        Command::Man => shell::man(),
    };
    ExitCode::from(u8::try_from(exit as i32).unwrap_or(Exit::CouldNotRun as u8))
}
