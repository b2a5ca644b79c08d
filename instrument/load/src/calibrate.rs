//! What this engine reaches on this machine against a target that does nothing: the instrument's own limits,
//! measured with the instrument. The target echoes sixteen bytes on a thread of this process; its cost is on
//! the same host, as a local system's would be, and not in the figures for the generator.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use clock::Clock;
use model::facts::{Calibration, Event, LoadFacts};
use model::plan::{Arrivals, LoadPlan, MeasurePlan, SettingPlan};
use model::quantity::Rate;
use model::{Observations, Row, Seed, TxId};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use sut::{
    Abandon, Deployment, Endpoint, Kind, Link, Made, Marks, ProtocolError, Received, Role, Session,
    SutError, System, Testbed, Transaction, Workload,
};

use crate::threads::run;
use crate::{Control, Live, LoadError, RowSink, Setup};

/// Bytes of a request and of its echo.
const FRAME: usize = 16;
/// Connections of the rate measurement: as the published comparisons of load generators have it.
const CONNECTIONS: u32 = 64;
/// The rate of the lag measurement: gaps of half a millisecond, so that each send is a wake-up of its own.
const LAG_RATE: u64 = 2_000;

/// Measures floor, rate and lag, a fifth of a second each.
pub(crate) fn calibrate(clock: Clock) -> Result<Calibration, LoadError> {
    let target = Target::start()?;
    let part = Duration::from_millis(200);
    let (_, floor) = measure(clock, target.address, Arrivals::closed(1), 1, part)?;
    let (facts, many) =
        measure(clock, target.address, Arrivals::closed(CONNECTIONS), CONNECTIONS, part)?;
    let paced = Arrivals::constant(Rate::per_second(LAG_RATE));
    let (_, lag) = measure(clock, target.address, paced, 16, part)?;
    let answered = many.services.len().max(1);
    let cpu_ns: u64 = facts.workers.iter().map(|worker| worker.cpu_ns).sum();
    #[expect(clippy::cast_precision_loss, reason = "a fifth of a second's requests")]
    Ok(Calibration {
        rate_max: answered as f64 / part.as_secs_f64(),
        floor_p50_ns: quantile(floor.services, 50),
        lag_p99_ns: quantile(lag.lags, 99),
        cpu_ns_per_request: cpu_ns as f64 / answered as f64,
    })
}

/// The smallest value that at least `percent` of the samples do not exceed.
fn quantile(mut samples: Vec<i64>, percent: usize) -> i64 {
    samples.sort_unstable();
    let rank = (samples.len() * percent).div_ceil(100).max(1) - 1;
    samples.get(rank).copied().unwrap_or(0)
}

fn measure(
    clock: Clock,
    address: SocketAddr,
    arrivals: Arrivals,
    connections: u32,
    duration: Duration,
) -> Result<(LoadFacts, Samples), LoadError> {
    let plan = plan(arrivals, connections, duration);
    let system = Null { address };
    let mut samples = Samples::default();
    let setup = Setup {
        part: None,
        plan: &plan,
        stages: system.stages(),
        final_stages: model::FinalStages::all(0),
        system: &system,
        deployment: &Deployment::new(clock),
        seed: Seed(0),
        control: Arc::<Control>::default(),
        live: Arc::<Live>::default(),
    };
    Ok((run(setup, &mut samples)?.facts, samples))
}

fn plan(arrivals: Arrivals, connections: u32, duration: Duration) -> SettingPlan {
    let load = LoadPlan {
        drain_max: Duration::from_millis(100),
        timeout: Duration::from_secs(1),
        ..LoadPlan::plain(arrivals, connections, duration)
    };
    SettingPlan {
        key: "calibration".to_owned(),
        measure: MeasurePlan { window: duration, ledger: false, ..MeasurePlan::default() },
        ..SettingPlan::plain("null", load)
    }
}

#[derive(Default)]
struct Samples {
    services: Vec<i64>,
    lags: Vec<i64>,
}

impl RowSink for Samples {
    fn rows(&mut self, rows: &[Row]) -> Result<(), String> {
        self.services.extend(rows.iter().filter_map(|row| row.service_ns(0)));
        self.lags.extend(rows.iter().filter_map(Row::own_lag_ns));
        Ok(())
    }

    fn observations(&mut self, _: &Observations) -> Result<(), String> {
        Ok(())
    }

    fn event(&mut self, _event: Event) {}
}

/// A system that does nothing.
struct Null {
    address: SocketAddr,
}

impl System for Null {
    fn stages(&self) -> Vec<String> {
        vec!["echoed".to_owned()]
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::recorded("null")]
    }

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        Ok(Deployment::new(bed.clock()))
    }

    fn workload(&self, _seed: Seed, _worker: u32, _workers: u32) -> Box<dyn Workload> {
        Box::new(NoPayload)
    }

    fn connect(&self, _to: &Deployment, _role: Role, _index: u32) -> Result<Link, SutError> {
        Ok(Link::Wire(Endpoint { address: self.address, tls: None }, Box::new(Echo)))
    }
}

struct NoPayload;

impl Workload for NoPayload {
    fn next(&mut self, _id: TxId, client: Option<u32>, _payload: &mut Vec<u8>) -> Made {
        Made::of(0, client)
    }
}

struct Echo;

impl Session for Echo {
    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        out.extend_from_slice(&tx.id.to_le_bytes());
        out.extend_from_slice(&tx.id.to_be_bytes());
        0
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        for frame in bytes.chunks_exact(FRAME) {
            let (id, again) = frame.split_at(8);
            if !id.iter().eq(again.iter().rev()) {
                return Err(ProtocolError("not an echo".to_owned()));
            }
            let id = u64::from_le_bytes(id.try_into().expect("half a frame is eight bytes"));
            marks.reached(id, 0, 0, 0);
        }
        Ok(bytes.len() / FRAME * FRAME)
    }

    fn abandon(&mut self, _tx: TxId) -> Abandon {
        Abandon::Keep
    }

    fn reset(&mut self) {}
}

/// The null target: one thread that sends back what comes.
struct Target {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Target {
    fn start() -> Result<Self, LoadError> {
        let host = |attempt: &'static str| {
            move |error: std::io::Error| LoadError::Host { attempt, reason: error.to_string() }
        };
        let listener = TcpListener::bind("127.0.0.1:0")
            .map_err(host("listening on the loopback interface"))?;
        listener.set_nonblocking(true).map_err(host("setting up the null target"))?;
        let address = listener.local_addr().map_err(host("setting up the null target"))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = std::thread::Builder::new()
            .name("null-target".to_owned())
            .spawn(move || {
                // An error here shows as transactions without an answer.
                let _ = serve(&listener, &over);
            })
            .map_err(host("starting the null target"))?;
        Ok(Self { address, is_over, thread: Some(thread) })
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, is_over: &AtomicBool) -> Result<(), Errno> {
    const LISTENER: u64 = u64::MAX;
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&poll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut connections: Vec<Option<OwnedFd>> = Vec::new();
    let mut events = Vec::with_capacity(256);
    let mut buffer = vec![0; 16 * 1024];
    let tick = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
    while !is_over.load(Relaxed) {
        events.clear();
        match epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), Some(&tick)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        for event in &events {
            if event.data.u64() == LISTENER {
                accept(listener, &poll, &mut connections)?;
                continue;
            }
            let slot = usize::try_from(event.data.u64()).expect("a descriptor");
            let Some(connection) = &connections[slot] else { continue };
            match recv(connection, &mut *buffer, RecvFlags::empty()) {
                Ok((length, _)) if length > 0 => {
                    let _ = send(connection, &buffer[..length], SendFlags::NOSIGNAL);
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                _ => connections[slot] = None,
            }
        }
    }
    Ok(())
}

fn accept(
    listener: &TcpListener,
    poll: &OwnedFd,
    connections: &mut Vec<Option<OwnedFd>>,
) -> Result<(), Errno> {
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(_) => continue,
        };
        let prepared = stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true));
        if prepared.is_err() {
            continue;
        }
        let slot = usize::try_from(stream.as_raw_fd()).expect("descriptors are not negative");
        let data = EventData::new_u64(slot as u64);
        epoll::add(poll, &stream, data, EventFlags::IN)?;
        if connections.len() <= slot {
            connections.resize_with(slot + 1, || None);
        }
        connections[slot] = Some(stream.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the calibration ends within a second and gives figures that can be true of a machine.
    #[test]
    fn figures_are_plausible() {
        let clock = Clock::start();
        let found = calibrate(clock).expect("the loopback interface works");
        assert!(clock.now().as_ns() < 1_000_000_000 * 2, "half of it is a busy host's allowance");
        assert!((1_000.0..10_000_000.0).contains(&found.rate_max), "{found:?}");
        assert!((1_000..50_000_000).contains(&found.floor_p50_ns), "{found:?}");
        assert!((0..200_000_000).contains(&found.lag_p99_ns), "{found:?}");
        assert!((100.0..1e6).contains(&found.cpu_ns_per_request), "{found:?}");
    }
}
