//! What a format cannot hold is said, and what a system without statuses committed is a success to vegeta.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use exchange::{Format, RowsInput, write_rows};

fn converted(from: Format, text: &str, to: Format) -> (String, String) {
    let mut out = Vec::new();
    let input = RowsInput::text(from, "x", Box::new(text.as_bytes()), None);
    let notes = write_rows(input, to, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), notes.lines.join("\n"))
}

/// Claim: rows that waited before they were sent lose that in vegeta's results, and it is said how many; codes that
/// are not those of HTTP do not make failures of what was committed.
#[test]
fn rows_to_vegeta() {
    let rows = "tx,due_ns,sent_ns,committed_ns,end_ns,outcome,class,code\n\
                0,0,0,5,5,committed,,2\n\
                1,0,900,1000,1000,committed,,0\n\
                2,0,1,9,9,rejected,server,3\n\
                3,0,,,5,shed,,0\n";
    for to in [Format::VegetaCsv, Format::VegetaNdjson] {
        let (text, notes) = converted(Format::Csv, rows, to);
        assert!(
            notes.contains("so the waiting before it, of 2 transactions, is not in"),
            "{notes}"
        );
        assert!(notes.contains("2 transactions were committed with codes that are not"), "{notes}");
        assert!(notes.contains("1 transactions were never sent"), "{notes}");
        let (back, _) = converted(to, &text, Format::Csv);
        assert_eq!(back.matches(",committed,,200,").count(), 2, "{back}");
        assert_eq!(back.matches(",rejected,server,3,").count(), 1, "{back}");
    }
}

/// Claim: outcomes that their codes do not say are counted in a note, and a failure with a code of success is none on the way
/// back.
#[test]
fn outcomes_that_codes_do_not_say() {
    let rows = "tx,due_ns,sent_ns,committed_ns,end_ns,outcome,class,code,error\n\
                0,0,0,,5,rejected,conflict,200,spent\n\
                1,0,0,,5,rejected,conflict,200,\n\
                2,0,0,,5,unknown,,200,\n\
                3,0,0,5,5,committed,,404,\n\
                4,0,0,5,5,committed,,200,\n\
                5,0,0,,5,rejected,limited,429,slow\n";
    for to in [Format::VegetaCsv, Format::VegetaNdjson] {
        let (text, notes) = converted(Format::Csv, rows, to);
        assert!(notes.contains("4 outcomes differ from what vegeta takes their codes"), "{notes}");
        let (back, _) = converted(to, &text, Format::Csv);
        assert_eq!(back.matches(",committed,").count(), 1, "{back}");
        assert!(back.contains(",rejected,server,200,spent,"), "{back}");
        assert!(back.contains(",unknown,,200,no answer,"), "{back}");
        let (_, again) = converted(Format::Csv, &rows[..rows.find("0,0").unwrap()], to);
        assert!(!again.contains("outcomes differ"), "{again}");
    }
}

/// Claim: what rows do not keep of vegeta's results is said, down to texts that were cut.
#[test]
fn vegeta_to_rows() {
    let long = "e".repeat(2000);
    let text = format!("1595855109000000000,0,5,0,5000000000,{long},aGk=,a,0,GET,http://h/,\n");
    let (rows, notes) = converted(Format::VegetaCsv, &text, Format::Csv);
    assert!(!rows.contains(&long));
    for expected in [
        "vegeta records no due time",
        "bodies, headers and the names of attacks are not kept",
        "1 bodies were larger than a row can say",
        "error texts longer than 1024 bytes were cut",
    ] {
        assert!(notes.contains(expected), "{expected}\n{notes}");
    }
}
