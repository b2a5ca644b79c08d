//! SVG as text: a few shapes, written short, because a page holds dozens of charts.
//!
//! Coordinates are rounded to tenths. A coordinate that is not finite is written as zero, never as `NaN`: the text
//! must always be a picture that a browser accepts. Every text is escaped here and nowhere else.

use std::fmt::Write as _;

use super::style;
use crate::paint::clean;

/// Room for the title at the top of a file that stands alone, and for the subtitle below it.
const HEAD: f64 = 30.0;
const SUBTITLE: f64 = 16.0;
/// White around such a file.
const MARGIN: f64 = 14.0;
/// Width of a letter of the title.
const HEAD_LETTER: f64 = 8.4;

/// A picture in the making. The origin is the upper left corner below the title.
pub(crate) struct Canvas {
    pub(crate) width: f64,
    height: f64,
    body: String,
}

/// A finished picture, to be written with the id that it has where it is shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drawn {
    width: f64,
    height: f64,
    title: String,
    subtitle: String,
    description: String,
    body: String,
}

/// A picture as a part of a page: an `<svg>` element whose texts are escaped.
#[derive(Clone, Debug)]
pub(crate) struct Inline(String);

impl Inline {
    /// The element.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Canvas {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    /// Text with its baseline at y; the class says anchor and look.
    pub(crate) fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let _ = write!(
            self.body,
            "<text x=\"{}\" y=\"{}\" class=\"{class}\">{}</text>",
            number(x),
            number(y),
            escape(text)
        );
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        self.polyline(&[from, to], class);
    }

    pub(crate) fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, class: &str) {
        let _ = write!(
            self.body,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{class}\"/>",
            number(x),
            number(y),
            number(width.max(0.0)),
            number(height.max(0.0)),
        );
    }

    /// A line through points; a single one is a dot.
    pub(crate) fn polyline(&mut self, points: &[(f64, f64)], class: &str) {
        if points.is_empty() {
            return;
        }
        self.path(&path_through(points), class);
    }

    /// A line through points with gaps where there is none.
    pub(crate) fn broken_line(
        &mut self,
        points: impl IntoIterator<Item = Option<(f64, f64)>>,
        class: &str,
    ) {
        let mut all = String::new();
        let mut piece = Vec::new();
        for point in points.into_iter().chain([None]) {
            match point {
                Some(point) => piece.push(point),
                None if piece.is_empty() => {}
                None => all.push_str(&path_through(&std::mem::take(&mut piece))),
            }
        }
        if !all.is_empty() {
            self.path(&all, class);
        }
    }

    /// A closed outline.
    pub(crate) fn area(&mut self, outline: &[(f64, f64)], class: &str) {
        if outline.len() > 2 {
            self.path(&format!("{}z", path_through(outline)), class);
        }
    }

    /// Path data as it is.
    pub(crate) fn path(&mut self, data: &str, class: &str) {
        let _ = write!(self.body, "<path class=\"{class}\" d=\"{data}\"/>");
    }

    /// The same with the width of its stroke.
    pub(crate) fn wide_path(&mut self, data: &str, class: &str, width: f64) {
        let width = number(width);
        let _ =
            write!(self.body, "<path class=\"{class}\" stroke-width=\"{width}\" d=\"{data}\"/>");
    }

    /// A mark of one of eight shapes, so that colour is never alone.
    pub(crate) fn mark(&mut self, (x, y): (f64, f64), shape: usize, radius: f64, class: &str) {
        let r = radius;
        let data = match shape % 8 {
            0 => {
                let _ = write!(
                    self.body,
                    "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"{class}\"/>",
                    number(x),
                    number(y),
                    number(r)
                );
                return;
            }
            1 => closed(&[(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)]),
            2 => {
                closed(&[(x, y - r * 1.2), (x + r * 1.1, y + r * 0.9), (x - r * 1.1, y + r * 0.9)])
            }
            3 => closed(&[(x, y - r * 1.3), (x + r * 1.3, y), (x, y + r * 1.3), (x - r * 1.3, y)]),
            4 => {
                closed(&[(x, y + r * 1.2), (x + r * 1.1, y - r * 0.9), (x - r * 1.1, y - r * 0.9)])
            }
            5 => {
                closed(&[(x - r * 1.2, y), (x + r * 0.9, y - r * 1.1), (x + r * 0.9, y + r * 1.1)])
            }
            6 => {
                closed(&[(x + r * 1.2, y), (x - r * 0.9, y - r * 1.1), (x - r * 0.9, y + r * 1.1)])
            }
            _ => {
                closed(&[(x - r * 1.3, y - r * 0.6), (x + r * 1.3, y - r * 0.6), (x, y + r * 1.2)])
            }
        };
        self.path(&data, class);
    }

    /// The picture. The title is shown by a file that stands alone, with the subtitle below it.
    pub(crate) fn finish(self, (title, subtitle): (&str, &str), description: &str) -> Drawn {
        Drawn {
            width: self.width,
            height: self.height,
            title: title.to_owned(),
            subtitle: subtitle.to_owned(),
            description: description.to_owned(),
            body: self.body,
        }
    }

    /// A small picture in a line of text or a cell, with a label for those who do not see it.
    pub(crate) fn small(self, class: &str, label: &str) -> Inline {
        let [width, height] = [self.width, self.height].map(number);
        Inline(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"assay-figure {class}\" role=\"img\" \
             aria-label=\"{}\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">{}</svg>",
            escape(label),
            self.body
        ))
    }
}

impl Drawn {
    /// A file of its own: with style and visible title.
    pub(crate) fn file(&self, id: &str) -> String {
        let mut over = Canvas::new(self.width, 0.0);
        let below = if self.subtitle.is_empty() { 0.0 } else { SUBTITLE };
        let letters = self.width / HEAD_LETTER * LETTER;
        over.text(0.0, -14.0 - below, "head", &fitted(&self.title, letters));
        if !self.subtitle.is_empty() {
            over.text(0.0, -14.0, "m", &fitted(&self.subtitle, self.width));
        }
        let head = HEAD + below;
        let mut paper = Canvas::new(0.0, 0.0);
        let (width, height) = (self.width + 2.0 * MARGIN, self.height + head + MARGIN);
        paper.rect(-MARGIN, -head, width, height, "paper");
        format!(
            "{}{}<style>{}{}</style>{}{}{}</svg>\n",
            opening(id, [-MARGIN, -head, width, height]),
            self.names(id),
            style::ROOT,
            style::RULES,
            paper.body,
            over.body,
            self.body
        )
    }

    /// For a page that has style and title already.
    pub(crate) fn inline(&self, id: &str) -> Inline {
        let open = opening(id, [0.0, 0.0, self.width, self.height]);
        Inline(format!("{open}{}{}</svg>", self.names(id), self.body))
    }

    fn names(&self, id: &str) -> String {
        let named = match self.subtitle.as_str() {
            "" => self.title.clone(),
            subtitle => format!("{}, {subtitle}", self.title),
        };
        format!(
            "<title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>",
            escape(&named),
            escape(&self.description)
        )
    }
}

/// The opening tag, with the box that is seen: left, top, width, height.
fn opening(id: &str, of: [f64; 4]) -> String {
    let [left, top, width, height] = of.map(number);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"assay-figure\" role=\"img\" \
         aria-labelledby=\"{id}-t {id}-d\" viewBox=\"{left} {top} {width} {height}\" \
         width=\"{width}\" height=\"{height}\">"
    )
}

/// Width of a letter of small size, as wide as common fonts set it.
const LETTER: f64 = 6.4;

/// Width of a text of small size.
#[must_use]
pub(crate) fn text_width(text: &str) -> f64 {
    float(text.chars().count()) * LETTER
}

/// A text cut to what fits, with an ellipsis.
#[must_use]
pub(crate) fn fitted(text: &str, width: f64) -> String {
    let text = clean(text);
    if text_width(&text) <= width {
        return text;
    }
    let mut kept = String::new();
    for c in text.chars() {
        if text_width(&kept) + 2.0 * LETTER > width {
            break;
        }
        kept.push(c);
    }
    format!("{}…", kept.trim_end())
}

/// A count as a coordinate.
#[must_use]
pub(crate) fn float(count: usize) -> f64 {
    count as f64
}

/// Text as XML character data, safe in attributes as well; what XML cannot hold is shown by its code.
#[must_use]
pub(crate) fn escape(text: &str) -> String {
    escape_visible(&clean(text))
}

/// [`escape`] of text whose control characters are shown already and whose white space means something.
#[must_use]
pub(crate) fn escape_visible(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A coordinate in tenths, as short as SVG allows.
#[must_use]
pub(crate) fn number(value: f64) -> String {
    tenths_text(tenths(value))
}

fn tenths(value: f64) -> i64 {
    if value.is_finite() { (value.clamp(-1e6, 1e6) * 10.0).round() as i64 } else { 0 }
}

fn tenths_text(tenths: i64) -> String {
    let (sign, whole, rest) =
        (if tenths < 0 { "-" } else { "" }, tenths.abs() / 10, tenths.abs() % 10);
    match (whole, rest) {
        (0, 0) => "0".to_owned(),
        (whole, 0) => format!("{sign}{whole}"),
        (0, rest) => format!("{sign}.{rest}"),
        (whole, rest) => format!("{sign}{whole}.{rest}"),
    }
}

/// Numbers of path data side by side: a minus sign separates as well as a blank.
fn push_numbers(data: &mut String, numbers: &[i64]) {
    for value in numbers {
        let text = tenths_text(*value);
        if !text.starts_with('-') && data.ends_with(|c: char| c.is_ascii_digit()) {
            data.push(' ');
        }
        data.push_str(&text);
    }
}

fn path_through(points: &[(f64, f64)]) -> String {
    let mut data = String::from("M");
    let Some(first) = points.first() else { return String::new() };
    let mut at = (tenths(first.0), tenths(first.1));
    push_numbers(&mut data, &[at.0, at.1]);
    if points.len() == 1 {
        data.push_str("h0");
        return data;
    }
    data.push('l');
    // Steps of the same direction along an axis are one step.
    let mut steps: Vec<(i64, i64)> = Vec::new();
    for point in &points[1..] {
        let next = (tenths(point.0), tenths(point.1));
        let step = (next.0 - at.0, next.1 - at.1);
        at = next;
        match steps.last_mut() {
            Some(last) if last.1 == 0 && step.1 == 0 && last.0.signum() * step.0.signum() >= 0 => {
                last.0 += step.0;
            }
            _ => steps.push(step),
        }
    }
    for step in steps {
        push_numbers(&mut data, &[step.0, step.1]);
    }
    data
}

fn closed(points: &[(f64, f64)]) -> String {
    format!("{}z", path_through(points))
}

/// A vertical stroke of path data from y1 to y2 at x.
pub(crate) fn push_stroke(data: &mut String, x: f64, y1: f64, y2: f64) {
    data.push('M');
    let from = tenths(y1);
    push_numbers(data, &[tenths(x), from]);
    data.push('v');
    push_numbers(data, &[tenths(y2) - from]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a path is written short and means the same; what is not finite becomes a number all the same.
    #[test]
    fn paths_are_short() {
        assert_eq!(path_through(&[(1.0, 2.0), (1.5, 1.5), (4.0, 1.5)]), "M1 2l.5-.5 2.5 0");
        assert_eq!(path_through(&[(0.0, 0.0), (1.0, 0.0), (3.0, 0.0), (3.0, 1.0)]), "M0 0l3 0 0 1");
        assert_eq!(path_through(&[(7.0, 8.0)]), "M7 8h0");
        assert_eq!(number(f64::NAN), "0");
        assert_eq!(number(-0.04), "0");
        assert_eq!(number(f64::INFINITY), "0");
    }

    /// Claim: no text can leave its element, and no control character reaches the file.
    #[test]
    fn texts_are_escaped() {
        assert_eq!(escape("<b a='1'>&\"\u{1b}"), "&lt;b a=&#39;1&#39;&gt;&amp;&quot;\\u{1b}");
        assert_eq!(fitted("abcdefgh", 40.0), "abcde…");
    }
}
