//! The cycles among transactions: which weaker promises they break, and the shortest one that shows it.
//!
//! Only what lies in a component of the whole graph is looked at. Which anomalies a component has is asked of graphs with
//! fewer kinds of edges, from the gravest on, each without real time and with it; and of each component the gravest is
//! shown by a short cycle, found breadth first. A cycle is named by its own edges, so that a name never claims more than
//! what is shown.

use std::collections::VecDeque;

use crate::direct::Reads;
use crate::edges::{Kind, Relations};
use crate::graph::{Edges, Graph};
use crate::history::{Effect, History, MicroOp};
use crate::prefix::{Element, Key};
use crate::verdict::{Anomaly, Cycle, Instance, Relation, Step, Verdict};
use crate::versions::Versions;
use crate::{NONE, at, small};

/// Edges looked at to make one cycle shorter.
const VISITS_MAX: usize = 4_000_000;
/// Edges from which a cycle is looked for in one component.
const STARTS_MAX: usize = 512;
/// Components of one rung that are shown by a cycle; of the others only the number is known.
const SHOWN_MAX: usize = 50;

/// Looks for cycles; finds and names those of each component of the graph.
pub(crate) fn look(history: &History, versions: &Versions, reads: &Reads, verdict: &mut Verdict) {
    let relations = Relations::new(history, versions, reads);
    let components = Graph::new(relations.nodes(), &relations).components();
    if !components.is_empty() {
        explain(&relations, components, verdict);
    }
}

fn explain(relations: &Relations<'_>, components: Vec<Vec<u32>>, verdict: &mut Verdict) {
    let search = Search::new(relations, components);
    // The gravest rung that was found at a transaction, without real time and with it.
    let mut lowest = vec![[Rung::ALL.len(); 2]; search.nodes.len()];
    for is_real_time in [false, true] {
        for (depth, rung) in Rung::ALL.into_iter().enumerate() {
            search.rung(Graphs { rung, is_real_time }, depth, &mut lowest, verdict);
        }
    }
}

/// Anomalies that are asked for together, from the gravest on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rung {
    /// Cycles of ww.
    G0,
    /// Those that have a wr.
    G1c,
    /// Those that have rw, but no two behind each other: what snapshot isolation forbids.
    Snapshot,
    /// All others.
    G2,
}

impl Rung {
    const ALL: [Self; 4] = [Self::G0, Self::G1c, Self::Snapshot, Self::G2];

    /// The kind of edge that such a cycle has.
    const fn needs(self) -> Kind {
        match self {
            Self::G0 => Kind::Ww,
            Self::G1c => Kind::Wr,
            Self::Snapshot | Self::G2 => Kind::Rw,
        }
    }

    /// What is counted where no cycle is shown.
    const fn anomaly(self) -> Anomaly {
        match self {
            Self::G0 => Anomaly::G0,
            Self::G1c => Anomaly::G1c,
            Self::Snapshot => Anomaly::GSingle,
            Self::G2 => Anomaly::G2Item,
        }
    }
}

/// A part of the graph: what a cycle may be made of.
#[derive(Clone, Copy)]
struct Graphs {
    rung: Rung,
    is_real_time: bool,
}

impl Graphs {
    /// Where an edge leads from a layer: 1 behind an rw that no other may follow, else 0.
    const fn layer(self, kind: Kind, layer: u32) -> Option<u32> {
        match (self.rung, kind) {
            (_, Kind::RealTime) => {
                if self.is_real_time {
                    Some(0)
                } else {
                    None
                }
            }
            (_, Kind::Ww)
            | (Rung::G1c | Rung::Snapshot | Rung::G2, Kind::Wr)
            | (Rung::G2, Kind::Rw | Kind::OfCrowd) => Some(0),
            (Rung::Snapshot, Kind::Rw) => {
                if layer == 0 {
                    Some(1)
                } else {
                    None
                }
            }
            (Rung::Snapshot, Kind::OfCrowd) => Some(layer),
            (Rung::G0 | Rung::G1c, _) => None,
        }
    }
}

/// An edge between nodes of components.
#[derive(Clone, Copy)]
struct Edge {
    from: u32,
    to: u32,
    kind: Kind,
}

/// The components of the whole graph.
struct Search<'a> {
    relations: &'a Relations<'a>,
    /// Which node each of them is in the whole graph.
    nodes: Vec<u32>,
    /// In the order of where they begin.
    edges: Vec<Edge>,
    starts: Vec<u32>,
}

/// The states of a search: a node and a layer.
struct States<'a>(&'a Search<'a>, Graphs);

impl Edges for States<'_> {
    fn each(&self, mut emit: impl FnMut(u32, u32)) {
        for edge in &self.0.edges {
            for layer in 0..2 {
                if let Some(to) = self.1.layer(edge.kind, layer) {
                    emit(2 * edge.from + layer, 2 * edge.to + to);
                }
            }
        }
    }
}

impl<'a> Search<'a> {
    fn new(relations: &'a Relations<'a>, components: Vec<Vec<u32>>) -> Self {
        let mut nodes: Vec<u32> = Vec::new();
        // By node of the whole graph: which it is here, and in which component.
        let mut here = vec![(NONE, NONE); relations.nodes()];
        for (component, members) in components.into_iter().enumerate() {
            for node in members {
                here[at(node)] = (small(nodes.len()), small(component));
                nodes.push(node);
            }
        }
        let mut edges = Vec::new();
        relations.all(|from, to, kind| {
            let ((from, one), (to, other)) = (here[at(from)], here[at(to)]);
            if one == other && one != NONE {
                edges.push(Edge { from, to, kind });
            }
        });
        edges.sort_by_key(|edge| edge.from);
        let mut starts = vec![0; nodes.len() + 1];
        edges.iter().for_each(|edge| starts[at(edge.from) + 1] += 1);
        for node in 0..nodes.len() {
            starts[node + 1] += starts[node];
        }
        Self { relations, nodes, edges, starts }
    }

    fn is_transaction(&self, node: u32) -> bool {
        at(self.nodes[at(node)]) < self.relations.transactions()
    }

    fn rung(&self, graphs: Graphs, depth: usize, lowest: &mut [[usize; 2]], verdict: &mut Verdict) {
        let components = Graph::new(2 * self.nodes.len(), &States(self, graphs)).components();
        let mut component_of = vec![NONE; 2 * self.nodes.len()];
        for (number, members) in components.iter().enumerate() {
            members.iter().for_each(|state| component_of[at(*state)] = small(number));
        }
        let mut begin: Vec<Vec<Edge>> = vec![Vec::new(); components.len()];
        for edge in self.edges.iter().filter(|edge| edge.kind == graphs.rung.needs()) {
            let Some(layer) = graphs.layer(edge.kind, 0) else { continue };
            let component = component_of[at(2 * edge.from)];
            if component != NONE && component == component_of[at(2 * edge.to + layer)] {
                begin[at(component)].push(*edge);
            }
        }
        let mut walk = Walk::new(self, graphs);
        let mut shown = 0;
        for (members, begin) in components.iter().zip(begin).filter(|(_, begin)| !begin.is_empty())
        {
            let nodes =
                || members.iter().map(|state| state / 2).filter(|n| self.is_transaction(*n));
            let is_known = |node: u32| {
                let [plain, timed] = lowest[at(node)];
                if graphs.is_real_time { plain <= depth || timed < depth } else { plain < depth }
            };
            if nodes().any(is_known) {
                continue;
            }
            nodes().for_each(|node| lowest[at(node)][usize::from(graphs.is_real_time)] = depth);
            shown += 1;
            match (shown <= SHOWN_MAX).then(|| walk.shortest(begin, &component_of)).flatten() {
                Some(edges) => {
                    let cycle = self.cycle(&edges);
                    let named = (cycle.anomaly(), cycle.is_real_time());
                    verdict.add(named.0, named.1, Instance::Cycle(cycle));
                }
                None => verdict.count(graphs.rung.anomaly(), graphs.is_real_time),
            }
        }
    }

    /// A cycle of transactions, out of one that goes by moments and crowds.
    fn cycle(&self, edges: &[Edge]) -> Cycle {
        let mut from = edges[0].from;
        let mut steps = Vec::new();
        for edge in edges.iter().filter(|edge| self.is_transaction(edge.to)) {
            let (one, other) = (self.nodes[at(from)], self.nodes[at(edge.to)]);
            let ids = &self.relations.history.ids;
            let because = self.because(one, other, edge.kind);
            steps.push(Step { from: ids[at(one)], to: ids[at(other)], because });
            from = edge.to;
        }
        Cycle(steps)
    }

    fn because(&self, from: u32, to: u32, kind: Kind) -> Relation {
        let history = self.relations.history;
        match kind {
            Kind::Ww => self.appended(from, to),
            Kind::Wr => self.was_read(from, to),
            Kind::Rw | Kind::OfCrowd => self.missed(from, to),
            Kind::RealTime => Relation::WasAnswered {
                completed: history.completed[at(from)],
                invoked: history.invoked[at(to)],
            },
        }
    }

    fn appended(&self, from: u32, to: u32) -> Relation {
        let versions = self.relations.versions;
        let made_by = &versions.made_by;
        let appends = |(key, then): (Key, Element)| {
            let (first, last) = versions.slots(key)?;
            let (before, then) = if versions.length(then) == 0 {
                (last, then)
            } else {
                // Not by where the element stands first: it may stand there twice.
                let is_to = |slot: &u32| made_by[at(*slot)] == to && made_by[at(*slot - 1)] == from;
                let slot = (first + 1..=last).find(is_to)?;
                (slot - 1, versions.elements[at(slot)])
            };
            let is_it = made_by[at(before)] == from;
            is_it.then(|| Relation::Appended { key, first: self.element(before), then })
        };
        let found = self.appends_of(to).find_map(appends);
        found.expect("an edge is made of an append")
    }

    fn was_read(&self, from: u32, to: u32) -> Relation {
        let made_by = &self.relations.versions.made_by;
        let read = |(key, _, slot): (Key, u32, u32)| {
            let is_it = made_by[at(slot)] == from;
            is_it.then(|| Relation::WasRead { key, element: self.element(slot) })
        };
        let found = self.relations.outward(to).find_map(read);
        found.expect("an edge is made of a read")
    }

    fn missed(&self, from: u32, to: u32) -> Relation {
        let versions = self.relations.versions;
        let missed = |(key, len, slot): (Key, u32, u32)| {
            let next = versions.ended_by[at(slot)];
            let element = if next == NONE {
                let unseen = |(other, element): &(Key, Element)| {
                    *other == key && versions.length(*element) == 0
                };
                self.appends_of(to).find(unseen)?.1
            } else if next == to {
                let (_, last) = versions.slots(key)?;
                let slot = (slot + 1..=last).find(|slot| versions.made_by[at(*slot)] == to)?;
                versions.elements[at(slot)]
            } else {
                return None;
            };
            Some(Relation::Missed { key, len, element })
        };
        let found = self.relations.outward(from).find_map(missed);
        found.expect("an edge is made of a read that misses something")
    }

    /// The element that made a version: not one that was refused and stands behind it.
    fn element(&self, slot: u32) -> Element {
        let versions = self.relations.versions;
        let mut slot = at(slot);
        while slot > 0 && versions.made_by[slot - 1] == versions.made_by[slot] {
            slot -= 1;
        }
        versions.elements[slot]
    }

    fn appends_of(&self, place: u32) -> impl Iterator<Item = (Key, Element)> {
        self.relations.history.ops_of(place).1.iter().filter_map(|op| match op.get() {
            MicroOp::Append { key, element } => Some((key, element)),
            MicroOp::Read { .. } => None,
        })
    }
}

/// A search breadth first; its memory is used again.
struct Walk<'a> {
    search: &'a Search<'a>,
    graphs: Graphs,
    /// By state: how many transactions there are on the way to it; [`NONE`] = not reached.
    far: Vec<u32>,
    /// The edge that leads to it, and from which state.
    by: Vec<(u32, u32)>,
    reached: Vec<u32>,
    visits: usize,
}

impl<'a> Walk<'a> {
    fn new(search: &'a Search<'a>, graphs: Graphs) -> Self {
        let states = 2 * search.nodes.len();
        let (far, by) = (vec![NONE; states], vec![(NONE, NONE); states]);
        Self { search, graphs, far, by, reached: Vec::new(), visits: 0 }
    }

    /// The shortest cycle that begins with one of these edges, as far as the search goes. It goes first where time runs
    /// back the most: what was read too late has a short way home.
    fn shortest(&mut self, mut begin: Vec<Edge>, component_of: &[u32]) -> Option<Vec<Edge>> {
        begin.sort_by_key(|edge| std::cmp::Reverse(self.search.backwards(edge)));
        self.visits = 0;
        let mut best: Option<(u32, Vec<Edge>)> = None;
        for edge in begin.into_iter().take(STARTS_MAX) {
            let limit = best.as_ref().map_or(NONE, |(length, _)| *length);
            if limit == 2 || best.is_some() && self.visits > VISITS_MAX {
                break;
            }
            if let Some(found) = self.around(edge, limit, component_of) {
                best = Some(found);
            }
        }
        best.map(|(_, edges)| edges)
    }

    /// The shortest cycle that begins with an edge, if it has fewer than `limit` transactions.
    fn around(
        &mut self,
        first: Edge,
        limit: u32,
        component_of: &[u32],
    ) -> Option<(u32, Vec<Edge>)> {
        for state in self.reached.drain(..) {
            self.far[at(state)] = NONE;
        }
        let home = 2 * first.from;
        let start = 2 * first.to + self.graphs.layer(first.kind, 0)?;
        let mut queue = VecDeque::new();
        self.reach(start, u32::from(self.search.is_transaction(first.to)), (NONE, NONE));
        queue.push_back(start);
        while let Some(state) = queue.pop_front() {
            let far = self.far[at(state)];
            if state == home {
                return Some((far, self.way(first, home, start)));
            }
            let (node, layer) = (at(state / 2), state % 2);
            for number in self.search.starts[node]..self.search.starts[node + 1] {
                self.visits += 1;
                let edge = self.search.edges[at(number)];
                let Some(layer) = self.graphs.layer(edge.kind, layer) else { continue };
                let (next, step) = (2 * edge.to + layer, self.search.is_transaction(edge.to));
                let further = far + u32::from(step);
                if component_of[at(next)] != component_of[at(home)]
                    || further >= self.far[at(next)].min(limit)
                {
                    continue;
                }
                self.reach(next, further, (number, state));
                if step {
                    queue.push_back(next);
                } else {
                    queue.push_front(next);
                }
            }
        }
        None
    }

    fn reach(&mut self, state: u32, far: u32, by: (u32, u32)) {
        if self.far[at(state)] == NONE {
            self.reached.push(state);
        }
        (self.far[at(state)], self.by[at(state)]) = (far, by);
    }

    fn way(&self, first: Edge, home: u32, start: u32) -> Vec<Edge> {
        let mut edges = Vec::new();
        let mut state = home;
        while state != start {
            let (number, before) = self.by[at(state)];
            edges.push(self.search.edges[at(number)]);
            state = before;
        }
        edges.push(first);
        edges.reverse();
        edges
    }
}

impl Search<'_> {
    /// By how much an edge leads to what had been answered before; moments, crowds and the unanswered come last.
    fn backwards(&self, edge: &Edge) -> i64 {
        let history = self.relations.history;
        let (from, to) = (at(self.nodes[at(edge.from)]), at(self.nodes[at(edge.to)]));
        match (history.invoked.get(from), history.completed.get(to)) {
            (Some(invoked), Some(completed)) if history.effects[to] == Effect::Certain => {
                invoked.saturating_sub(*completed)
            }
            _ => i64::MIN,
        }
    }
}
