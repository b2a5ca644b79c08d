//! Secrets: how they are known, where they come from, and how they are kept out of everything that leaves the process.
//!
//! Three ways in: a reference to the environment (`${NAME}`, `env:NAME`; [`expand`]), a value with a secret-looking name
//! (a header, a member of a JSON body, a parameter of a URL, a flag; [`spans`]), and a password in a URL. Each is
//! tainted where it enters ([`taint`]). From then on whatever writes ([`scrub`] for text, [`scrub_json`] for documents, [`mask`]
//! for bytes whose length counts) takes it out, also in the forms that servers and programs give it ([`FORMS`]): escapes are undone before the
//! search, in layers, and what is found in the meaning is taken out of the writing.
//!
//! What is known is known to the whole process, as what a log may not hold is: a value handed on from part to part would
//! be forgotten by the first part that is added. It must never be written anywhere, and only grows.

mod decoded;
mod forms;
mod known;
mod names;
mod reference;
mod spans;

pub use forms::FORMS;
pub use known::{Secrets, is_any, left_out, mask, scrub, scrub_json, taint, with_known};
pub use names::{is_secret_name, looks_secret};
pub use reference::{
    Lookup, escaped, expand, expand_bytes, forbid_environment, has_host_of_environment,
    is_reference, references, variable_name,
};
pub use spans::{
    SecretSpan, command_spans, credentials, decoded, masked, masked_command, spans, value_span,
};

/// The replacement of a secret.
pub const MARK: &str = "<redacted>";
