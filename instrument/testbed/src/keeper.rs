//! The keeper: the thread that starts every node, notices when one ends, and keeps logs in bounds.
//!
//! `PR_SET_PDEATHSIG` fires when the *thread* that started a process ends, not the process that it belongs to.
//! A node that an engine thread or a test thread had started would be killed when that thread returned; so all
//! are started here, on a thread that ends with the testbed. It sleeps until there is an order or a node has
//! ended (pidfd_open(2)), so that watching costs a quiet trial nothing. It must never wait for anything else.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::own_namespace;
use crate::processes::Processes;

/// How often logs are looked at.
const LOG_LOOK_EVERY: Duration = Duration::from_millis(500);
/// How late an end is noticed at most where a process cannot be watched (no descriptors left).
const UNWATCHED_LOOK_EVERY: Duration = Duration::from_millis(50);

struct Order {
    command: Command,
    is_alone: bool,
    reply: Sender<io::Result<Child>>,
}

/// The way to the thread. Dropping it ends the thread, and with it any node that is still there.
#[derive(Debug)]
pub(crate) struct Keeper {
    orders: Option<Sender<Order>>,
    bell: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(crate) fn start(processes: Arc<Processes>) -> io::Result<Self> {
        let (orders, receiver) = channel();
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let heard = Arc::clone(&bell);
        let thread = std::thread::Builder::new()
            .name("testbed-keeper".to_owned())
            .spawn(move || keep(&processes, &receiver, &heard))?;
        Ok(Self { orders: Some(orders), bell, thread: Some(thread) })
    }

    pub(crate) fn spawn(&self, command: Command, is_alone: bool) -> io::Result<Child> {
        let (reply, answer) = channel();
        let gone = || io::Error::other("the thread that starts nodes is gone");
        let orders = self.orders.as_ref().ok_or_else(gone)?;
        orders.send(Order { command, is_alone, reply }).map_err(|_| gone())?;
        self.wake();
        answer.recv().map_err(|_| gone())?
    }

    /// Makes the thread look around: there is an order, or one more node to watch.
    pub(crate) fn wake(&self) {
        // It fails only after 2^64 rings without a listener, and then the bell is ringing.
        let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.orders = None;
        self.wake();
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed by the panic hook; there is nothing to add to it here.
            let _ = thread.join();
        }
    }
}

fn keep(processes: &Processes, orders: &Receiver<Order>, bell: &OwnedFd) {
    // What it starts is where it is. Refused here it would be refused to the trial's own thread, which says so.
    let _inside = processes.enter_disks();
    loop {
        match orders.try_recv() {
            Ok(mut order) => {
                // If the answer is not waited for any more, the child is dropped here and the thread's own end kills it.
                let child = if order.is_alone {
                    own_namespace::spawn(&mut order.command)
                } else {
                    order.command.spawn()
                };
                let _ = order.reply.send(child);
                continue;
            }
            Err(TryRecvError::Disconnected) => return,
            Err(TryRecvError::Empty) => {}
        }
        if sleep(processes, bell) {
            processes.bound_logs();
        }
        processes.observe();
    }
}

/// Sleeps until the bell rings or a node ends. Gives whether it slept its time out.
fn sleep(processes: &Processes, bell: &OwnedFd) -> bool {
    let (watched, is_each_watched) = processes.watched();
    let at_most = if is_each_watched { LOG_LOOK_EVERY } else { UNWATCHED_LOOK_EVERY };
    let at_most = Timespec::try_from(at_most).expect("half a second is a time");
    let mut descriptors = vec![PollFd::new(bell, PollFlags::IN)];
    descriptors.extend(watched.iter().map(|process| PollFd::new(&**process, PollFlags::IN)));
    let woken = poll(&mut descriptors, Some(&at_most));
    if !descriptors[0].revents().is_empty() {
        let mut count = [0; 8];
        // Nothing to read means that it has been read; both leave the bell silent.
        let _ = rustix::io::read(bell, &mut count);
    }
    matches!(woken, Ok(0))
}
