//! The experiment files of the published reports: what can be carried out is planned, and what cannot yet is
//! named, never passed over.

use model::plan::Plan;
use plan::{Input, Source, resolve};

#[test]
fn look() {
    for entry in
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/experiments")).unwrap()
    {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let input = Input {
            file: Source { name: path.file_name().unwrap().to_string_lossy().into_owned(), text },
            profile: if path.ends_with("testnet-saturation.toml") {
                Some("rotating".into())
            } else {
                None
            },
            ..Input::default()
        };
        match resolve(&input) {
            Ok(r) => {
                println!("{} ok", path.display());
                let t = toml::to_string(&r.plan).unwrap();
                let p: Plan = toml::from_str(&t).unwrap();
                assert_eq!(toml::to_string(&p).unwrap(), t);
                for s in &r.plan.settings {
                    println!("{}", s.key)
                }
                for e in r.effective {
                    println!("   {} = {}   # {}", e.path, e.value, e.origin)
                }
            }
            Err(e) => println!("{}\n{e}", path.display()),
        }
    }
}
