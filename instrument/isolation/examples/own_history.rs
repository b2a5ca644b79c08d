//! A history of your own: what clients appended and read, and the strongest isolation level that it may be of.
//!
//! `cargo run --release -p isolation --example own_history`

use isolation::{Effect, History, MicroOp, Prefix, Transaction};

fn main() {
    let mut history = History::default();
    let sent = |id, invoked, completed| {
        // Possible where no answer came: it may have its effect at any time, or never.
        Transaction { id, invoked, completed, effect: Effect::Certain }
    };
    // Two clients append to list 0, one after the other; elements count from 0 and are used once.
    history.add(sent(100, 0, 10), &[MicroOp::Append { key: 0, element: 0 }]);
    history.add(sent(101, 20, 30), &[MicroOp::Append { key: 0, element: 1 }]);
    // Then one reads both elements, and another, later, only the first: an answer from old data.
    for (id, at, list) in [(102, 40, &[0, 1][..]), (103, 60, &[0][..])] {
        let found = Some(Prefix::of(list));
        history.add(sent(id, at, at + 10), &[MicroOp::Read { key: 0, found }]);
        history.list(0, Prefix::EMPTY, list);
    }
    let verdict = history.check();
    println!("{:?} at most", verdict.level());
    for ((anomaly, is_real_time), broken) in &verdict.anomalies {
        println!("{anomaly:?}, in real time: {is_real_time}, {} times", broken.count);
        broken.instances.iter().for_each(|instance| println!("  {}", instance.words()));
    }
    assert!(verdict.is_serializable() && !verdict.is_strict_serializable());
}
