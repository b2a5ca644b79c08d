//! The page around the report of a run that goes on. It has no figure of its own: the script of `web/src/live.ts` is told them by
//! the server that gave the page, and puts the report's page below them.

use super::policy;

const STYLE: &str = include_str!("../../data/live.css");
const SCRIPT: &str = include_str!("../../data/live.js");

/// The page, the same for every run. Figures come from `events` beside it, the report's page from `report`.
#[must_use]
pub fn live_page() -> String {
    let policy = policy::meta_with(STYLE, SCRIPT, "connect-src 'self'; frame-src 'self'; ");
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{policy}\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"Assay\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>A run that goes on · Assay</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n<header>\n<h1>The run goes on; nothing is judged before its end</h1>\n\
         <pre id=\"live\" tabindex=\"0\" aria-label=\"Figures of the last seconds\">waiting for the first figures</pre>\n\
         <noscript><p>The figures take a script. The report so far: <a href=\"report\">report</a>.</p></noscript>\n\
         </header>\n<main id=\"main\"></main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the page allows its own style and script, its own server and nothing else, and has one of each.
    #[test]
    fn allows_its_server_alone() {
        let page = live_page();
        assert!(page.contains("default-src 'none'; img-src data:; connect-src 'self'; frame-src 'self'; style-src 'sha256-"));
        for element in ["<script>", "<style>", "id=\"live\"", "id=\"main\""] {
            assert_eq!(page.matches(element).count(), 1, "{element}");
        }
        assert!(!page.contains("http://") && !page.contains("https://"));
    }
}
