//! The keeper: the thread that starts every node, notices when one ends, and keeps logs in bounds.
//!
//! `PR_SET_PDEATHSIG` fires when the *thread* that started a process ends, not the process that it belongs to.
//! A node that an engine thread or a test thread had started would be killed when that thread returned; so all
//! are started here, on a thread that ends with the testbed. It must never wait for anything but its orders.

use std::io;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::bed::Shared;

/// How late the end of a node is noticed at most. Twenty wake-ups a second cost about 0.02 % of a core.
const TICK: Duration = Duration::from_millis(50);
/// Logs are looked at once in this many ticks (500 ms).
const TICKS_PER_LOG_LOOK: u32 = 10;

struct Order {
    command: Command,
    reply: Sender<io::Result<Child>>,
}

/// The way to the thread. Dropping it ends the thread, and with it any node that is still there.
#[derive(Debug)]
pub(crate) struct Keeper {
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(crate) fn start(shared: Arc<Shared>) -> io::Result<Self> {
        let (orders, receiver) = channel();
        let thread = std::thread::Builder::new()
            .name("testbed-keeper".to_owned())
            .spawn(move || keep(&shared, &receiver))?;
        Ok(Self { orders: Some(orders), thread: Some(thread) })
    }

    pub(crate) fn spawn(&self, command: Command) -> io::Result<Child> {
        let (reply, answer) = channel();
        let gone = || io::Error::other("the thread that starts nodes is gone");
        let orders = self.orders.as_ref().ok_or_else(gone)?;
        orders.send(Order { command, reply }).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed by the panic hook; there is nothing to add to it here.
            let _ = thread.join();
        }
    }
}

fn keep(shared: &Shared, orders: &Receiver<Order>) {
    let mut ticks = 0_u32;
    loop {
        match orders.recv_timeout(TICK) {
            Ok(mut order) => {
                // If nobody waits for the answer any more, the child is dropped here and the thread's own end kills it.
                let _ = order.reply.send(order.command.spawn());
            }
            Err(RecvTimeoutError::Timeout) => {
                ticks = ticks.wrapping_add(1);
                shared.observe();
                if ticks.is_multiple_of(TICKS_PER_LOG_LOOK) {
                    shared.bound_logs();
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
