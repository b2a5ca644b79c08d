//! Tests of the scraper against toy servers on loopback, well behaved and not.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use model::series::SeriesUnit;

use super::*;

const ROUND: Duration = Duration::from_millis(50);

/// A server: `behave` is given each connection and its number.
fn server(behave: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> SocketAddr {
    serve(TcpListener::bind("127.0.0.1:0").unwrap(), behave)
}

fn serve(
    listener: TcpListener,
    behave: impl Fn(TcpStream, usize) + Send + Sync + 'static,
) -> SocketAddr {
    let address = listener.local_addr().unwrap();
    let behave = Arc::new(behave);
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let behave = Arc::clone(&behave);
            std::thread::spawn(move || behave(stream, number));
        }
    });
    address
}

/// Reads a request to its end; false when there is none.
fn request(stream: &mut TcpStream) -> bool {
    let mut seen = Vec::new();
    let mut byte = [0; 1];
    while !seen.ends_with(b"\r\n\r\n") {
        if stream.read_exact(&mut byte).is_err() {
            return false;
        }
        seen.push(byte[0]);
    }
    assert!(seen.starts_with(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:"), "{seen:?}");
    true
}

fn plain(text: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len())
}

/// Answers each request with what `text` says of its number.
fn answering(text: impl Fn(usize) -> String + Send + Sync + 'static) -> SocketAddr {
    server(move |mut stream, _| {
        for number in 0.. {
            if !request(&mut stream) || stream.write_all(text(number).as_bytes()).is_err() {
                return;
            }
        }
    })
}

fn node(source: &str, address: SocketAddr) -> Scrape {
    let series = |metric: &str, name: &str, per_second| ScrapeSeries {
        metric: metric.to_owned(),
        series: SeriesFacts::of_node(name, name, SeriesUnit::Number),
        per_second,
    };
    Scrape {
        source: source.to_owned(),
        address,
        path: "/metrics".to_owned(),
        series: vec![
            series("toy_size", "size_transactions", false),
            series("toy_total", "done_per_second", true),
            series("toy_total", "done_transactions", false),
        ],
    }
}

fn untold() -> SampleSink {
    Box::new(|_, _, _, _| ())
}

/// How many samples were told of each node.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<BTreeMap<String, usize>>>);

impl Told {
    fn sink(&self) -> SampleSink {
        let told = self.clone();
        Box::new(move |_, source, _, _| {
            *told.0.lock().unwrap().entry(source.to_owned()).or_default() += 1
        })
    }

    fn of(&self, source: &str) -> usize {
        self.0.lock().unwrap().get(source).copied().unwrap_or_default()
    }

    /// However busy the machine is.
    fn wait(&self, source: &str, samples: usize) {
        let (clock, step) = (Clock::start(), Duration::from_millis(10));
        while self.of(source) < samples {
            assert!(
                clock.now() < Instant::from_ns(60_000_000_000),
                "{} of {samples} of {source}",
                self.of(source)
            );
            clock.sleep_until(clock.now().plus(step));
        }
    }
}

/// The samples of `nodes` until each has given at least `samples`, each of which was told as it was made.
fn scraped(nodes: &[Scrape], samples: usize) -> Scraped {
    let told = Told::default();
    let scraper = MetricScraper::start(Clock::start(), ROUND, nodes, told.sink()).unwrap();
    nodes.iter().for_each(|node| told.wait(&node.source, samples));
    let scraped = scraper.finish(Instant::ZERO);
    assert_eq!(
        nodes.iter().map(|node| told.of(&node.source)).sum::<usize>(),
        scraped.samples.len()
    );
    scraped
}

fn points(of: &Scraped, source: &str, name: &str) -> Vec<(i64, f64)> {
    let is_it = |s: &&MetricSample| s.source == source && s.name == name;
    of.samples.iter().filter(is_it).map(|s| (s.at, s.value)).collect()
}

fn values(of: &Scraped, source: &str, name: &str) -> Vec<f64> {
    points(of, source, name).into_iter().map(|(_, value)| value).collect()
}

/// Claim: over one connection, with a length and in chunks, readings come as they are and counters as their increase a
/// second, each stamped within the run.
#[test]
fn readings_and_rates() {
    let connections = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&connections);
    let chunked = server(move |mut stream, _| {
        seen.fetch_add(1, Ordering::Relaxed);
        for number in 0.. {
            let text = format!("toy_size {number}\ntoy_total {}\n", number * 10);
            let (a, b) = text.split_at(5);
            let answer = format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{a}\r\n{:x}\r\n{b}\r\n0\r\n\r\n",
                b.len()
            );
            // In two pieces, so that an answer is not one read.
            let (head, rest) = answer.split_at(60);
            if !request(&mut stream) || stream.write_all(head.as_bytes()).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
            if stream.write_all(rest.as_bytes()).is_err() {
                return;
            }
        }
    });
    let sized = answering(|number| plain(&format!("toy_size{{a=\"b\"}} 1\ntoy_size {number}\n")));
    let found = scraped(&[node("a", chunked), node("b", sized)], 15);
    let sizes = values(&found, "a", "size_transactions");
    assert!(sizes.len() >= 5, "{found:?}");
    assert!(
        sizes.iter().zip(0_u32..).all(|(size, number)| *size == f64::from(number)),
        "{sizes:?}"
    );
    let totals = points(&found, "a", "done_transactions");
    let rates = points(&found, "a", "done_per_second");
    assert_eq!(rates.len(), totals.len() - 1, "a rate needs two answers");
    for (pair, rate) in totals.windows(2).zip(&rates) {
        let [(from, _), (to, _)] = pair else { unreachable!() };
        #[expect(clippy::cast_precision_loss, reason = "less than a second")]
        let expected = 10.0 / ((to - from) as f64 / 1e9);
        assert!((rate.1 - expected).abs() < 1e-6 && rate.0 == *to, "{rate:?} of {pair:?}");
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1, "the connection is kept");
    let other = values(&found, "b", "size_transactions");
    assert!(other.len() >= 5 && other[0] == 1.0 && other[3] == 4.0, "{other:?}");
    assert!(values(&found, "b", "done_per_second").is_empty());
    assert!(found.samples.iter().all(|s| (0..60_000_000_000).contains(&s.at)));
    assert!(found.said.starts_with("2 nodes asked every 0."), "{}", found.said);
}

/// Claim: nodes that hang, refuse, close, answer with an error or with something else have gaps of their own, are named,
/// and the good node beside them loses no round; the end does not wait for them either.
#[test]
fn bad_nodes_hold_up_nobody() {
    let hangs = server(|mut stream, _| {
        request(&mut stream);
        std::thread::sleep(Duration::from_secs(60));
    });
    let closes = server(|mut stream, _| {
        request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\ntoy_size 7");
    });
    let other = server(|mut stream, _| {
        request(&mut stream);
        let _ = stream.write_all(b"SSH-2.0-toy\r\n\r\n\r\n");
        std::thread::sleep(Duration::from_secs(1));
    });
    let floods = server(|mut stream, _| {
        request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n");
        while stream.write_all(&[b'a'; 4096]).is_ok() {}
    });
    let error = answering(|_| "HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno".to_owned());
    let refuses = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let good = answering(|number| plain(&format!("toy_size {number}\n")));
    let nodes = [
        node("hangs", hangs),
        node("closes", closes),
        node("other", other),
        node("floods", floods),
        node("error", error),
        node("refuses", refuses),
        node("good", good),
    ];
    let clock = Clock::start();
    let told = Told::default();
    let scraper = MetricScraper::start(clock, ROUND, &nodes, told.sink()).unwrap();
    told.wait("good", 16);
    let ending = clock.now();
    let found = scraper.finish(Instant::ZERO);
    let ended = clock.now().saturating_since(ending);
    // A node may take five seconds for an answer.
    assert!(ended < Duration::from_secs(4), "{ended:?}");
    assert!(found.samples.iter().all(|s| s.source == "good"), "{found:?}");
    let good = points(&found, "good", "size_transactions");
    let gap = good.windows(2).map(|pair| pair[1].0 - pair[0].0).max().unwrap();
    assert!(gap < 4_000_000_000, "a gap of {gap} ns");
    for words in ["500", "closed in the middle", "; and 1 more"] {
        assert!(found.said.contains(words), "{words}: {}", found.said);
    }
}

/// Claim: a node that is started again begins again: no rate across the restart, whether its counter went back or not.
#[test]
fn a_restart_is_a_gap() {
    // Each connection is another life: its counter begins anew, and every second life is past the old count at once.
    let lives = server(|mut stream, life| {
        for number in 0..4 {
            let total = if life % 2 == 0 { number } else { 1_000_000 + number };
            let text = format!("toy_total {total}\nprocess_start_time_seconds {life}.5e9\n");
            if !request(&mut stream) || stream.write_all(plain(&text).as_bytes()).is_err() {
                return;
            }
        }
    });
    let found = scraped(&[node("a", lives)], 18);
    let rates = values(&found, "a", "done_per_second");
    let totals = values(&found, "a", "done_transactions");
    assert!(totals.contains(&0.0) && totals.contains(&1_000_000.0), "{found:?}");
    assert!(rates.len() >= 3 && rates.len() < totals.len() - 1, "{found:?}");
    assert!(rates.iter().all(|rate| (0.0..1_000.0).contains(rate)), "{rates:?}");
}

/// Claim: a node that is up later than its scraper is sampled from then on.
#[test]
fn a_late_node_is_found() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let clock = Clock::start();
    let told = Told::default();
    let scraper = MetricScraper::start(clock, ROUND, &[node("a", address)], told.sink()).unwrap();
    clock.sleep_until(clock.now().plus(Duration::from_millis(200)));
    let listener = TcpListener::bind(address).unwrap();
    serve(listener, |mut stream, _| {
        while request(&mut stream) && stream.write_all(plain("toy_size 3").as_bytes()).is_ok() {}
    });
    told.wait("a", 3);
    let found = scraper.finish(Instant::ZERO);
    let sizes = points(&found, "a", "size_transactions");
    assert!(sizes.iter().all(|(_, size)| *size == 3.0), "{found:?}");
    assert!(sizes[0].0 > 150_000_000, "{sizes:?}");
}

/// Claim: where answers are dear to read the rounds come more seldom, so that the asking stays within a hundredth of a
/// core, and the interval in force is said.
#[test]
fn cost_sets_the_pace() {
    let mut text = String::new();
    for number in 0..20_000 {
        text.push_str(&format!("toy_other_with_a_long_name{{number=\"{number}\"}} {number}\n"));
    }
    text.push_str("toy_size 5\n");
    let big = answering(move |_| plain(&text));
    let clock = Clock::start();
    let nodes = [node("a", big)];
    let mut rounds = Rounds::new(clock, Duration::from_millis(10), &nodes, untold());
    let (stop, stopped) = UnixStream::pair().unwrap();
    let (cpu, took) = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let (cpu, start) = (clock::CpuTime::of_this_thread(), clock.now());
            rounds.run(&stopped);
            (clock::CpuTime::of_this_thread().since(cpu), clock.now().saturating_since(start))
        });
        clock.sleep_until(clock.now().plus(Duration::from_secs(3)));
        drop(stop);
        running.join().unwrap()
    });
    let share = cpu.as_secs_f64() / took.as_secs_f64();
    println!(
        "{cpu:?} of {took:?}: {:.2} % of a core; {:?}",
        share * 100.0,
        rounds.scraped(Instant::ZERO).said
    );
    // The first rounds, which nothing is known of yet, and the last are beside it.
    assert!(share < 0.03, "{share}");
    let found = rounds.scraped(Instant::ZERO);
    assert!(!found.samples.is_empty() && !found.said.contains("every 0.01 s"), "{}", found.said);
}

/// Claim: memory is bounded: beyond the bound neighbours are merged, rates by their mean and readings by the later, and
/// rounds come half as often.
#[test]
fn a_long_run_is_thinned() {
    let clock = Clock::start();
    let address = answering(|number| plain(&format!("toy_size {number}\n")));
    let nodes = [node("a", address)];
    let told = Told::default();
    let mut rounds =
        Rounds::new(clock, Duration::from_millis(10), &nodes, told.sink()).with_samples_max(9);
    let (stop, stopped) = UnixStream::pair().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| rounds.run(&stopped));
        told.wait("a", 25);
        drop(stop);
    });
    let found = rounds.scraped(Instant::ZERO);
    assert!((3..=9).contains(&found.samples.len()), "{found:?}");
    assert!(!found.said.contains("every 0.01 s"), "{}", found.said);
    let mut followed = followed::Followed::new(&nodes[0]);
    for (second, total) in (1..=5).zip([0, 2, 6, 12, 20]) {
        let text = format!("toy_size {total}\ntoy_total {total}");
        followed.take(Instant::from_ns(second * 1_000_000_000), text.as_bytes());
    }
    followed.thin();
    let points = |line: usize| {
        let points = followed.lines[line].points.iter();
        points.map(|(at, value)| (at.as_ns() / 1_000_000_000, *value)).collect::<Vec<_>>()
    };
    assert_eq!(points(0), [(2, 2.0), (4, 12.0), (5, 20.0)]);
    assert_eq!(points(1), [(3, 3.0), (5, 7.0)]);
}

mod timing {
    use super::*;

    /// Claim: asking thirteen nodes that serve what a real one does takes less than a hundredth of a core at one a second.
    #[test]
    fn thirteen_nodes_are_cheap() {
        const REAL: &str = include_str!("cometbft-0.38.txt");
        // About as much as a node of a network serves: 40 kB.
        let text = plain(&REAL.repeat(6));
        let address = answering(move |_| text.clone());
        let nodes: Vec<Scrape> = (0..13).map(|at| node(&format!("node-{at}"), address)).collect();
        let clock = Clock::start();
        let mut rounds = Rounds::new(clock, Duration::from_millis(20), &nodes, untold());
        let (stop, stopped) = UnixStream::pair().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| rounds.run(&stopped));
            clock.sleep_until(clock.now().plus(Duration::from_secs(2)));
            drop(stop);
        });
        let cost = rounds.cost().unwrap();
        println!("a round of 13 nodes takes {cost:?} of processor time");
        assert!(cost < Duration::from_millis(10), "{cost:?}");
    }
}

/// Claim: what is not a path is refused before anybody is asked.
#[test]
fn a_path_must_be_one() {
    let mut bad = node("a", "127.0.0.1:1".parse().unwrap());
    bad.path = "metrics of x".to_owned();
    let error =
        MetricScraper::start(Clock::start(), ROUND, &[bad], untold()).unwrap_err().to_string();
    assert!(error.contains("write one such as /metrics"), "{error}");
}
