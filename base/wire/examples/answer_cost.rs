//! What reading an answer costs: `cargo run --release -p wire --example answer_cost`. Prints nanoseconds for an
//! answer whose head is recognised and for one whose head is parsed. Takes about a second.

use clock::CpuTime;
use wire::http1::{Asked, Limits, ResponseReader};

const ANSWERS: u32 = 2_000_000;

fn main() {
    let same = [answer("abcd"), answer("abcd")];
    let other = [answer("abcd"), answer("abcde")];
    for (name, answers) in [("recognised head", &same), ("parsed head", &other)] {
        let mut reader = ResponseReader::new(Limits::CLIENT);
        let before = CpuTime::of_this_thread();
        let mut body_bytes = 0;
        for index in 0..ANSWERS {
            let text = std::hint::black_box(&answers[index as usize % 2]);
            let progress = reader.read(text, Asked::Other).expect("a good answer");
            body_bytes += progress.response.map_or(0, |response| response.body_bytes);
        }
        let took = CpuTime::of_this_thread().since(before);
        let each = took.as_nanos() / u128::from(ANSWERS);
        println!("{name}: {each} ns an answer ({body_bytes} body bytes)");
    }
}

fn answer(body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sat, 21 Nov 2026 07:00:00 GMT\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: keep-alive\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
