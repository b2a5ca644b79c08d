//! Values of the options that let a run be watched. They are checked when the command line is read, before anything is started,
//! in one sentence each. Nothing is listened at and no name is looked up here.

use std::net::SocketAddr;

/// The address of `--metrics`.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!(
            "expected an address and a port such as 127.0.0.1:9464, got `{}`",
            text.escape_debug()
        )
    })
}

/// The URL of `--otlp`.
pub(super) fn receiver(text: &str) -> Result<String, String> {
    http_adapter::Receiver::check(text)?;
    Ok(text.to_owned())
}
