//! The SVG figures: what every one of them must keep, for runs of every kind, and three that a person has looked at.
//!
//! With `ASSAY_FIGURES=FOLDER` the study's figures are written there, to be looked at.

use std::collections::BTreeSet;

use report::{Detail, Figure, Section, svg_figures};

use crate::figure_samples::{all, study};
use crate::golden;
use crate::xml::{Element, read};

fn of_study() -> Vec<Figure> {
    let (result, picture) = study();
    svg_figures(&result, &picture, Detail::Full)
}

/// Claim: three figures of the study are the ones that were looked at.
#[test]
fn the_study_is_drawn_as_it_was() {
    let figures = of_study();
    if let Some(folder) = std::env::var_os("ASSAY_FIGURES") {
        for figure in &figures {
            let file = std::path::Path::new(&folder).join(format!("{}.svg", figure.name));
            std::fs::write(file, figure.svg()).expect("the folder can be written");
        }
    }
    for name in ["hdr", "percentiles-rate", "rates-7-set-dapp-rate-40pers"] {
        let figure = figures.iter().find(|figure| figure.name == name).expect("it is drawn");
        golden::check(&format!("{name}.svg"), &figure.svg());
    }
}

/// Claim: a study has every chart: a heat table, a chart of each kind for each set, all time charts for each trial.
#[test]
fn a_study_has_every_chart() {
    let figures = of_study();
    let count = |section: Section, start: &str| {
        let of = |figure: &&Figure| figure.section == section && figure.name.starts_with(start);
        figures.iter().filter(of).count()
    };
    assert_eq!(count(Section::Saturation, "heat"), 1);
    assert_eq!(count(Section::Saturation, "latency-throughput"), 3);
    assert_eq!(count(Section::Saturation, "goodput-offered"), 3);
    assert_eq!(count(Section::Saturation, "percentiles-rate"), 1);
    assert_eq!(count(Section::Distribution, ""), 3);
    for start in ["latency-", "rates-", "outstanding-"] {
        assert_eq!(count(Section::Time, start), 15, "{start}");
    }
    assert_eq!(count(Section::Stages, "stages-"), 15);
    assert_eq!(count(Section::Nodes, "lag-"), 15);
    let of_first: Vec<&str> = figures
        .iter()
        .filter(|figure| figure.trial == Some(0) && figure.section == Section::Nodes)
        .map(|figure| figure.name.split("-0-").next().expect("a name"))
        .collect();
    // Was it the tool? Twenty nodes are two charts: sixteen lines are what one can tell apart.
    let order = [
        "series-cpu_cores",
        "lag",
        "series-steal_share",
        "series-run_queue",
        "series-memory_available_bytes",
        "series-rss_bytes-1",
        "series-rss_bytes-2",
    ];
    assert_eq!(of_first, order);
}

/// Claim: whatever the run, every figure is well-formed XML with a title and a description, has coordinates that are
/// numbers, a name of its own, and comes out the same again.
#[test]
fn every_figure_is_sound() {
    for (name, result, picture) in all() {
        let figures = svg_figures(&result, &picture, Detail::Full);
        let mut names = BTreeSet::new();
        for (figure, again) in figures.iter().zip(svg_figures(&result, &picture, Detail::Full)) {
            let place = format!("{name}: {}", figure.name);
            assert_eq!(figure.svg(), again.svg(), "{place}");
            assert!(names.insert(figure.name.clone()), "{place} is there twice");
            assert!(figure.name.len() < 160 && !figure.name.contains('/'), "{place}");
            for svg in [figure.svg().as_str(), figure.svg_inline().as_str()] {
                check_svg(&place, figure, svg);
            }
            assert!(
                figure.svg().contains("<style>") && !figure.svg_inline().contains("<style>"),
                "{place}"
            );
            for row in &figure.table.rows {
                assert_eq!(row.len(), figure.table.columns.len(), "{place}");
            }
            let other = figure.clone().of_run(3);
            assert_eq!(other.id, format!("r3-{}", figure.id));
            check_svg(&place, &other, &other.svg());
            if figure.trial.is_some() {
                assert!(figure.svg().len() < 40_000, "{place} has {} bytes", figure.svg().len());
            }
        }
    }
}

fn check_svg(place: &str, figure: &Figure, svg: &str) {
    let elements = read(svg).unwrap_or_else(|error| panic!("{place}: {error}\n{svg}"));
    let root = &elements[0];
    assert_eq!((root.name.as_str(), root.attribute("role")), ("svg", Some("img")), "{place}");
    let labelled = root.attribute("aria-labelledby").unwrap_or_default();
    assert_eq!(labelled, format!("{0}-t {0}-d", figure.id), "{place}");
    let ids: Vec<&str> = elements.iter().filter_map(|element| element.attribute("id")).collect();
    assert_eq!(ids.join(" "), labelled, "{place}");
    for (tag, text) in [("title", &figure.title), ("desc", &figure.description)] {
        let found = elements.iter().find(|element| element.name == tag).expect("it is there");
        assert!(!found.text.trim().is_empty() && !text.trim().is_empty(), "{place}: {tag}");
    }
    for element in &elements {
        for (key, value) in &element.attributes {
            let numeric = ["x", "y", "width", "height", "cx", "cy", "r", "d", "viewBox"];
            if numeric.contains(&key.as_str()) {
                let is_number = |c: char| c.is_ascii_digit() || " .-MlLhvz".contains(c);
                assert!(value.chars().all(is_number), "{place}: {key}={value}");
            }
        }
        assert!(!element.text.contains("NaN"), "{place}: {}", element.text);
        assert!(element.name != "script" && !element.text.contains('\u{1b}'), "{place}");
    }
}

/// Claim: no label of an axis, legend or cell lies on another.
#[test]
fn labels_do_not_lie_on_each_other() {
    let unusual = ["evil texts", "largest numbers"];
    for (name, result, picture) in all() {
        if unusual.contains(&name.as_str()) {
            continue;
        }
        for figure in svg_figures(&result, &picture, Detail::Full) {
            let elements = read(&figure.svg_inline()).expect("well-formed");
            let frames: Vec<(f64, f64, f64, f64, String)> =
                elements.iter().filter(|element| element.name == "text").map(frame).collect();
            for (index, a) in frames.iter().enumerate() {
                for b in &frames[index + 1..] {
                    let is_apart = a.2 <= b.0 || b.2 <= a.0 || a.3 <= b.1 || b.3 <= a.1;
                    assert!(is_apart, "{name}: {}: `{}` lies on `{}`", figure.name, a.4, b.4);
                }
            }
        }
    }
}

/// The frame of a text, a little narrower than common fonts set it.
fn frame(text: &Element) -> (f64, f64, f64, f64, String) {
    let number = |key: &str| -> f64 {
        text.attribute(key).and_then(|value| value.parse().ok()).expect("a coordinate")
    };
    let (x, y, width) = (number("x"), number("y"), text.text.chars().count() as f64 * 5.8);
    let classes: Vec<&str> = text.attribute("class").unwrap_or_default().split(' ').collect();
    let left = if classes.contains(&"e") {
        x - width
    } else if classes.contains(&"c") {
        x - width / 2.0
    } else {
        x
    };
    (left, y - 8.0, left + width, y + 1.0, text.text.clone())
}

/// Claim: every number in the table of a figure stands in summary.json where it says; only tables of time, whose
/// columns may be merged, have numbers without a place.
#[test]
fn numbers_stand_in_the_document() {
    let mut checked = 0;
    for (name, result, picture) in all() {
        let document: serde_json::Value =
            serde_json::from_str(&report::json(&result)).expect("a document");
        for figure in svg_figures(&result, &picture, Detail::Full) {
            for cell in figure.table.rows.iter().flatten() {
                let Some(raw) = &cell.value else { continue };
                let Some(pointer) = &cell.pointer else {
                    assert!(figure.trial.is_some(), "{name}: {}: {cell:?}", figure.name);
                    continue;
                };
                let found = document.pointer(pointer).map(serde_json::Value::to_string);
                assert_eq!(found.as_deref(), Some(raw.to_string().as_str()), "{name}: {pointer}");
                checked += 1;
            }
        }
    }
    assert!(checked > 5_000, "{checked}");
}
