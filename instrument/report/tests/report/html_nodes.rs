//! The page's section on nodes: numbers, lanes, what adds up, and what is folded.

use report::Assets;

use crate::html_reader::{Element, elements};
use crate::html_samples;

fn page() -> String {
    report::html(&[html_samples::named("nodes")], &Assets::built()).expect("a page")
}

fn series_of(all: &[Element], name: &str) -> Option<String> {
    let figure =
        all.iter().find(|it| it.tag.get("data-name") == Some(name) && it.tag.name == "figure")?;
    figure.tag.get("data-series").map(str::to_owned)
}

/// Claim: a row a node in their natural order, with what each used and what it says last; a row a metric over all, and
/// one that nobody has declared says so.
#[test]
fn nodes_in_numbers() {
    let all = elements(&page());
    let heads_of = |table: &str| -> Vec<String> {
        let inside = |it: &&Element| it.inside.iter().any(|of| of.contains(table));
        let is_head = |it: &&Element| it.tag.get("scope") == Some("row");
        all.iter().filter(is_head).filter(inside).map(|it| it.text.clone()).collect()
    };
    let tables: Vec<&str> = all.iter().filter_map(|it| it.tag.get("data-name")).collect();
    for name in ["nodes", "metrics-of-nodes"] {
        assert!(tables.contains(&name), "{name}: {tables:?}");
    }
    let rows = heads_of("section#r0-nodes");
    let nodes: Vec<&String> = rows.iter().filter(|it| it.starts_with("node-")).collect();
    assert_eq!(nodes, ["node-0", "node-1", "node-2", "node-3"]);
    assert!(rows.iter().any(|it| it == "pages_per_minute"), "{rows:?}");
    assert!(rows.iter().any(|it| it == "mempool_height (undeclared)"), "{rows:?}");
    let last = "/settings/0/trials/0/resources_last/node-3.turned";
    assert!(all.iter().any(|it| it.tag.get("data-k") == Some(last)));
}

/// Claim: what is declared as progress has lanes, of nodes only, and what adds up has a chart of all together, whatever
/// they are called; the node that was down has a gap in its lane and its lines; what few look for is folded, what nobody
/// has declared says so, and so is folded what is zero.
#[test]
fn nodes_over_time() {
    let page = page();
    let all = elements(&page);
    let lanes = series_of(&all, "lanes-turned-0-default").expect("lanes");
    let expected = ["node-0", "node-1", "node-2", "node-3"].map(|it| format!("{it}.turned"));
    assert_eq!(lanes, expected.join(" "));
    let sum = series_of(&all, "series-desk-sum-0-default");
    assert_eq!(sum.as_deref(), Some("nodes.sum.desk"));
    let each = series_of(&all, "series-desk-0-default").expect("a chart");
    assert!(each.starts_with("node-0.desk") && each.contains("nodes.mean."), "{each}");
    let folded: Vec<&str> = page.split("<details class=\"quiet\">").skip(1).collect();
    let more =
        "<summary>More of what nodes say of themselves: Late votes, Mempool_height (undeclared)<";
    assert!(folded[0].starts_with(more), "{}", &folded[0][..199]);
    assert!(
        folded[1].starts_with("<summary>Zero throughout: Is catching up<"),
        "{}",
        &folded[1][..99]
    );
    let figure = page.split("data-chart=\"lanes\"").nth(1).expect("a figure");
    let svg = figure.split("</svg>").next().expect("its end");
    // Three lanes without a break, and one that is there, gone, far behind, a little behind, and there again.
    let count = |class: &str| svg.matches(&format!("class=\"{class}\"")).count() - 1;
    assert_eq!((count("f2"), count("f4"), count("f1")), (5, 1, 1), "{svg}");
}
