//! What goes wrong, and how often.

use std::time::Duration;

use super::checks::Checked;
use super::world::World;

/// One more thing goes wrong, and the next is planned.
pub fn fault(world: &mut World) -> Checked {
    if !world.is_faulty() {
        return Ok(());
    }
    world.next_fault();
    let count = world.nodes.len();
    let one = world.random.index(count);
    let leader = world
        .nodes
        .iter()
        .position(|node| node.replica.as_ref().is_some_and(consensus::Replica::is_leader));
    let whom = if world.random.happens(500) { leader.unwrap_or(one) } else { one };
    match world.random.below(13) {
        0..=2 => {
            let down = world.random.micros(100, 400_000);
            world.crash(whom, down);
        }
        3 => {
            // The power of the whole place is cut.
            for node in 0..count {
                let down = world.random.micros(100, 50_000);
                world.crash(node, down);
            }
        }
        4 => isolate(world, whom),
        5 => {
            for from in 0..count {
                for to in 0..count {
                    if world.random.happens(300) {
                        world.cut(from, to);
                    }
                }
            }
        }
        6 | 7 => world.mend(),
        8 => {
            let lasts = world.random.micros(1_000, 500_000);
            world.pause(whom, lasts);
        }
        9 => {
            let (lost, repeated) = (world.random.below(200), world.random.below(200));
            world.set_network(lost, repeated);
        }
        10 => world.set_network(0, 0),
        11 | 12 if world.shape.changes_members => {
            // Several at once: one is under way, and the others must wait or be refused.
            for _ in 0..=world.random.below(3) {
                if let Some(leader) = leader {
                    world.change_members(leader)?;
                }
            }
        }
        _ => world.crash(whom, Duration::from_micros(100)),
    }
    Ok(())
}

/// No replica hears it, or it hears none, or both.
fn isolate(world: &mut World, node: usize) {
    let ways = world.random.below(3);
    for other in 0..world.nodes.len() {
        if ways != 0 {
            world.cut(node, other);
        }
        if ways != 1 {
            world.cut(other, node);
        }
    }
}
