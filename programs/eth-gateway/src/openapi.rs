//! The OpenAPI 3.1 document, made of the table of routes.

mod schemas;

use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use crate::routes::{ROUTES, Route, field};

/// The document as text; the same each time.
pub fn document() -> &'static str {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    DOCUMENT.get_or_init(|| make().to_string())
}

fn make() -> Value {
    let mut paths = Map::new();
    for (prefix, version) in [("", Version::Published), ("/v1", Version::One)] {
        for route in ROUTES.iter().filter(|route| !route.template.is_empty()) {
            let method = if route.is_posted { "post" } else { "get" };
            let path = format!("{prefix}{}", route.template);
            paths.insert(path, json!({ method: operation(route, version) }));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Ethereum gateway",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A REST API in front of an Ethereum node. Paths without a version write wei and heights as JSON numbers, as they were published; under /v1 they are strings of decimal digits.",
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": {
            "schemas": schemas::schemas(),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer", "bearerFormat": "JWT" } },
        },
    })
}

/// Which of the two forms of a route.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Published,
    One,
}

fn operation(route: &Route, version: Version) -> Value {
    let suffix = if version == Version::One { "V1" } else { "" };
    let in_path = fields(route.template).map(|name| parameter(name, "path"));
    let asked_with = route.asked_with.iter().map(|name| parameter(name, "query"));
    let parameters: Vec<Value> = in_path.chain(asked_with).collect();
    let mut operation = json!({
        "operationId": format!("{}{suffix}", route.name),
        "summary": route.summary,
        "parameters": parameters,
        "responses": responses(route, version),
    });
    if route.is_posted {
        let schema = match route.name {
            "send" => json!({ "$ref": "#/components/schemas/Signed" }),
            "rpc" => json!({ "$ref": "#/components/schemas/Any" }),
            _ => json!({ "$ref": "#/components/schemas/SignedMessage" }),
        };
        let content = json!({ "application/json": { "schema": schema } });
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    if route.asks_node {
        // With `auth` on, and not needed without.
        operation["security"] = json!([{ "token": [] }, {}]);
    }
    operation
}

fn fields(template: &'static str) -> impl Iterator<Item = &'static str> {
    template.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn parameter(name: &str, place: &str) -> Value {
    let field = field(name).expect("every field of a template is in the table; a test looks");
    json!({
        "name": name,
        "in": place,
        "required": place == "path",
        "description": field.wanted,
        "example": field.example,
        "schema": { "type": "string", "pattern": field.pattern },
    })
}

fn responses(route: &Route, version: Version) -> Value {
    let mut responses = Map::new();
    let good_status = if route.name == "send" { "202" } else { "200" };
    responses.insert(good_status.to_owned(), good(route, version));
    if route.name == "rpc" {
        responses.insert("204".to_owned(), json!({ "description": "Only notifications came." }));
    }
    let mut fails = |status: &str, description: &str| {
        responses.insert(status.to_owned(), failure(status, description));
    };
    if fields(route.template).next().is_some() || route.is_posted || !route.asked_with.is_empty() {
        fails("400", "A field is not what it must be; `field` names it.");
    }
    if route.may_be_absent {
        fails("404", "The node has none.");
    } else if fields(route.template).next().is_some() {
        // An empty field, or one with a slash in it, makes another path.
        fails("404", "There is no such route.");
    }
    if route.asks_node || route.is_posted {
        fails(
            "401",
            "There is no token, or none that is good (with `auth` on), or the signature is not good.",
        );
    }
    fails("405", "The route has another method; Allow names it.");
    if route.may_be_refused {
        fails("422", "The node refuses this request.");
    }
    if route.asks_node {
        fails("429", "The node's limiter refuses, or would; Retry-After says for how long.");
        fails("502", "The node cannot be reached, or what it answers is no answer.");
        fails("504", "The node did not answer in time.");
    }
    if route.asks_node || route.is_posted {
        fails("503", "More is asked than there is room for.");
    }
    Value::Object(responses)
}

fn good(route: &Route, version: Version) -> Value {
    let media = match route.answer {
        "Page" => "text/html",
        "Metrics" => "text/plain",
        _ => "application/json",
    };
    let schema = match route.answer {
        "Page" | "Metrics" => json!({ "type": "string" }),
        name @ ("Height" | "GasPrice" | "Balance" | "Nonce" | "Gas" | "ChainId")
            if version == Version::One =>
        {
            json!({ "$ref": format!("#/components/schemas/{name}V1") })
        }
        "Ready" if version == Version::One => json!({ "$ref": "#/components/schemas/HeightV1" }),
        "Ready" => json!({ "$ref": "#/components/schemas/Height" }),
        name => json!({ "$ref": format!("#/components/schemas/{name}") }),
    };
    let mut content = Map::new();
    content.insert(media.to_owned(), json!({ "schema": schema }));
    let timing = json!({
        "description": "`gateway;dur=` milliseconds of the gateway's own, `node;dur=` milliseconds of waiting for the node.",
        "schema": { "type": "string" },
    });
    json!({ "description": route.summary, "headers": { "Server-Timing": timing }, "content": content })
}

fn failure(status: &str, description: &str) -> Value {
    let mut failure = json!({
        "description": description,
        "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
    });
    if matches!(status, "429" | "503") {
        failure["headers"] = json!({
            "Retry-After": { "description": "Seconds.", "schema": { "type": "integer", "minimum": 1 } },
        });
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: every route is in the document under both prefixes, every schema that is named exists, and a failure of the
    /// node is documented wherever the node is asked.
    #[test]
    fn whole() {
        let document: Value = serde_json::from_str(document()).unwrap();
        let paths = document["paths"].as_object().unwrap();
        assert_eq!(paths.len(), 2 * (ROUTES.len() - 1));
        let text = document.to_string();
        for named in text.split("#/components/schemas/").skip(1) {
            let name = named.split('"').next().unwrap();
            assert!(document["components"]["schemas"][name].is_object(), "{name}");
        }
        assert!(paths["/v1/block/{block}"]["get"]["responses"]["504"].is_object());
        assert!(paths["/describe"]["get"]["responses"]["504"].is_null());
    }
}
