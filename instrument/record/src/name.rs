//! Folder names made from what people write (setting keys, experiment names): always one plain component,
//! never longer than a bound, and different for different input. It never touches a disk.

/// The longest name that [`folder_name`] gives; file systems allow 255 and paths add up.
pub const NAME_BYTES_MAX: usize = 120;

/// Marks a name that carries a hash. No other name holds it, so a hashed name never equals a plain one.
const HASH_MARK: char = '~';

/// Makes one safe path component of `key`: letters, digits and `=,.+-_` stay, `/` becomes `per-`
/// (`rate=50/s` → `rate=50per-s`), all else becomes `_`.
///
/// Where that loses something (a replaced character, a `per-` that was there before, a leading dot, a name
/// that is too long or empty), `~` and the key's 64-bit FNV-1a hash follow, so that different keys keep
/// different folders.
#[must_use]
pub fn folder_name(key: &str) -> String {
    let mut name = String::with_capacity(key.len());
    let mut is_lossy = key.is_empty() || key.contains("per-") || key.starts_with('.');
    for c in key.chars() {
        match c {
            '/' => name.push_str("per-"),
            'a'..='z' | 'A'..='Z' | '0'..='9' | '=' | ',' | '.' | '+' | '-' | '_' => name.push(c),
            _ => {
                name.push('_');
                is_lossy = true;
            }
        }
    }
    if name.starts_with('.') {
        name.replace_range(..1, "_");
    }
    if !is_lossy && name.len() <= NAME_BYTES_MAX {
        return name;
    }
    let hash = format!("{HASH_MARK}{:016x}", fnv1a(key.as_bytes()));
    // Only ASCII was pushed, so any index is a character's edge.
    name.truncate(NAME_BYTES_MAX - hash.len());
    name + &hash
}

/// Whether `name` is one plain path component that stays inside its folder.
#[must_use]
pub fn is_plain_file_name(name: &str) -> bool {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+' | '=' | ',');
    !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !name.starts_with('.')
        && name.chars().all(plain)
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: keys that people write stay readable, and names never leave their folder or grow beyond the bound.
    #[test]
    fn names_are_readable_and_stay_inside() {
        assert_eq!(folder_name("rate=50/s,set=all"), "rate=50per-s,set=all");
        assert_eq!(folder_name("default"), "default");
        for key in ["", ".", "..", "../../etc", "a\0b", "é=ü", "x\ny", &"k".repeat(4000)] {
            let name = folder_name(key);
            assert!(is_plain_file_name(&name) || name.contains('~'), "{key:?} → {name}");
            assert!(name.len() <= NAME_BYTES_MAX && !name.is_empty());
            assert!(!name.contains('/') && !name.starts_with('.') && !name.contains('\0'));
        }
    }

    /// Claim: different keys get different names, also where their readable parts are the same.
    #[test]
    fn different_keys_different_names() {
        let long = "k".repeat(300);
        let longer = "k".repeat(301);
        let keys = [
            "a/b", "aper-b", "a b", "a_b", "a?b", ".a", "_a", "..", ".", "", &long, &longer, "a~b",
        ];
        let names: std::collections::BTreeSet<_> = keys.iter().map(|k| folder_name(k)).collect();
        assert_eq!(names.len(), keys.len(), "{names:?}");
    }
}
