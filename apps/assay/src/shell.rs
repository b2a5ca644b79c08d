//! Output for other programs: schemas, completions, the manual page.

use analysis::NumberListed;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory as _};
use model::result::Exit;
use plan::keys::Fallback;

use crate::cli::{Cli, CompletionsArguments, Schema, SchemaArguments};
use crate::list::WORDS;
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
    clap_complete::generate(arguments.shell, &mut with_words(command()), "assay", &mut bytes);
    put(&String::from_utf8_lossy(&bytes))
}

/// The command line with the defaults of the keys that its flags stand for, from the one table of keys.
pub fn command() -> Command {
    let told = |mut it: Command| {
        for (flag, path) in FLAGS_OF_KEYS {
            let key = plan::keys::KEYS.iter().find(|key| key.path == path);
            let default = match key.expect("a flag stands for a key").fallback {
                Fallback::Fixed(value) => value,
                Fallback::Rule(rule) => rule,
                Fallback::Required | Fallback::Nothing => continue,
            };
            it = it.mut_arg(flag, |arg| {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                arg.help(format!("{help} [default: {default}]"))
            });
        }
        it
    };
    Cli::command().mut_subcommand("run", told).mut_subcommand("check", told)
}

/// Names the command that was meant, where the parser finds none that is near.
pub fn suggest(error: &mut clap::Error) {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    let command = Cli::command();
    let known = command.get_subcommands().map(Command::get_name);
    if let Some(near) = model::options::nearest(typed, known) {
        let near = ContextValue::Strings(vec![near.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, near);
    }
}

/// Flags that stand for keys with a default.
const FLAGS_OF_KEYS: [(&str, &str); 7] = [
    ("duration", "load.duration"),
    ("warmup", "load.warmup"),
    ("connections", "load.connections"),
    ("threads", "load.threads"),
    ("timeout", "load.timeout"),
    ("trials", "trials"),
    ("seed", "seed"),
];

/// The command line with the words of each list where they may be written. For completions alone: what is typed is checked
/// by whoever reads it, who knows more than a list.
fn with_words(command: Command) -> Command {
    let numbers = || {
        let whole = analysis::numbers().into_iter().filter(NumberListed::is_whole);
        PossibleValuesParser::new(whole.map(|it| hint(it.name, it.meaning)))
    };
    let promised = |it: Command| it.mut_arg("thresholds", |arg| arg.value_parser(numbers()));
    let command = command.mut_subcommand("run", promised).mut_subcommand("check", promised);
    command.mut_subcommand("list", |list| {
        WORDS.iter().fold(list, |list, of| {
            let words = (of.words)().into_iter().filter(|it| !it.is_part);
            let words = words.map(|it| hint(it.word, it.meaning));
            let words = PossibleValuesParser::new(words);
            list.mut_subcommand(of.called, |it| it.mut_arg("name", |arg| arg.value_parser(words)))
        })
    })
}

/// A word with its meaning. Its name is leaked, once in a process that prints and ends: clap keeps names that live as long.
fn hint(word: String, meaning: String) -> PossibleValue {
    PossibleValue::new(&*word.leak()).help(meaning)
}

/// Prints the manual page.
pub fn man() -> Exit {
    let mut bytes = Vec::new();
    match clap_mangen::Man::new(command()).render(&mut bytes) {
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
