//! A queue and its disk, by hand.

use process::Stored;

use super::*;

const POP: Pop = Pop { count_max: 8, lease_ms: 500, wait_ms: 60_000 };

struct Scene {
    queue: Queue,
    out: Outputs,
    now: Instant,
}

fn connection(place: u32) -> Connection {
    Connection::new(place, 1)
}

impl Scene {
    fn new() -> Self {
        let settings = Settings { bytes_max: 1_024, count_max: 8, nonce: [7; 16], broken: None };
        let queue = Queue::new(settings, &Stored::default()).unwrap();
        let mut scene = Self { queue, out: Outputs::default(), now: Instant::ZERO };
        scene.out.begin_log(0, 0);
        for place in 0..3 {
            scene.out.open(connection(place));
            scene.step(Input::Opened { connection: connection(place), listener: 0 });
        }
        scene
    }

    fn step(&mut self, input: Input<'_>) {
        self.queue.step(self.now, input, &mut self.out);
    }

    fn ask(&mut self, place: u32, kind: u8, payload: &[u8]) {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, kind, 1, &[payload]);
        self.step(Input::Bytes(connection(place), &bytes));
        assert_eq!(self.out.take_used(), bytes.len());
    }

    fn close(&mut self, place: u32) {
        self.out.end(connection(place));
        self.step(Input::Closed(connection(place)));
    }

    /// The kinds of what it has said since the last call.
    fn said(&mut self, place: u32) -> Vec<u8> {
        let (bytes, _) = self.out.pending(connection(place)).unwrap();
        let bytes = std::mem::take(bytes);
        let mut rest = &bytes[..];
        let mut kinds = Vec::new();
        while let Some(frame) = crate::protocol::next_frame(rest, WHOLE_BYTES_MAX).unwrap() {
            kinds.push(frame.kind);
            rest = &rest[frame.used..];
        }
        kinds
    }
}

/// Claim: a batch is given to no pipeline before it is durable which transactions it has: neither when the connection that
/// asked for it has closed, nor when its lease has run out. A crash would put its transactions into another batch, and both
/// would be on the chain.
#[test]
fn a_batch_is_durable_before_it_is_given() {
    for is_closed in [true, false] {
        let mut scene = Scene::new();
        scene.ask(0, kind::SUBMIT, b"transaction");
        scene.ask(1, kind::POP, &POP.encoded());
        scene.ask(2, kind::POP, &POP.encoded());
        if is_closed {
            scene.close(1);
        }
        scene.now = scene.now.plus(Duration::from_secs(1));
        scene.step(Input::Wake);
        assert_eq!(scene.said(2), [0; 0], "closed: {is_closed}");
        scene.step(Input::Persisted { log: 0, below: 2 });
        assert_eq!(scene.said(0), [kind::ACCEPTED]);
        assert_eq!(scene.said(2), [kind::BATCH], "closed: {is_closed}");
    }
}
