//! Users who go through a shop: the counts of the report are the shop's own, a payment that is made twice is found, and what
//! is written wrongly is said before anything is sent.

pub mod shop;

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use serde_json::Value;

use crate::harness::{Place, beside_others, trial};
use shop::Shop;

fn experiment(shop: &Shop, key: &str, load: &str) -> String {
    let steps = STEPS.replace("KEY", key);
    format!(
        "name = \"shop\"\n[system]\nkind = \"http\"\n[system.deploy]\nurl = \"http://{}/\"\n{steps}\n[load]\n{load}\n\
         warmup = \"0s\"\ntimeout = \"20s\"\ndrain = \"20s\"\n[[threshold]]\nexpr = \"flow.success == 100%\"\n",
        shop.address
    )
}

const STEPS: &str = r#"
[workload]
data = "users.csv"
redirects = 3

[workload.values]
app = "shop-{{$user}}"

[[workload.step]]
name = "home"
path = "/"

[[workload.step]]
name = "log in"
path = "/login"
body = '{"user":"{{user | json}}","password":"{{password}}"}'
headers = { Content-Type = "application/json", X-App = "{{app}}" }
take = { token = "json:/data/token" }
think = "1ms..5ms"

[[workload.step]]
name = "look"
path = "/items?page={{$loop}}"
headers = { Authorization = "Bearer {{token}}" }
take = { item = "json:/items/0/id" }
repeat = 3

[[workload.step]]
name = "add to the cart"
path = "/cart"
body = '{"item":{{item}}}'
expect = { status = 201 }
take = { count = "json:/count" }

[[workload.step]]
name = "an empty cart"
path = "/never"
when = "{{count}} == 0"

[[workload.step]]
name = "cart"
path = "/cart"
take = { csrf = 'regex:name="csrf" value="([^"]+)"', key = 'regex:name="key" value="([^"]+)"' }

[[workload.step]]
name = "pay"
path = "/pay"
body = "csrf={{csrf | url}}&key=KEY"
headers = { Content-Type = "application/x-www-form-urlencoded" }
expect = { json = { "/payments" = 1 } }
"#;

fn users() -> String {
    let lines = (0..40).map(|n| format!("\"user, {n}\",\"user, {n}-pw\"\n"));
    "user,password\n".chars().chain(lines.collect::<String>().chars()).collect()
}

/// Ends with the report in words, and the trial.
fn run(shop: &Shop, key: &str, load: &str) -> (crate::harness::Said, String, Value) {
    let _beside = beside_others();
    let place = Place::new();
    place.write("users.csv", users());
    let text = experiment(shop, key, load);
    let (said, document) = place.experiment(&text);
    (said, place.assay(&["report"]).stdout, trial(&document).clone())
}

/// How many of each kind there were, with those that were committed.
fn kinds(trial: &Value) -> Vec<(String, u64, u64)> {
    let one = |kind: &Value| {
        let count = |key: &str| kind["counts"][key].as_u64().expect("a count");
        (kind["name"].as_str().expect("a name").to_owned(), count("due"), count("committed"))
    };
    trial["kinds"].as_array().expect("kinds").iter().map(one).collect()
}

fn of(count: &AtomicU64) -> u64 {
    count.load(SeqCst)
}

/// Claim: sixty users who begin by a schedule go through every step, and each count of the report is the shop's: logins,
/// pages, redirects, orders; nothing is refused and nothing is paid twice. One pass before the load went through it, too.
#[test]
fn users_go_through_a_shop() {
    let shop = Shop::start();
    let (said, shown, trial) =
        run(&shop, "{{key}}", "rate = \"60/s\"\nduration = \"1s\"\nconnections = 8");
    assert!([0, 97].contains(&said.code), "{}\n{}", said.stdout, said.stderr);
    let flows = &trial["flows"];
    assert_eq!(flows["begun"], 60, "{flows}");
    let [flow] = flows["flows"].as_array().expect("flows").as_slice() else { panic!("{flows}") };
    assert_eq!(
        (&flow["begun"], &flow["completed"]),
        (&Value::from(60), &Value::from(60)),
        "{flow}"
    );
    assert!(
        flow["p50_ns"].as_i64().expect("a time") > 1_000_000,
        "he thinks for a millisecond at least"
    );
    assert_eq!(trial["preflight"].as_array().map(Vec::len), Some(7), "{}", trial["preflight"]);
    let counts = &shop.counts;
    let preflight = 1;
    assert_eq!(of(&counts.logins), 60 + preflight);
    assert_eq!(of(&counts.redirects), 60 + preflight);
    assert_eq!(of(&counts.pages), 3 * (60 + preflight));
    assert_eq!((of(&counts.orders), of(&counts.payments)), (60 + preflight, 60 + preflight));
    assert_eq!(of(&counts.refused), 0);
    // Those due in the second are in the report; a user's later steps may fall into the drain.
    let kinds = kinds(&trial);
    let names: Vec<&str> = kinds.iter().map(|(name, ..)| name.as_str()).collect();
    let expected =
        ["home", "home (redirected)", "log in", "look", "add to the cart", "cart", "pay"];
    assert_eq!(names, expected);
    assert!(kinds.iter().all(|(_, due, committed)| due == committed), "{kinds:?}");
    assert_eq!(kinds[0].1, 60);
    assert!(shown.contains("60 transactions were due by the schedule"), "{shown}");
}

/// Claim: where the key is wrong one payment in fifty is made twice, and the run fails by exactly those.
#[test]
fn a_payment_that_is_made_twice_is_found() {
    let shop = Shop::start();
    let load = "model = \"closed\"\nclients = 4\nduration = \"30s\"\ntransactions_max = 150";
    let (said, shown, trial) = run(&shop, "wrong", load);
    said.expect_code(99);
    assert!(shown.contains("expected 1 at `/payments` of a JSON body, got 2"), "{shown}");
    let counts = &shop.counts;
    assert_eq!((of(&counts.orders), of(&counts.payments)), (151, 154));
    let all = &trial["flows"]["all"];
    assert_eq!((&all["begun"], &all["completed"]), (&Value::from(150), &Value::from(147)), "{all}");
    assert_eq!(all["rejected"], 3, "{all}");
}

/// Claim: what can be known to be wrong is said in a sentence with file and line, and nothing is sent.
#[test]
fn mistakes() {
    let shop = Shop::start();
    let place = Place::new();
    place.write("users.csv", users());
    let text = experiment(&shop, "{{key}}", "rate = \"60/s\"\nduration = \"1s\"");
    for (from, to, said) in [
        ("Bearer {{token}}", "Bearer {{tokn}}", "`{{tokn}}` is missing: no earlier step takes it"),
        ("json:/data/token", "jsno:/data/token", "`jsno:/data/token` is no place of an answer"),
        (
            "redirects = 3",
            "redirects = 3\ndata_use = \"once\"",
            "workload.data has 40 lines, and the load begins up to 6",
        ),
        (
            "path = \"/\"\n",
            "path = \"/\"\n[[workload.step]]\nrun = \"flow\"\n",
            "a recursive flow: flow → flow would never end",
        ),
        ("data = \"users.csv\"", "data = \"user.csv\"", "user.csv: there is no such file"),
    ] {
        assert!(text.contains(from), "{from}");
        let file = place.write("wrong.toml", text.replacen(from, to, 1));
        let refused = place.assay(&["run", file.to_str().expect("a path")]);
        refused.expect_code(2).expect_stderr(said).expect_stderr("wrong.toml:");
    }
    assert_eq!(of(&shop.counts.requests), 0, "nothing was sent");
}

/// Claim: a value that is not there is found by the pass before the load, which names the step and the place, and the load
/// that could not succeed is told so on its first lines.
#[test]
fn a_value_that_is_not_found() {
    let shop = Shop::start();
    let _beside = beside_others();
    let place = Place::new();
    place.write("users.csv", users());
    let text = experiment(&shop, "{{key}}", "rate = \"5/s\"\nduration = \"1s\"");
    let text = text.replace("json:/data/token", "json:/token");
    let (said, document) = place.experiment(&text);
    assert_ne!(said.code, 0);
    let preflight = trial(&document)["preflight"].to_string();
    let why = "no value for `token` at json:/token: the answer has no value there";
    assert!(preflight.contains(why), "{preflight}");
    assert_eq!(trial(&document)["flows"]["all"]["completed"], 0);
}
