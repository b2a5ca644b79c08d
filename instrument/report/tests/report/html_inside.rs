//! The page's section on what nodes stamped: numbers, divergence, single transactions, and what could not be read.

use report::{Assets, Detail, Section, svg_figures};

use crate::html_reader::elements;
use crate::html_samples;

/// Claim: the section stands after the client's stages, with a table whose numbers say where they are from, three charts
/// with all of their tables, and the findings in words; a run without node stages has no such section.
#[test]
fn a_section_of_its_own() {
    let page = report::html(&[html_samples::named("inside")], &Assets::built()).expect("a page");
    let all = elements(&page);
    let sections: Vec<&str> = all
        .iter()
        .filter(|it| it.tag.name == "section")
        .filter_map(|it| it.tag.get("id"))
        .collect();
    let place = |id: &str| sections.iter().position(|it| *it == id);
    assert!(place("r0-inside").is_some() && place("r0-inside") < place("r0-nodes"), "{sections:?}");
    let figures: Vec<&str> = all
        .iter()
        .filter(|it| it.tag.name == "figure" && it.inside.iter().any(|of| of.contains("r0-inside")))
        .filter_map(|it| it.tag.get("data-chart"))
        .collect();
    assert_eq!(figures, ["node-stages", "node-stage-times", "waterfall"]);
    let behind = "/settings/0/trials/0/node_stages/gaps/1/behind_max";
    assert!(all.iter().any(|it| it.tag.get("data-k") == Some(behind)));
    for said in [
        "7 of 600 that passed started never passed stored.",
        "stored was most behind: by 150 at 8.00 s.",
        "the last record, 2386 (from 0), is cut off &lt;b&gt;",
        "Throughput by stage inside the nodes",
    ] {
        assert!(page.contains(said), "{said}");
    }
    let inside = page.split("id=\"r0-inside\"").nth(1).and_then(|it| it.split("</section>").next());
    let inside = inside.expect("the section");
    assert!(
        !inside.contains("data-partial") && !inside.contains("A script fills in"),
        "all of it stands here"
    );
    let other = report::html(&[html_samples::named("clean")], &Assets::built()).expect("a page");
    assert!(!other.contains("r0-inside"));
}

/// Claim: what came beyond what went on is an area with a height where a stage stands still, and a flat one where none
/// does; each trace has its line.
#[test]
fn the_divergence_is_shaded() {
    let (result, picture) = html_samples::named("inside");
    let figures = svg_figures(&result, &picture, Detail::Full);
    let named = |name: &str| {
        let is_it = |it: &&report::Figure| it.section == Section::Inside && it.chart == name;
        figures.iter().find(is_it).expect("it is drawn")
    };
    let areas: Vec<f64> = named("node-stages")
        .svg()
        .split('<')
        .filter(|tag| tag.contains("class=\"fbad wash\"") && tag.starts_with("pa"))
        .map(height_of)
        .collect();
    assert_eq!(areas.len(), 3, "between four stages");
    assert!(areas[0] < 1.0 && areas[1] > 20.0, "{areas:?}");
    let waterfall = named("waterfall");
    assert_eq!(waterfall.svg().matches(">tx ").count(), 8);
    assert_eq!(waterfall.table.rows.len(), 32);
    assert!(waterfall.description.contains("9 spans"), "{}", waterfall.description);
    let times = named("node-stage-times");
    assert_eq!(times.table.columns.len(), 9);
}

/// From the highest to the lowest point of a path, which is a point and steps from there.
fn height_of(tag: &str) -> f64 {
    let data = tag.split(" d=\"").nth(1).and_then(|it| it.split('"').next()).expect("a path");
    let apart = data.replace('-', " -").replace(|c: char| c.is_ascii_alphabetic(), " ");
    let numbers: Vec<f64> = apart.split_whitespace().filter_map(|it| it.parse().ok()).collect();
    let (mut y, mut lowest, mut highest) = (0.0_f64, 0.0_f64, 0.0_f64);
    for step in numbers.chunks_exact(2).skip(1) {
        y += step[1];
        lowest = lowest.min(y);
        highest = highest.max(y);
    }
    highest - lowest
}

/// Claim: terminal, Markdown and CSV say the same.
#[test]
fn in_text() {
    let (result, _) = html_samples::named("inside");
    let terminal = report::terminal(&result, report::Style::default());
    let markdown = report::markdown(&result);
    let said = "7 of 600 that passed started never passed stored";
    assert!(terminal.contains(said) && markdown.contains(said), "{terminal}");
    assert!(markdown.contains("**Inside the nodes**"));
    let csv = report::csv(&result);
    let head = csv.lines().next().expect("a head");
    for column in
        ["stage.stored.throughput_min_per_s", "stage.stored.p99_ns", "stage.received.passed"]
    {
        assert!(head.split(',').any(|it| it == column), "{column}");
    }
}
