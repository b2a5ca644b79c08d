//! Graphs in two arrays, and their strongly connected components.

use crate::{at, small};

/// What tells its edges: the same ones each time that it is asked.
pub(crate) trait Edges {
    /// Tells each edge, from where and to where.
    fn each(&self, emit: impl FnMut(u32, u32));
}

/// Where each node's edges begin, and where they lead.
pub(crate) struct Graph {
    starts: Vec<u32>,
    to: Vec<u32>,
}

impl Graph {
    /// A graph of `nodes` nodes. The edges are asked for twice, to count and to keep them, so that no list of them is
    /// ever made.
    pub(crate) fn new(nodes: usize, edges: &impl Edges) -> Self {
        let mut starts = vec![0_u32; nodes + 1];
        edges.each(|from, _| starts[at(from) + 1] += 1);
        for node in 0..nodes {
            let before = starts[node];
            starts[node + 1] =
                starts[node + 1].checked_add(before).expect("a graph has fewer than 2³² edges");
        }
        let mut to = vec![0_u32; at(starts[nodes])];
        // Each node's beginning moves as it is filled; afterwards all stand one node too early.
        edges.each(|from, target| {
            let place = &mut starts[at(from)];
            to[at(*place)] = target;
            *place += 1;
        });
        starts.copy_within(0..nodes, 1);
        starts[0] = 0;
        Self { starts, to }
    }

    fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// The strongly connected components of two nodes and more. In linear time and without recursion, after D. Pearce,
    /// A space-efficient algorithm for finding strongly connected components (Information Processing Letters 116,
    /// 2016). Nodes are begun with from the last one on: where they stand in the order of time most edges lead to what
    /// has been done with, so that no path grows long.
    pub(crate) fn components(&self) -> Vec<Vec<u32>> {
        let mut search = Search {
            graph: self,
            rank: vec![0; self.nodes()],
            count: 0,
            path: Vec::new(),
            open: Vec::new(),
            found: Vec::new(),
        };
        for node in (0..small(self.nodes())).rev() {
            if search.rank[at(node)] == 0 {
                search.from(node);
            }
        }
        search.found
    }
}

/// The rank of a node whose component is known.
const DONE: u32 = u32::MAX;

struct Search<'a> {
    graph: &'a Graph,
    /// In which order nodes were met, lowered to that of the earliest that they lead back to; 0 = not met.
    rank: Vec<u32>,
    count: u32,
    path: Vec<Visit>,
    /// Met, left, and of a component whose first node is not left yet.
    open: Vec<u32>,
    found: Vec<Vec<u32>>,
}

/// A node on the path.
struct Visit {
    node: u32,
    /// Its next edge.
    next: u32,
    /// Whether it leads back to nothing before it, so far.
    is_first: bool,
}

impl Search<'_> {
    fn from(&mut self, start: u32) {
        self.enter(start);
        while let Some(visit) = self.path.last_mut() {
            let node = at(visit.node);
            if visit.next == self.graph.starts[node + 1] {
                self.leave();
                continue;
            }
            let target = self.graph.to[at(visit.next)];
            let rank = self.rank[at(target)];
            if rank == 0 {
                self.enter(target);
                continue;
            }
            visit.next += 1;
            if rank < self.rank[node] {
                self.rank[node] = rank;
                visit.is_first = false;
            }
        }
    }

    fn enter(&mut self, node: u32) {
        self.count += 1;
        self.rank[at(node)] = self.count;
        self.path.push(Visit { node, next: self.graph.starts[at(node)], is_first: true });
    }

    /// The node stays the target of its parent's edge, which is then looked at again.
    fn leave(&mut self) {
        let Some(Visit { node, is_first, .. }) = self.path.pop() else { return };
        let rank = self.rank[at(node)];
        if !is_first {
            self.open.push(node);
            return;
        }
        let members = self.open.iter().rev().take_while(|other| self.rank[at(**other)] >= rank);
        let first = self.open.len() - members.count();
        self.rank[at(node)] = DONE;
        if first < self.open.len() {
            let mut component = self.open.split_off(first);
            component.iter().for_each(|other| self.rank[at(*other)] = DONE);
            component.push(node);
            self.found.push(component);
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Seed;

    use super::*;

    struct List(Vec<(u32, u32)>);

    impl Edges for List {
        fn each(&self, mut emit: impl FnMut(u32, u32)) {
            self.0.iter().for_each(|(from, to)| emit(*from, *to));
        }
    }

    /// Claim: components are the sets of nodes that reach each other, as the closure of all paths says, on three
    /// thousand random graphs.
    #[test]
    fn components_are_what_reaches_each_other() {
        let mut rng = Seed(3).rng();
        for _ in 0..3_000 {
            let nodes = 1 + rng.below(9);
            let below =
                |rng: &mut model::seed::Rng| u32::try_from(rng.below(nodes)).expect("small");
            let edges: Vec<(u32, u32)> =
                (0..rng.below(16)).map(|_| (below(&mut rng), below(&mut rng))).collect();
            let nodes = usize::try_from(nodes).expect("small");
            let mut reaches = vec![vec![false; nodes]; nodes];
            edges.iter().for_each(|(from, to)| reaches[at(*from)][at(*to)] = true);
            for by in 0..nodes {
                for from in 0..nodes {
                    for to in 0..nodes {
                        reaches[from][to] |= reaches[from][by] && reaches[by][to];
                    }
                }
            }
            let mut expected: Vec<Vec<u32>> = (0..nodes)
                .map(|one| {
                    let with = |other: &usize| {
                        *other == one || reaches[one][*other] && reaches[*other][one]
                    };
                    (0..nodes).filter(with).map(small).collect::<Vec<_>>()
                })
                .filter(|component| component.len() > 1)
                .collect();
            expected.sort();
            expected.dedup();
            let mut found = Graph::new(nodes, &List(edges)).components();
            found.iter_mut().for_each(|component| component.sort_unstable());
            found.sort();
            assert_eq!(found, expected);
        }
    }

    /// Claim: a cycle through a million nodes is found, so that no call goes as deep as a path.
    #[test]
    fn long_cycles_are_found() {
        let nodes = 1_000_000;
        let around = List((0..nodes).map(|node| (node, (node + 1) % nodes)).collect());
        let found = Graph::new(at(nodes), &around).components();
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [at(nodes)]);
    }
}
