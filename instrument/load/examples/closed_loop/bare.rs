//! The cost of precise pacing on this host without an engine: one thread that sleeps to each due time, sends a request and
//! blocks for its answer, one after the other on one connection. Two wake-ups a request and nothing else.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU64;
use std::time::Duration;

use clock::Clock;

/// Sends `rate` requests a second for so many seconds; prints one line of figures, times in milliseconds.
pub fn run(address: SocketAddr, rate: u64, seconds: u64) {
    // As the engine's threads do.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    stream.set_nodelay(true).expect("set");
    let mut buffer = vec![0; 64 * 1024];
    let (mut lags, mut responses) = (Vec::new(), Vec::new());
    let clock = Clock::start();
    let start = clock.now();
    for request in 0..rate * seconds {
        let due = start.plus(Duration::from_nanos(request * 1_000_000_000 / rate));
        clock.sleep_until(due);
        lags.push(clock.now().ns_since(due));
        stream.write_all(super::REQUEST).expect("sent");
        // An answer fits a segment: on the loopback interface it comes in one piece.
        assert!(stream.read(&mut buffer).expect("received") > 0, "the server hung up");
        responses.push(clock.now().ns_since(due));
    }
    lags.sort_unstable();
    responses.sort_unstable();
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let at = |sorted: &[i64], permille: usize| {
        let rank = (sorted.len() * permille / 1000).min(sorted.len() - 1);
        sorted[rank] as f64 / 1e6
    };
    println!(
        "requests={} p50={} p95={} p99={} p999={} max={} lag_p99={}",
        responses.len(),
        at(&responses, 500),
        at(&responses, 950),
        at(&responses, 990),
        at(&responses, 999),
        at(&responses, 1000),
        at(&lags, 990),
    );
}
