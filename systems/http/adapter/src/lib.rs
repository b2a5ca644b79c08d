//! The adapter of HTTP/1.1 servers. (Only its outline so far: building one is refused.)

/// The line in the list of systems.
pub const ADAPTER: sut::Adapter = sut::Adapter {
    kind: "http",
    summary: "any HTTP/1.1 URL: a single request or a file of targets",
    build: |request, problems| {
        problems.add(request.deploy.span, "the http system cannot be built yet", None);
        None
    },
};

/// Any bytes as a target file, in each format.
pub fn fuzz_targets(_bytes: &[u8]) {}
