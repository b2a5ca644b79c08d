//! What a transaction of `exec` costs the generator beside an ordinary one: encoding it into a line, and reading the line
//! that ends it, by how many stand in a line. Processor time of this thread, no sockets.
//! `cargo run --release -p exec-adapter --example line_cost` takes some seconds; `-- toy` a moment.

use std::sync::Arc;

use clock::CpuTime;
use exec_adapter::{LineSession, Vocabulary};
use sut::{Marks, Session as _, Transaction};

fn main() {
    let is_toy = std::env::args().any(|word| word == "toy");
    let total: u64 = if is_toy { 2_000 } else { 2_000_000 };
    let words = Vocabulary {
        stages: vec!["committed".to_owned()],
        kinds: vec!["submit".to_owned()],
        steps: Vec::new(),
        keys: None,
    };
    let payload = [b'x'; 64];
    for in_line in [1_u64, 16, 256] {
        let mut session = LineSession::alone(Arc::new(words.clone()), 65_536);
        let (mut out, mut answer, mut marks) = (Vec::new(), Vec::new(), Marks::default());
        let (mut encoding_ns, mut reading_ns) = (0, 0);
        let mut first = 0;
        while first < total {
            let ids = first..first + in_line;
            first += in_line;
            out.clear();
            let began = CpuTime::of_this_thread();
            for id in ids.clone() {
                session.submit(&Transaction::new(id, 0, &payload), &mut out);
            }
            session.gathered(&mut out);
            encoding_ns += CpuTime::of_this_thread().since(began).as_nanos();
            answer.clear();
            answer.extend_from_slice(b"{\"observed\": [");
            for id in ids {
                let comma = if answer.ends_with(b"[") { "" } else { ", " };
                let said = format!("{comma}{{\"id\": {id}, \"reached\": \"committed\"}}");
                answer.extend_from_slice(said.as_bytes());
            }
            answer.extend_from_slice(b"]}\n");
            marks.clear();
            let began = CpuTime::of_this_thread();
            let used =
                session.receive(&answer, &mut out, &mut marks).expect("it is of the protocol");
            reading_ns += CpuTime::of_this_thread().since(began).as_nanos();
            assert!(used == answer.len() && marks.list().len() as u64 == in_line);
        }
        let (encoding, reading) = (encoding_ns / u128::from(total), reading_ns / u128::from(total));
        println!(
            "{in_line:>4} a line: {encoding} ns to encode a transaction, {reading} ns to read its end"
        );
    }
}
