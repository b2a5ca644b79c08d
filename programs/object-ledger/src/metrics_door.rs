//! Metrics over HTTP, of services that stand on the async runtime.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// A connection on which nothing comes is closed after this.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// Serves the text at `/metrics`; never ends.
pub(crate) async fn serve(
    listener: TcpListener,
    text: impl Fn() -> String + Clone + Send + 'static,
) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let text = text.clone();
                // The asker is gone, and gets no answer.
                tokio::spawn(async move { connection(stream, text).await.ok() });
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

async fn connection(mut stream: TcpStream, text: impl Fn() -> String) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        let mut out = Vec::new();
        let (used, is_over) = wire::metrics::serve(&bytes, &text, &mut out);
        bytes.drain(..used);
        stream.write_all(&out).await?;
        if is_over {
            return Ok(());
        }
        let read = timeout(IDLE_MAX, stream.read_buf(&mut bytes)).await;
        if read.map_or(Ok(0), |read| read)? == 0 {
            return Ok(());
        }
    }
}
