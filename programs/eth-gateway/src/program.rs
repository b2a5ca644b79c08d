//! The command line: serve, play a node, or print the OpenAPI document.

use std::process::ExitCode;

use clock::Clock;

use crate::gateway::Gateway;
use crate::lifecycle::{ends, print, ready, runtime};
use crate::options::{Options, SETTINGS};
use crate::{mock, openapi, server};

/// Does what the command line says.
#[must_use]
pub fn run(words: Vec<String>) -> ExitCode {
    let done = match words.first().map(String::as_str) {
        Some("--help" | "-h" | "help") => print(&help()),
        Some("--version") => print(&format!("eth-gateway {}\n", env!("CARGO_PKG_VERSION"))),
        Some("openapi") => print(&format!("{}\n", openapi::document())),
        Some("mock") => mock::run(&words[1..]),
        Some("serve") => serve(&words[1..]),
        _ => serve(&words),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("eth-gateway: {why}");
            ExitCode::FAILURE
        }
    }
}

fn serve(words: &[String]) -> Result<(), String> {
    let options = Options::read(words)?;
    let runtime = runtime(options.threads)?;
    let gateway = Gateway::new(&options, Clock::start())?;
    runtime.block_on(async {
        let ends = ends()?;
        server::serve(&options, gateway, ready, ends).await
    })
}

fn help() -> String {
    let mut text = String::from(
        "A REST API in front of an Ethereum node.\n\n\
         eth-gateway [serve] [OPTIONS]   serve\n\
         eth-gateway mock [OPTIONS]      play a node with a chain and a limiter; mock --help says how\n\
         eth-gateway openapi             print the OpenAPI document\n\n\
         Options may also stand in a TOML file (--config FILE, ETH_GATEWAY_CONFIG) or in the environment\n\
         (ETH_GATEWAY_LISTEN). --plain turns off cache, latest, coalesce, batch, pool and pace.\n\n",
    );
    for setting in &SETTINGS {
        let name = format!("--{}", setting.key.replace('_', "-"));
        let default = if setting.default.is_empty() { "none" } else { setting.default };
        text.push_str(&format!("  {name:<28} {} [{default}]\n", setting.meaning));
    }
    text
}
