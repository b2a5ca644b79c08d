//! Text of strangers as it may be shown: nothing in it drives a terminal or reorders a line.

/// `text` with its control and bidirectional characters shown by their code.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut done = String::with_capacity(text.len());
    text.chars().for_each(|c| push(c, &mut done));
    done
}

/// The same of several lines: line ends and tabs stay, and so do colours, which are the only escapes of our own.
#[must_use]
pub fn visible_lines(text: &str) -> String {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let colour = colour_bytes(rest);
        let length = if colour > 0 { colour } else { c.len_utf8() };
        if colour > 0 || matches!(c, '\n' | '\t') {
            done.push_str(&rest[..length]);
        } else {
            push(c, &mut done);
        }
        rest = &rest[length..];
    }
    done
}

/// Whether a character changes the order or the presence of others (Unicode TR 36, "bidirectional text spoofing").
#[must_use]
pub const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn push(c: char, done: &mut String) {
    if c.is_control() || is_invisible(c) {
        done.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
    } else {
        done.push(c);
    }
}

/// The length of the colour (`ESC [ … m`, ECMA-48's SGR) that a text begins with; 0: it begins with none.
fn colour_bytes(text: &str) -> usize {
    let Some(inside) = text.strip_prefix("\u{1b}[") else { return 0 };
    let digits = inside.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    if inside.as_bytes().get(digits) == Some(&b'm') { digits + 3 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: titles, cleared screens and reordered lines are shown by their codes; colours and line ends stay where lines are
    /// shown, and nowhere else.
    #[test]
    fn nothing_is_obeyed() {
        let hostile = "a\u{1b}]0;PWNED\u{7}\u{1b}[2J\u{202e}b\r\n\u{1b}[1;31mc\u{1b}[0m\u{1b}";
        assert_eq!(
            visible_lines(hostile),
            "a\\u{1b}]0;PWNED\\u{7}\\u{1b}[2J\\u{202e}b\\u{d}\n\u{1b}[1;31mc\u{1b}[0m\\u{1b}"
        );
        assert!(visible(hostile).chars().all(|c| !c.is_control() && !is_invisible(c)));
    }
}
