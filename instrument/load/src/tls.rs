//! Encryption between the driver and a session. It never sees a transaction, and it cannot switch verification
//! off: what is verified is in the configuration that the adapter gave.

use std::io::{BufRead as _, Write as _};
use std::sync::Arc;

use rustls::ClientConnection;

/// One encrypted connection.
pub(crate) struct Layer(Box<ClientConnection>);

impl Layer {
    pub(crate) fn new(tls: &sut::Tls) -> Result<Self, String> {
        let mut connection =
            ClientConnection::new(Arc::clone(&tls.config), tls.server_name.clone())
                .map_err(|error| format!("TLS: {error}"))?;
        // What is written here leaves in the same turn of the loop: a bound would only lose bytes.
        connection.set_buffer_limit(None);
        Ok(Self(Box::new(connection)))
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.0.is_handshaking()
    }

    /// Takes bytes from the wire; plain ones are added to `plain`.
    pub(crate) fn receive(&mut self, mut wire: &[u8], plain: &mut Vec<u8>) -> Result<(), String> {
        while !wire.is_empty() {
            let count = self.0.read_tls(&mut wire).map_err(|error| format!("TLS: {error}"))?;
            let state = self.0.process_new_packets().map_err(|error| format!("TLS: {error}"))?;
            let mut readable = state.plaintext_bytes_to_read();
            let mut reader = self.0.reader();
            while readable > 0 {
                let part = reader.fill_buf().map_err(|error| format!("TLS: {error}"))?;
                let length = part.len();
                plain.extend_from_slice(part);
                reader.consume(length);
                readable -= length;
            }
            if count == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Encrypts `plain`, and adds it and what the protocol itself has to say to `wire`.
    pub(crate) fn send(&mut self, plain: &mut Vec<u8>, wire: &mut Vec<u8>) {
        if !self.0.is_handshaking() && !plain.is_empty() {
            self.0.writer().write_all(plain).expect("writing to memory without a bound");
            plain.clear();
        }
        while self.0.wants_write() {
            self.0.write_tls(wire).expect("writing to memory");
        }
    }

    /// Whether there is something to send even without plain bytes.
    pub(crate) fn wants_send(&self) -> bool {
        self.0.wants_write()
    }

    /// Protocol version and cipher suite, as in `TLSv1.3 TLS13_AES_256_GCM_SHA384`.
    pub(crate) fn describe(&self) -> String {
        let version =
            self.0.protocol_version().and_then(|version| version.as_str().map(str::to_owned));
        let cipher = self
            .0
            .negotiated_cipher_suite()
            .and_then(|suite| suite.suite().as_str().map(str::to_owned));
        [version, cipher].into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}
