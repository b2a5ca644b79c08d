//! The list-append checker: against a search of all orders, anomaly by anomaly, and on long histories that were tampered
//! with.

mod anomalies;
mod histories;
mod oracle;
mod porcupine;
