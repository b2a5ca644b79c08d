//! Several machines of one node: each on a thread of its own, joined by queues that have a bound.
//!
//! What a step passes leaves at the end of its turn, all of it at once, and wakes the machine that it goes to at
//! most once; so does room that has come free. A machine is never made to wait for another: a full queue refuses.

use std::mem;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use clock::Clock;
use rustix::event::{EventfdFlags, eventfd};

use super::{Facts, Shell, ShellError, Until};
use crate::{Node, Outputs};

/// One machine of a node, and what it has to itself: listeners, peers, logs.
pub struct Machine<'a, M> {
    name: &'static str,
    shell: Shell,
    node: &'a mut (dyn Node<M> + Send),
}

impl<'a, M> Machine<'a, M> {
    /// A machine; its thread has the name.
    pub fn new(name: &'static str, shell: Shell, node: &'a mut (dyn Node<M> + Send)) -> Self {
        Self { name, shell, node }
    }
}

/// Runs the machines of a node until one of `until` happens, or one of them ends; then all end. Between each two
/// at most `queue_max` messages wait. Gives what each run came to, in the order given.
///
/// # Errors
/// When the kernel refuses what a machine cannot do without, or what one keeps cannot be kept.
///
/// # Panics
/// If a machine panics; the others are ended before.
pub fn run_machines<M: Send>(
    machines: Vec<Machine<'_, M>>,
    queue_max: usize,
    clock: Clock,
    until: &[Until],
) -> Result<Vec<Facts>, ShellError> {
    let joint = Arc::new(Joint::new(machines.len(), queue_max)?);
    let run = |index: usize, machine: Machine<'_, M>, until: &[Until]| {
        let _ending = Ending(&joint);
        let post = Post::new(Arc::clone(&joint), index);
        machine.shell.run_machine(machine.node, Some(post), clock, until)
    };
    thread::scope(|scope| {
        let mut machines = machines.into_iter().enumerate();
        let first = machines.next();
        let started: Result<Vec<_>, _> = machines
            .map(|(index, machine)| {
                let thread = thread::Builder::new().name(machine.name.to_owned());
                thread.spawn_scoped(scope, move || run(index, machine, &[]))
            })
            .collect();
        let started = started.map_err(|error| {
            joint.end();
            ShellError::Thread(error)
        })?;
        // The caller's own thread runs the first, which looks for the end of all.
        let mut ended: Vec<_> =
            first.into_iter().map(|(index, machine)| run(index, machine, until)).collect();
        for thread in started {
            ended.push(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        ended.into_iter().collect()
    })
}

/// Ends all machines when one has ended, however that came.
struct Ending<'a, M>(&'a Joint<M>);

impl<M> Drop for Ending<'_, M> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// What all machines see.
struct Joint<M> {
    boxes: Vec<Mailbox<M>>,
    queue_max: usize,
    is_ending: AtomicBool,
}

/// What comes to one machine.
struct Mailbox<M> {
    /// Readable when there is something to look at.
    told: OwnedFd,
    messages: Mutex<Vec<(usize, M)>>,
    /// By sender: messages that were taken out, and that it does not know of yet.
    freed: Vec<AtomicUsize>,
    /// By sender: whether it wants to know.
    is_awaited: Vec<AtomicBool>,
}

impl<M> Joint<M> {
    fn new(count: usize, queue_max: usize) -> Result<Self, ShellError> {
        let mailbox = |_| {
            let told = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
            Ok(Mailbox {
                told: told.map_err(ShellError::Kernel)?,
                messages: Mutex::new(Vec::new()),
                freed: (0..count).map(|_| AtomicUsize::new(0)).collect(),
                is_awaited: (0..count).map(|_| AtomicBool::new(false)).collect(),
            })
        };
        let boxes = (0..count).map(mailbox).collect::<Result<_, ShellError>>()?;
        Ok(Self { boxes, queue_max, is_ending: AtomicBool::new(false) })
    }

    fn end(&self) {
        if !self.is_ending.swap(true, Ordering::SeqCst) {
            self.boxes.iter().for_each(Mailbox::tell);
        }
    }
}

impl<M> Mailbox<M> {
    fn tell(&self) {
        let _ = rustix::io::write(&self.told, &1_u64.to_ne_bytes());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(usize, M)>> {
        // Whoever panicked holding it ends all machines by that.
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The queues as one machine sees them.
pub(super) struct Post<M> {
    joint: Arc<Joint<M>>,
    own: usize,
    /// By receiver: how many more its queue takes from here.
    room: Vec<usize>,
    /// By receiver: what is on its way to its queue.
    leaving: Vec<Vec<(usize, M)>>,
    arrived: Vec<(usize, M)>,
    /// By sender: how many of its messages have arrived since room was given back.
    taken: Vec<usize>,
}

impl<M> Post<M> {
    fn new(joint: Arc<Joint<M>>, own: usize) -> Self {
        let count = joint.boxes.len();
        let room = |machine| if machine == own { 0 } else { joint.queue_max };
        Self {
            own,
            room: (0..count).map(room).collect(),
            leaving: (0..count).map(|_| Vec::new()).collect(),
            arrived: Vec::new(),
            taken: vec![0; count],
            joint,
        }
    }

    fn mailbox(&self) -> &Mailbox<M> {
        &self.joint.boxes[self.own]
    }

    pub(super) fn told(&self) -> &OwnedFd {
        &self.mailbox().told
    }

    /// Tells a new machine how much it can pass.
    pub(super) fn begin(&self, out: &mut Outputs<M>) {
        self.room.iter().enumerate().for_each(|(machine, room)| out.set_room(machine, *room));
    }

    pub(super) fn is_ending(&self) -> bool {
        self.joint.is_ending.load(Ordering::SeqCst)
    }

    /// Puts what the machine has passed into the queues.
    pub(super) fn pass(&mut self, out: &mut Outputs<M>) {
        for (machine, message) in out.take_passes() {
            self.room[machine] -= 1;
            self.leaving[machine].push((self.own, message));
        }
        for (machine, leaving) in self.leaving.iter_mut().enumerate() {
            if leaving.is_empty() {
                continue;
            }
            let receiver = &self.joint.boxes[machine];
            let mut messages = receiver.lock();
            let is_first = messages.is_empty();
            messages.append(leaving);
            drop(messages);
            if is_first {
                receiver.tell();
            }
            let freed = &receiver.freed[self.own];
            if self.room[machine] > 0 {
                self.room[machine] += freed.swap(0, Ordering::SeqCst);
                out.set_room(machine, self.room[machine]);
            } else {
                receiver.is_awaited[self.own].store(true, Ordering::SeqCst);
                // No message will tell of room that came free just before.
                if freed.load(Ordering::SeqCst) > 0 {
                    self.joint.boxes[self.own].tell();
                }
            }
        }
    }

    /// Takes what has arrived.
    pub(super) fn take(&mut self) {
        let _ = rustix::io::read(self.told(), &mut [0; 8]);
        let Self { joint, own, arrived, .. } = self;
        mem::swap(&mut *joint.boxes[*own].lock(), arrived);
    }

    /// The messages that have arrived, in order of each sender.
    pub(super) fn messages(&mut self) -> impl Iterator<Item = (usize, M)> {
        for (from, _) in &self.arrived {
            self.taken[*from] += 1;
        }
        self.arrived.drain(..)
    }

    /// Gives back the room of the messages that the machine has seen.
    pub(super) fn free(&mut self) {
        for (from, taken) in self.taken.iter_mut().enumerate().filter(|(_, taken)| **taken > 0) {
            let mailbox = &self.joint.boxes[self.own];
            mailbox.freed[from].fetch_add(mem::take(taken), Ordering::SeqCst);
            if mailbox.is_awaited[from].swap(false, Ordering::SeqCst) {
                self.joint.boxes[from].tell();
            }
        }
    }

    /// Collects room that has come free; gives the machines whose queues had none.
    pub(super) fn room(&mut self, out: &mut Outputs<M>) -> Vec<usize> {
        let mut told = Vec::new();
        for (machine, room) in self.room.iter_mut().enumerate() {
            let freed = self.joint.boxes[machine].freed[self.own].swap(0, Ordering::SeqCst);
            if freed > 0 {
                if *room == 0 {
                    told.push(machine);
                }
                *room += freed;
                out.set_room(machine, *room);
            }
        }
        told
    }
}
