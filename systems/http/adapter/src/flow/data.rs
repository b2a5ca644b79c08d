//! The data of a workload's users: CSV with a line of names (RFC 4180), or a JSON object a line. Read whole before the
//! load, every mistake with its line; each user then has a line.

use serde_json::Value;

/// The longest file of data.
pub(crate) const DATA_BYTES_MAX: u64 = 256 << 20;
/// Mistakes that are listed.
const MISTAKES_MAX: usize = 20;

/// The lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Data {
    pub(crate) columns: Vec<String>,
    cells: Vec<u8>,
    /// Where each cell ends.
    ends: Vec<u32>,
}

impl Data {
    /// Reads the file called `name`.
    ///
    /// # Errors
    /// With every mistake, each with the file and its line.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, Vec<String>> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reading = Reading { name, data: Self::default(), wrong: Vec::new() };
        match text.trim_start().starts_with('{') {
            true => reading.objects(text),
            false => reading.table(text),
        }
        if reading.wrong.is_empty() && reading.data.lines() == 0 {
            reading.wrong.push(format!("{name}: there is no line of data in it"));
        }
        if reading.wrong.is_empty() { Ok(reading.data) } else { Err(reading.wrong) }
    }

    /// How many lines there are.
    pub(crate) fn lines(&self) -> u32 {
        let lines = self.ends.len().checked_div(self.columns.len()).unwrap_or(0);
        u32::try_from(lines).expect("a file of less than 4 GiB")
    }

    /// A cell.
    pub(crate) fn cell(&self, line: u32, column: usize) -> &[u8] {
        let at = line as usize * self.columns.len() + column;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.cells[start as usize..self.ends[at] as usize]
    }

    fn push(&mut self, cell: &[u8]) {
        self.cells.extend_from_slice(cell);
        self.ends.push(u32::try_from(self.cells.len()).expect("a file of less than 4 GiB"));
    }
}

struct Reading<'a> {
    name: &'a str,
    data: Data,
    wrong: Vec<String>,
}

impl Reading<'_> {
    fn reject(&mut self, line: usize, message: &str) {
        if self.wrong.len() < MISTAKES_MAX {
            self.wrong.push(format!("{}:{line}: {message}", self.name));
        }
    }

    fn table(&mut self, text: &str) {
        let mut records = Records { rest: text, line: 1 };
        let mut record = Vec::new();
        while let Some((line, result)) = records.next(&mut record) {
            if let Err(message) = result {
                return self.reject(line, message);
            }
            if self.data.columns.is_empty() {
                self.data.columns = record.iter().map(|name| name.trim().to_owned()).collect();
                for (at, column) in self.data.columns.clone().iter().enumerate() {
                    if column.is_empty() || self.data.columns[..at].contains(column) {
                        self.reject(
                            line,
                            "the first line names the columns: each once, none empty",
                        );
                        return;
                    }
                }
                continue;
            }
            let (got, expected) = (record.len(), self.data.columns.len());
            if got == expected {
                record.iter().for_each(|cell| self.data.push(cell.as_bytes()));
            } else {
                self.reject(line, &format!("expected {expected} values, got {got}"));
            }
        }
    }

    fn objects(&mut self, text: &str) {
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let object = match serde_json::from_str(line) {
                Ok(Value::Object(object)) => object,
                Ok(_) => {
                    self.reject(at + 1, "expected a JSON object, such as {\"user\": \"ann\"}");
                    continue;
                }
                Err(error) => {
                    self.reject(at + 1, &format!("not a JSON object: {error}"));
                    continue;
                }
            };
            if self.data.columns.is_empty() {
                self.data.columns = object.keys().cloned().collect();
            }
            let missing =
                self.data.columns.iter().find(|name| !object.contains_key(*name)).cloned();
            if let Some(name) = missing {
                self.reject(at + 1, &format!("there is no `{name}`, which the first line has"));
                continue;
            }
            for name in self.data.columns.clone() {
                match &object[&name] {
                    Value::String(text) => self.data.push(text.as_bytes()),
                    other => self.data.push(other.to_string().as_bytes()),
                }
            }
        }
    }
}

/// Records of a CSV file; one may go over several lines, in quotes.
struct Records<'a> {
    rest: &'a str,
    line: usize,
}

impl Records<'_> {
    /// The next one that is not empty, and the line where it begins.
    fn next(&mut self, record: &mut Vec<String>) -> Option<(usize, Result<(), &'static str>)> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let line = self.line;
            record.clear();
            let result = self.record(record);
            if result.is_err() || record.len() > 1 || record.iter().any(|cell| !cell.is_empty()) {
                return Some((line, result));
            }
        }
    }

    fn record(&mut self, record: &mut Vec<String>) -> Result<(), &'static str> {
        loop {
            let cell = match self.rest.strip_prefix('"') {
                Some(rest) => self.quoted(rest)?,
                None => {
                    let end = self.rest.find([',', '\n']).unwrap_or(self.rest.len());
                    let (cell, rest) = self.rest.split_at(end);
                    self.rest = rest;
                    cell.strip_suffix('\r').unwrap_or(cell).to_owned()
                }
            };
            record.push(cell);
            if let Some(rest) = self.rest.strip_prefix(',') {
                self.rest = rest;
                continue;
            }
            self.rest = self.rest.strip_prefix('\n').unwrap_or(self.rest);
            self.line += 1;
            return Ok(());
        }
    }

    fn quoted(&mut self, mut rest: &str) -> Result<String, &'static str> {
        let mut cell = String::new();
        loop {
            let Some(end) = rest.find('"') else { return Err("the quotation mark is not closed") };
            cell.push_str(&rest[..end]);
            rest = &rest[end + 1..];
            match rest.strip_prefix('"') {
                Some(after) => {
                    cell.push('"');
                    rest = after;
                }
                None => break,
            }
        }
        self.line += cell.matches('\n').count();
        let after = rest.strip_prefix('\r').unwrap_or(rest);
        if !(after.is_empty() || after.starts_with([',', '\n'])) {
            return Err("expected a comma after the closing quotation mark");
        }
        // The borrow of `rest` outlives this call only through offsets.
        let consumed = self.rest.len() - after.len();
        self.rest = &self.rest[consumed..];
        Ok(cell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(data: &Data) -> Vec<Vec<String>> {
        let cell = |line, column| String::from_utf8(data.cell(line, column).to_vec()).unwrap();
        let columns = data.columns.len();
        (0..data.lines()).map(|line| (0..columns).map(|at| cell(line, at)).collect()).collect()
    }

    /// Claim: both forms give the same lines, with quotes, commas, line ends and values that are no texts.
    #[test]
    fn forms() {
        let table = "\u{feff}user,says\r\nann,\"a \"\"b\"\", c\"\n\nbob,\"two\nlines\"\r\ncy,";
        let data = Data::parse("u.csv", table).unwrap();
        assert_eq!(data.columns, ["user", "says"]);
        assert_eq!(cells(&data), [["ann", "a \"b\", c"], ["bob", "two\nlines"], ["cy", ""]]);
        let objects = "{\"user\":\"ann\",\"n\":1}\n\n{\"n\":2.5,\"user\":\"bob\",\"more\":true}\n";
        let data = Data::parse("u.ndjson", objects).unwrap();
        let at = |name: &str| data.columns.iter().position(|known| known == name).unwrap();
        assert_eq!(data.cell(0, at("user")), b"ann");
        assert_eq!(data.cell(1, at("n")), b"2.5");
    }

    /// Claim: every mistake is said with file and line.
    #[test]
    fn mistakes() {
        for (text, expected) in [
            ("", "u: there is no line of data in it"),
            ("a,b\n", "u: there is no line of data in it"),
            ("a,a\n1,2\n", "u:1: the first line names the columns: each once, none empty"),
            (
                "a,b\n1,2\n\"x\ny\",2,3\n1\n",
                "u:3: expected 2 values, got 3|u:5: expected 2 values, got 1",
            ),
            ("a\n\"x\n", "u:2: the quotation mark is not closed"),
            ("a\n\"x\"y\n", "u:2: expected a comma after the closing quotation mark"),
            (
                "{\"a\":1}\n[1]\n{\"b\":1}\n",
                "u:2: expected a JSON object, such as {\"user\": \"ann\"}|u:3: there is no `a`, which the first line has",
            ),
        ] {
            assert_eq!(Data::parse("u", text).unwrap_err().join("|"), expected, "{text:?}");
        }
        let wrong = Data::parse("u", "{\"a\":1}\n{\"a\"\n").unwrap_err();
        assert!(wrong[0].starts_with("u:2: not a JSON object: "), "{wrong:?}");
    }
}
