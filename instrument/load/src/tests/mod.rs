//! Whole trials against a server in this process, each with both drivers.

mod again;
mod answers;
mod batches;
mod calls;
mod channels;
mod failures;
mod floods;
mod follow_ups;
mod handed_over;
mod late;
mod pool;
mod receiving;
mod shapes;
mod stopped;
mod toy;
mod transports;
mod troubles;
mod virtual_time;
