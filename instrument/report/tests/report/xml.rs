//! Just enough of an XML reader to tell whether a document is well-formed and what stands in it.

/// An element in document order.
pub struct Element {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    /// The text directly in it.
    pub text: String,
    /// How many elements it stands in.
    pub depth: usize,
}

impl Element {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// All elements of a document, or what is wrong with it.
pub fn read(text: &str) -> Result<Vec<Element>, String> {
    let mut elements: Vec<Element> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut rest = text.trim_start();
    if rest.starts_with("<?xml") {
        rest = rest.split_once("?>").ok_or("an open declaration")?.1.trim_start();
    }
    while !rest.is_empty() {
        if let Some(tail) = rest.strip_prefix("</") {
            let (name, tail) = tail.split_once('>').ok_or("an open end tag")?;
            let index = open.pop().ok_or_else(|| format!("</{name}> ends nothing"))?;
            if elements[index].name != name {
                return Err(format!("</{name}> ends <{}>", elements[index].name));
            }
            rest = tail;
        } else if let Some(tail) = rest.strip_prefix('<') {
            let end = tag_end(tail)?;
            let (tag, is_empty) = match tail[..end].strip_suffix('/') {
                Some(tag) => (tag, true),
                None => (&tail[..end], false),
            };
            if open.is_empty() && !elements.is_empty() {
                return Err("a second root".to_owned());
            }
            elements.push(element(tag, open.len())?);
            if !is_empty {
                open.push(elements.len() - 1);
            }
            rest = &tail[end + 1..];
        } else {
            let end = rest.find('<').unwrap_or(rest.len());
            let text = unescaped(&rest[..end])?;
            match open.last() {
                Some(index) => elements[*index].text.push_str(&text),
                None if text.trim().is_empty() => {}
                None => return Err(format!("`{text}` outside the root")),
            }
            rest = &rest[end..];
        }
    }
    if open.is_empty() && !elements.is_empty() {
        Ok(elements)
    } else {
        Err("it does not end".to_owned())
    }
}

fn tag_end(text: &str) -> Result<usize, String> {
    let mut is_quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            '>' if !is_quoted => return Ok(at),
            '<' => return Err("`<` in a tag".to_owned()),
            _ => {}
        }
    }
    Err("an open tag".to_owned())
}

fn element(tag: &str, depth: usize) -> Result<Element, String> {
    let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
    let mut attributes: Vec<(String, String)> = Vec::new();
    while !rest.trim().is_empty() {
        let (key, tail) = rest.trim_start().split_once("=\"").ok_or_else(|| format!("`{rest}`"))?;
        let (value, tail) = tail.split_once('"').ok_or("an open attribute")?;
        if attributes.iter().any(|(other, _)| other == key) {
            return Err(format!("{key} twice"));
        }
        attributes.push((key.to_owned(), unescaped(value)?));
        rest = tail;
    }
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        return Err(format!("`{name}` is no name"));
    }
    Ok(Element { name: name.to_owned(), attributes, text: String::new(), depth })
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut done = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        let (entity, tail) =
            after.split_once(';').ok_or_else(|| format!("a bare & in `{text}`"))?;
        done.push_str(before);
        done.push(match entity {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "#39" => '\'',
            other => return Err(format!("&{other};")),
        });
        rest = tail;
    }
    done.push_str(rest);
    let is_bad = |c: char| (c < ' ' && !"\t\n\r".contains(c)) || c == '\u{fffe}' || c == '\u{ffff}';
    if done.chars().any(is_bad) {
        Err("a character that XML cannot hold".to_owned())
    } else {
        Ok(done)
    }
}
