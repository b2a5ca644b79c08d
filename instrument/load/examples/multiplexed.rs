//! How much processor time the engine takes for a transaction where few encrypted connections carry many at a time,
//! as the clients of a replicated store do.
//!
//! `multiplexed serve PORT [--tls DIR]` is a server that does nothing but answer; `multiplexed ADDRESS [--tls DIR]
//! [--connections 16] [--depth 1024] [--seconds 2] [--batch N]` loads it with `connections × depth` clients in a
//! closed loop; `multiplexed bare ADDRESS …` moves the same bytes in the same pieces with nothing of the engine, which
//! is what the system calls and TLS alone cost. Each prints words of the form `name=value`: `us` is the processor time of the
//! thread that sends and receives, for each transaction. Requests have 64 bytes, answers 16. It is a measuring aid and takes
//! no part in any trial.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clock::{Clock, CpuTime};
use load::{Control, Live, RowSink, Setup};
use model::facts::Event;
use model::plan::{Arrivals, BatchPlan, LoadPlan, MeasurePlan, SettingPlan};
use model::{Observations, Row, Seed};
use sut::{
    Abandon, Deployment, Endpoint, Kind, Link, Made, Marks, Received, Role, Session, SutError,
    System, Testbed, Transaction, Workload,
};

#[path = "multiplexed/bare.rs"]
mod bare;
#[path = "multiplexed/certificate.rs"]
mod certificate;

/// A request's length, and an answer's.
const REQUEST: usize = 64;
const ANSWER: usize = 16;

/// Frames of fixed length that begin with the transaction's id.
struct Frames {
    depth: u32,
}

impl Session for Frames {
    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        out.extend_from_slice(&tx.id.to_le_bytes());
        out.extend_from_slice(tx.payload);
        u32::try_from(REQUEST).expect("small")
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let whole = bytes.len() / ANSWER * ANSWER;
        for answer in bytes[..whole].chunks_exact(ANSWER) {
            let id = u64::from_le_bytes(answer[..8].try_into().expect("eight bytes"));
            marks.reached(id, 0, 0, u32::try_from(ANSWER).expect("small"));
        }
        Ok(whole)
    }

    fn abandon(&mut self, _tx: u64) -> Abandon {
        Abandon::Keep
    }

    fn in_flight_max(&self) -> u32 {
        self.depth
    }

    fn reset(&mut self) {}
}

struct Payloads;

impl Workload for Payloads {
    fn next(&mut self, _id: u64, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        payload.resize(REQUEST - 8, b'.');
        Made::of(0, client)
    }
}

struct Target {
    address: SocketAddr,
    depth: u32,
    tls: Option<sut::Tls>,
}

impl System for Target {
    fn stages(&self) -> Vec<String> {
        vec!["answered".to_owned()]
    }
    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::recorded("put")]
    }
    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        Ok(Deployment::new(bed.clock()))
    }
    fn workload(&self, _seed: Seed, _worker: u32, _workers: u32) -> Box<dyn Workload> {
        Box::new(Payloads)
    }
    fn connect(&self, _to: &Deployment, _role: Role, _index: u32) -> Result<Link, SutError> {
        let endpoint = Endpoint { address: self.address, tls: self.tls.clone() };
        Ok(Link::Wire(endpoint, Box::new(Frames { depth: self.depth })))
    }
}

/// Counts rows.
#[derive(Default)]
struct Count(u64);

impl RowSink for Count {
    fn rows(&mut self, rows: &[Row]) -> Result<(), String> {
        self.0 += rows.len() as u64;
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
        |name: &str, other: u32| value(name).map_or(other, |text| text.parse().expect("a number"));
    let first = arguments.first().map(String::as_str);
    let tls = value("--tls");
    if first == Some("serve") {
        return bare::serve(arguments[1].parse().expect("a port"), tls);
    }
    let (connections, depth) = (number("--connections", 16), number("--depth", 1024));
    let seconds = Duration::from_secs(u64::from(number("--seconds", 2)));
    let address = if first == Some("bare") { arguments.get(1) } else { arguments.first() };
    let address = address.expect("an address, such as 127.0.0.1:8080, or serve PORT");
    let address = address.parse().expect("an address with a port");
    if first == Some("bare") {
        return bare::load(address, tls, connections, depth, seconds);
    }
    let target = Target { address, depth, tls: tls.map(certificate::client) };
    let clients = connections * depth;
    report(&plan(clients, connections, seconds, number("--batch", 0)), &target);
}

fn plan(clients: u32, connections: u32, seconds: Duration, batch: u32) -> SettingPlan {
    let batch = (batch > 0).then_some(BatchPlan {
        size_max: batch,
        delay_max: Duration::from_millis(1),
        in_flight_max: 16,
    });
    let load = LoadPlan {
        drain_max: Duration::from_secs(1),
        timeout: Duration::from_secs(10),
        backlog_max: 100_000,
        lookahead: 1024,
        batch,
        ..LoadPlan::plain(Arrivals::closed(clients), connections, seconds)
    };
    let measure = MeasurePlan { ledger: false, ..MeasurePlan::default() };
    SettingPlan { measure, ..SettingPlan::plain("frames", load) }
}

fn report(plan: &SettingPlan, target: &Target) {
    let mut count = Count::default();
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
    let loaded = load::run(setup, &mut count).unwrap_or_else(|error| panic!("{error}"));
    let cpu = CpuTime::of_this_process().since(cpu);
    let worker = &loaded.facts.workers[0];
    let rows = count.0.max(1) as f64;
    println!(
        "transactions={} per_second={:.0} us={:.4} process_us={:.4} system_calls={:.5} driver={}",
        count.0,
        rows / plan.load.duration.as_secs_f64(),
        worker.cpu_ns as f64 / 1e3 / rows,
        cpu.as_secs_f64() * 1e6 / rows,
        worker.enters as f64 / rows,
        loaded.facts.driver,
    );
}
