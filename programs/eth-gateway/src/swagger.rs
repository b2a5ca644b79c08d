//! The OpenAPI document as a page on which it can be tried: Swagger UI, which lies beside this crate, compressed.

use bytes::Bytes;
use hyper::header::{CONTENT_ENCODING, HeaderValue};

use crate::answers::{self, Answered, Keep};

const SCRIPT: &[u8] = include_bytes!("../vendor/swagger-ui/swagger-ui-bundle.js.gz");
const STYLE: &[u8] = include_bytes!("../vendor/swagger-ui/swagger-ui.css.gz");

const PAGE: &str = r##"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Ethereum gateway</title>
<link rel="stylesheet" href="swagger-ui.css">
<link rel="icon" href="data:,">
<div id="ui"></div>
<script src="swagger-ui-bundle.js"></script>
<script>
SwaggerUIBundle({ url: "../openapi.json", dom_id: "#ui", deepLinking: true, tryItOutEnabled: true, validatorUrl: null });
</script>
</html>
"##;

/// The file of this name, if there is one; none is the page.
pub fn file(name: &str) -> Option<Answered> {
    let whole = |kind, body| {
        answers::with(HeaderValue::from_static(kind), Bytes::from_static(body), Keep::No)
    };
    let packed = |kind, body| {
        let mut answered = whole(kind, body);
        answered.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        answered
    };
    match name {
        "" => Some(whole("text/html; charset=utf-8", PAGE.as_bytes())),
        "swagger-ui-bundle.js" => Some(packed("text/javascript; charset=utf-8", SCRIPT)),
        "swagger-ui.css" => Some(packed("text/css; charset=utf-8", STYLE)),
        _ => None,
    }
}
