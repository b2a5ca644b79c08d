//! The server's own description of its services (gRPC server reflection, v1 and before it v1alpha), asked for once, before there
//! is any load, on a connection of its own; bounded in questions, bytes and time.

use std::collections::BTreeSet;

use http_adapter::borrowed::Line;
use prost::Message;
use prost_reflect::DescriptorPool;
use prost_reflect::prost_types::{FileDescriptorProto, FileDescriptorSet};
use wire::http1::header_of;
use wire::http2::{Client, Ended, Limits, Request, Told, request_block};

use crate::messages::{self, MessageReader};
use crate::status;

/// Files that are asked for.
const FILES_MAX: usize = 1_000;
/// The longest message of an answer, and the most of all of them.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
const FILES_BYTES_MAX: usize = 64 << 20;

const SERVICES: [&str; 2] =
    ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

/// A question: one of its fields (`reflection.proto`).
#[derive(Clone, PartialEq, Message)]
struct Question {
    #[prost(string, optional, tag = "3")]
    file_by_filename: Option<String>,
    #[prost(string, optional, tag = "4")]
    file_containing_symbol: Option<String>,
}

/// An answer.
#[derive(Clone, PartialEq, Message)]
struct Reply {
    #[prost(message, optional, tag = "4")]
    files: Option<Files>,
    #[prost(message, optional, tag = "7")]
    error: Option<Failure>,
}

#[derive(Clone, PartialEq, Message)]
struct Files {
    #[prost(bytes = "vec", repeated, tag = "1")]
    list: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct Failure {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// Why there is no description.
enum Lack {
    /// The server does not know the service.
    Unimplemented,
    Other(String),
}

/// One connection to a server that is asked for its descriptions.
pub(crate) struct Reflection<'a> {
    line: &'a mut Line,
    client: Client,
    metadata: &'a [(String, String)],
    server: (&'a str, &'a str),
    questions: u64,
}

impl<'a> Reflection<'a> {
    /// On a connection that nothing was sent on.
    pub(crate) fn new(
        line: &'a mut Line,
        server: (&'a str, &'a str),
        metadata: &'a [(String, String)],
    ) -> Self {
        let client = Client::new(Limits {
            head_bytes_max: 64 << 10,
            body_kept_max: 0,
            body_bytes_max: FILES_BYTES_MAX as u64,
            keeps_heads: true,
            streams_max: 1,
        });
        Self { line, client, metadata, server, questions: 0 }
    }

    /// The descriptions of services, with everything that they stand on.
    ///
    /// # Errors
    /// In one sentence, with what to do.
    pub(crate) fn pool<'s>(
        &mut self,
        services: impl Iterator<Item = &'s str>,
    ) -> Result<DescriptorPool, String> {
        let mut out = Vec::new();
        self.client.open(&mut out);
        self.line.send(&mut out)?;
        let mut version = 0;
        let (mut set, mut bytes) = (FileDescriptorSet::default(), 0);
        let mut known = BTreeSet::new();
        let mut wanted: Vec<Question> = services
            .map(|service| Question {
                file_containing_symbol: Some(service.to_owned()),
                ..Question::default()
            })
            .collect();
        while let Some(question) = wanted.pop() {
            let name = question.file_by_filename.as_ref();
            if name.is_some_and(|name| known.contains(name)) {
                continue;
            }
            let files = loop {
                match self.ask(SERVICES[version], &question) {
                    Ok(files) => break files,
                    // Only of a server that has answered nothing yet: one that has knows the version.
                    Err(Lack::Unimplemented) if version == 0 && known.is_empty() => version = 1,
                    Err(Lack::Unimplemented) => {
                        return Err("the server has no reflection; name its .proto files: proto = \"service.proto\"".to_owned());
                    }
                    Err(Lack::Other(why)) => return Err(why),
                }
            };
            for file in files {
                bytes += file.len();
                if known.len() >= FILES_MAX || bytes > FILES_BYTES_MAX {
                    return Err(format!(
                        "its reflection gives more than {FILES_MAX} files or {FILES_BYTES_MAX} bytes"
                    ));
                }
                let file = FileDescriptorProto::decode(file.as_slice()).map_err(|error| {
                    format!("its reflection gives a file that cannot be read: {error}")
                })?;
                if known.insert(file.name().to_owned()) {
                    let needs = file.dependency.iter().filter(|name| !known.contains(*name));
                    wanted.extend(needs.map(|name| Question {
                        file_by_filename: Some(name.clone()),
                        ..Question::default()
                    }));
                    set.file.push(file);
                }
            }
        }
        DescriptorPool::from_file_descriptor_set(set).map_err(|error| {
            format!("its reflection gives a description that does not fit together: {error}")
        })
    }

    /// Asks one question, on a stream of its own.
    fn ask(&mut self, service: &str, question: &Question) -> Result<Vec<Vec<u8>>, Lack> {
        let (scheme, authority) = self.server;
        let mut headers: Vec<(&str, &[u8])> =
            vec![("te", b"trailers"), ("content-type", b"application/grpc")];
        headers.extend(self.metadata.iter().map(|(name, value)| (name.as_str(), value.as_bytes())));
        let target = format!("/{service}/ServerReflectionInfo");
        let block = request_block("POST", scheme, authority, &target, &headers);
        let (mut body, mut out) = (Vec::new(), Vec::new());
        messages::write(&mut body, &question.encode_to_vec());
        self.questions += 1;
        while !self.client.is_ready() {
            self.step(&mut MessageReader::default(), &mut Vec::new(), &mut None)
                .map_err(Lack::Other)?;
        }
        self.client.submit(
            self.questions,
            &Request { block: &block, body: &body, is_head: false },
            &mut out,
        );
        self.line.send(&mut out).map_err(Lack::Other)?;
        let (mut reader, mut replies, mut end) = (MessageReader::default(), Vec::new(), None);
        let (code, words) = loop {
            if let Some(end) = end.take() {
                break end;
            }
            self.step(&mut reader, &mut replies, &mut end).map_err(Lack::Other)?;
        };
        let asked = question.file_containing_symbol.as_ref().or(question.file_by_filename.as_ref());
        let asked = asked.map_or("", String::as_str);
        let failed = |words: &str| {
            Lack::Other(format!("asking the server's reflection for `{asked}`: {words}"))
        };
        match code {
            // UNIMPLEMENTED, and what a proxy says that knows no such path.
            12 => return Err(Lack::Unimplemented),
            status::OK => {}
            code => return Err(failed(&format!("{} {words}", status::name(code)))),
        }
        let mut files = Vec::new();
        for reply in replies {
            let reply =
                Reply::decode(reply.as_slice()).map_err(|error| failed(&error.to_string()))?;
            if let Some(error) = reply.error {
                let code = status::name(u16::try_from(error.code).unwrap_or(u16::MAX));
                return Err(failed(&format!("{code}: {}", sut::shown(error.message.as_bytes()))));
            }
            files.extend(reply.files.unwrap_or_default().list);
        }
        if files.is_empty() {
            return Err(failed("it gives no file"));
        }
        Ok(files)
    }

    /// Waits for more, and reads it. `end` is the status of the question's stream, once that has ended.
    fn step(
        &mut self,
        reader: &mut MessageReader,
        replies: &mut Vec<Vec<u8>>,
        end: &mut Option<(u16, String)>,
    ) -> Result<(), String> {
        let Self { line, client, .. } = self;
        line.receive()?;
        let (mut out, mut wrong) = (Vec::new(), None);
        let used = client.read_parts(&line.unread, &mut out, &mut |_, told| {
            match told {
                Told::Part { body, .. } => {
                    let mut keep = |one: &[u8]| replies.push(one.to_vec());
                    let read = reader.read(body, MESSAGE_BYTES_MAX, true, &mut keep);
                    wrong = wrong.take().or(read.err());
                }
                Told::End(Ended::Reset { why, is_refused }) => {
                    *end = Some((status::of_reset(why, is_refused), why.to_owned()));
                }
                Told::End(Ended::Answered(answer)) => {
                    let code = header_of(answer.head, "grpc-status");
                    let code = code.and_then(|code| std::str::from_utf8(code).ok()?.parse().ok());
                    let code = code.unwrap_or(status::of_http(answer.status));
                    let words = header_of(answer.head, "grpc-message").map(sut::shown);
                    *end = Some((code, words.unwrap_or_default()));
                }
            }
            true
        });
        let used = used.map_err(|error| error.to_string())?;
        line.unread.drain(..used);
        line.send(&mut out)?;
        wrong.map_or(Ok(()), |error| Err(error.to_string()))
    }
}
