//! How much processor time the engine takes for a request, with each row handed to a sink.
//!
//! `closed_loop URL|sink [--connections 64] [--seconds 2] [--depth 1] [--rate 50000] [--pacing exact|balanced]
//! [--requests]` loads a keep-alive HTTP server, or its own sink (a server in this process that answers
//! whatever comes), and prints one line: requests, requests a second, user + system time of this process for
//! each, and send lag. Run the sink in a process of its own (`closed_loop serve PORT`) where the generator's
//! cost is to be told from the server's; `closed_loop bare ADDRESS --rate R` paces without an engine. It is a measuring aid and takes no part in any trial.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clock::{Clock, CpuTime};
use load::{Control, Live, RowSink, Setup};
use model::facts::Event;
use model::plan::{Arrivals, LoadPlan, MeasurePlan, Pacing, SettingPlan};
use model::quantity::Rate;
use model::{NO_STAMP, Observations, Row, Seed};
use sut::{
    Abandon, Deployment, Endpoint, Kind, Link, Made, Marks, ProtocolError, Received, Role, Session,
    SutError, System, Testbed, Transaction, Workload,
};

#[path = "closed_loop/bare.rs"]
mod bare;
#[path = "closed_loop/server.rs"]
mod server;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Just enough HTTP/1.1 to count answers: a head, `Content-Length`, a body.
struct Http {
    depth: u32,
    waiting: std::collections::VecDeque<u64>,
    learned: Vec<u8>,
    body: usize,
}

impl Session for Http {
    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        out.extend_from_slice(REQUEST);
        self.waiting.push_back(tx.id);
        0
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let mut used = 0;
        while used < bytes.len() {
            let rest = &bytes[used..];
            if !self.learned.is_empty() && rest.starts_with(&self.learned) {
                let whole = self.learned.len() + self.body;
                if rest.len() < whole {
                    break;
                }
                used += whole;
            } else {
                let Some(head) = rest.windows(4).position(|four| four == b"\r\n\r\n") else {
                    break;
                };
                let text = String::from_utf8_lossy(&rest[..head]).to_ascii_lowercase();
                let length = text
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length:"))
                    .and_then(|value| value.trim().parse::<usize>().ok())
                    .ok_or_else(|| ProtocolError("no length".to_owned()))?;
                if rest.len() < head + 4 + length {
                    break;
                }
                self.learned = rest[..head + 4].to_vec();
                self.body = length;
                used += head + 4 + length;
            }
            let tx = self.waiting.pop_front().ok_or_else(|| ProtocolError("unasked".to_owned()))?;
            marks.reached(tx, 0, 200, u32::try_from(self.body).expect("small"));
        }
        Ok(used)
    }

    fn abandon(&mut self, _tx: u64) -> Abandon {
        Abandon::Close
    }

    fn in_flight_max(&self) -> u32 {
        self.depth
    }

    fn reset(&mut self) {
        self.waiting.clear();
        self.learned.clear();
    }
}

struct Nothing;

impl Workload for Nothing {
    fn next(&mut self, _id: u64, client: Option<u32>, _payload: &mut Vec<u8>) -> Made {
        Made::of(0, client)
    }
}

struct Target {
    address: SocketAddr,
    depth: u32,
}

impl System for Target {
    fn stages(&self) -> Vec<String> {
        vec!["answered".to_owned()]
    }
    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::recorded("/")]
    }
    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        Ok(Deployment::new(bed.clock()))
    }
    fn workload(&self, _seed: Seed, _worker: u32, _workers: u32) -> Box<dyn Workload> {
        Box::new(Nothing)
    }
    fn connect(&self, _to: &Deployment, _role: Role, _index: u32) -> Result<Link, SutError> {
        let session =
            Http { depth: self.depth, waiting: Default::default(), learned: Vec::new(), body: 0 };
        Ok(Link::Wire(Endpoint { address: self.address, tls: None }, Box::new(session)))
    }
}

/// Looks at each row and keeps only sums.
#[derive(Default)]
struct Sums {
    rows: u64,
    lags: Vec<i64>,
    services: Vec<i64>,
}

impl RowSink for Sums {
    fn rows(&mut self, rows: &[Row]) -> Result<(), String> {
        self.rows += rows.len() as u64;
        for row in rows {
            if row.tx % 16 == 0 && row.sent != NO_STAMP {
                self.lags.push(row.sent - row.ready);
                self.services.push(row.end - row.sent);
            }
        }
        Ok(())
    }
    fn observations(&mut self, _: &Observations) -> Result<(), String> {
        Ok(())
    }

    fn event(&mut self, event: Event) {
        eprintln!("{event:?}");
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).map(String::as_str)
    };
    let number =
        |name: &str, other: u64| value(name).map_or(other, |v| v.parse().expect("a number"));
    if arguments.first().is_some_and(|first| first == "serve") {
        let port = arguments[1].parse().expect("a port");
        return server::run(port);
    }
    let is_bare = arguments.first().is_some_and(|first| first == "bare");
    let address: SocketAddr = arguments
        .get(usize::from(is_bare))
        .expect("an address, such as 127.0.0.1:8080, or serve PORT")
        .parse()
        .expect("an address with a port");
    if is_bare {
        return bare::run(address, number("--rate", 1_000), number("--seconds", 2));
    }
    let connections = u32::try_from(number("--connections", 64)).expect("small");
    let depth = u32::try_from(number("--depth", 1)).expect("small");
    let arrivals = match value("--rate") {
        Some(rate) => Arrivals::constant(Rate::per_second(rate.parse().expect("a number"))),
        None => Arrivals::closed(connections * depth),
    };
    let plan = plan(arrivals, connections, number("--seconds", 2), value("--pacing"));
    report(&plan, &Target { address, depth });
}

fn plan(arrivals: Arrivals, connections: u32, seconds: u64, pacing: Option<&str>) -> SettingPlan {
    let load = LoadPlan {
        drain_max: Duration::from_secs(1),
        timeout: Duration::from_secs(10),
        backlog_max: 100_000,
        lookahead: 1024,
        pacing: match pacing {
            Some("exact") => Pacing::Exact,
            Some("coalesced") => Pacing::Coalesced,
            _ => Pacing::Balanced,
        },
        ..LoadPlan::plain(arrivals, connections, Duration::from_secs(seconds))
    };
    let measure = MeasurePlan { ledger: false, ..MeasurePlan::default() };
    SettingPlan { measure, ..SettingPlan::plain("http", load) }
}

fn report(plan: &SettingPlan, target: &Target) {
    let mut sums = Sums::default();
    let cpu = CpuTime::of_this_process();
    let setup = Setup {
        part: None,
        plan,
        stages: target.stages(),
        final_stages: model::FinalStages::all(0),
        system: target,
        deployment: &Deployment::new(Clock::start()),
        seed: Seed(1),
        control: Arc::<Control>::default(),
        live: Arc::<Live>::default(),
    };
    let loaded = load::run(setup, &mut sums).unwrap_or_else(|error| panic!("{error}"));
    let facts = loaded.facts;
    let cpu = CpuTime::of_this_process().since(cpu);
    let worker = &facts.workers[0];
    sums.lags.sort_unstable();
    sums.services.sort_unstable();
    let at = |sorted: &[i64], percent: usize| {
        sorted.get(sorted.len() * percent / 100).copied().unwrap_or(0) as f64 / 1e3
    };
    let rows = sums.rows.max(1) as f64;
    println!(
        "{} rows {:.0}/s cpu {:.3} us/req worker {:.3} us/req spun {:.3} enters/req {:.3} lag p50 {:.1} p99 {:.1} us \
         service p50 {:.1} p99 {:.1} us {} shed {} dry {} waits {} queue {:.1} ms rss {} kB",
        sums.rows,
        rows / plan.load.duration.as_secs_f64(),
        cpu.as_secs_f64() * 1e6 / rows,
        worker.cpu_ns as f64 / 1e3 / rows,
        worker.spin_ns as f64 / 1e3 / rows,
        worker.enters as f64 / rows,
        at(&sums.lags, 50),
        at(&sums.lags, 99),
        at(&sums.services, 50),
        at(&sums.services, 99),
        facts.driver,
        worker.shed,
        worker.lookahead_dry,
        worker.record_waits,
        worker.run_queue_ns as f64 / 1e6,
        resident_kb(),
    );
}

fn resident_kb() -> u64 {
    std::fs::read_to_string("/proc/self/status")
        .unwrap_or_default()
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}
