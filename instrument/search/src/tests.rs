//! The search on systems whose limit is known.

use model::plan::{SearchDeploy, SearchKey};

use super::*;

const PLAN: SearchPlan = SearchPlan {
    find: SearchKey::Rate,
    from: 50.0,
    most: 100_000.0,
    width: 0.05,
    margin: 0.05,
    bracket: Duration::from_secs(10),
    hold: Duration::from_secs(30),
    confirmations: 3,
    deploy: SearchDeploy::Each,
};

/// Every trial of a search of a system of which `class` is the answer, and the search at its end.
fn searched(plan: &SearchPlan, mut class: impl FnMut(Ask) -> Seen) -> (Vec<Ask>, Search) {
    let mut search = Search::new(plan);
    let mut asked = Vec::new();
    while let Some(ask) = search.next() {
        asked.push(ask);
        assert!(asked.len() < 1000, "it ends by itself: {search:?}");
        search.observe(class(ask));
    }
    (asked, search)
}

/// A system of a fixed capacity.
fn up_to(capacity: f64) -> impl Fn(Ask) -> Seen {
    move |ask| Seen {
        class: if ask.value <= capacity { SearchClass::Kept } else { SearchClass::Failed },
        through_per_s: ask.value.min(capacity),
    }
}

/// Claim: of a system with a fixed capacity, near or far from the first rate, the result lies at most margin and width
/// below it, the rate above it is refuted, and nothing above twice the capacity is offered but in the first trial.
#[test]
fn a_fixed_capacity() {
    for capacity in [0.7, 12.0, 49.0, 51.0, 333.0, 4_711.0, 60_000.0] {
        let (asked, search) = searched(&PLAN, up_to(capacity));
        assert_eq!(search.end(), Some(SearchEnd::Found), "{capacity}: {search:?}");
        let confirmed = search.confirmed().unwrap();
        let least = capacity / (1.0 + PLAN.width) * (1.0 - PLAN.margin) * 0.99;
        assert!((least..=capacity).contains(&confirmed), "{capacity}: {confirmed}");
        let refuted = search.refuted().unwrap();
        assert!(refuted > capacity && refuted < confirmed * 1.12, "{capacity}: {refuted}");
        let most = asked.iter().skip(1).map(|ask| ask.value).fold(0.0, f64::max);
        assert!(most <= 2.01 * capacity.max(25.0), "{capacity}: {most}");
        assert!(asked.len() < 30, "{capacity}: {} trials", asked.len());
        let of = |role| asked.iter().filter(|ask| ask.role == role).count();
        assert_eq!(of(SearchRole::Confirm), 3, "{capacity}");
        assert!(
            asked
                .iter()
                .all(|ask| (ask.length == PLAN.bracket) == (ask.role == SearchRole::Bracket))
        );
    }
}

/// Claim: a search ends with what it knows where the highest rate is kept, none is, none can be told, and where no two
/// trials agree; a rate that was not confirmed is never its result.
#[test]
fn other_ends() {
    let (_, all) = searched(&SearchPlan { most: 700.0, ..PLAN }, up_to(1e9));
    assert_eq!((all.end(), all.confirmed()), (Some(SearchEnd::AtLeast), Some(700.0)));
    let (asked, none) = searched(&PLAN, up_to(0.0));
    assert_eq!((none.end(), none.confirmed()), (Some(SearchEnd::NotEven), None));
    assert!(asked.len() < 15);
    let untold = |_| Seen { class: SearchClass::Untold, through_per_s: 1.0 };
    let (asked, search) = searched(&PLAN, untold);
    assert_eq!((search.end(), search.confirmed()), (Some(SearchEnd::Untold), None));
    assert_eq!(asked.len(), 3);
    // Every bracket and bisection passes up to 400/s, and no confirmation ever does.
    let (_, search) = searched(&PLAN, |ask| match ask.role {
        SearchRole::Confirm => Seen { class: SearchClass::Failed, through_per_s: ask.value },
        _ => up_to(400.0)(ask),
    });
    assert!(matches!(search.end(), Some(SearchEnd::NotEven | SearchEnd::Unsteady)), "{search:?}");
    assert_eq!(search.confirmed(), None);
}

/// Claim: a rate that fails below one that was kept is believed, so that the smaller is the result; and a limit that was
/// found too low is found again above it.
#[test]
fn contradictions() {
    // Long trials bear half of what short ones do.
    let (_, search) = searched(&PLAN, |ask| {
        up_to(if ask.role == SearchRole::Bracket { 800.0 } else { 400.0 })(ask)
    });
    assert_eq!(search.end(), Some(SearchEnd::Found));
    let confirmed = search.confirmed().unwrap();
    assert!((350.0..=400.0).contains(&confirmed), "{confirmed}");
    // The first two bisections fail by accident.
    let mut accidents = 2;
    let mut search = Search::new(&PLAN);
    while let Some(ask) = search.next() {
        let seen = up_to(1_000.0)(ask);
        let is_accident = ask.role == SearchRole::Bisect && accidents > 0;
        accidents -= u32::from(is_accident);
        let class = if is_accident { SearchClass::Failed } else { seen.class };
        search.observe(Seen { class, ..seen });
    }
    let confirmed = search.confirmed().unwrap();
    assert!((890.0..=1_000.0).contains(&confirmed), "{confirmed}: {search:?}");
}

/// Claim: where a refutation does not hold, what failed above it is not tried again by short trials that pass there: the
/// result is looked for between the two.
#[test]
fn failures_are_remembered() {
    let is_short = |ask: &Ask| ask.role == SearchRole::Bracket;
    let mut has_slipped = false;
    let (asked, search) = searched(&PLAN, |ask| {
        let limit = if is_short(&ask) { 1_600.0 } else { 700.0 };
        // Once a long trial fails below the limit.
        let slips = !is_short(&ask) && !has_slipped && ask.value < 690.0;
        has_slipped |= slips;
        up_to(if slips { 0.0 } else { limit })(ask)
    });
    assert_eq!(search.end(), Some(SearchEnd::Found), "{search:?}");
    let confirmed = search.confirmed().unwrap();
    assert!((620.0..=700.0).contains(&confirmed), "{confirmed}: {asked:?}");
    let refuted = asked.iter().position(|ask| ask.role == SearchRole::Refute).unwrap();
    assert!(
        asked[refuted..].iter().filter(|ask| ask.role == SearchRole::Refute).count() > 3,
        "one did not hold: {asked:?}"
    );
    assert!(!asked[refuted..].iter().any(is_short), "{asked:?}");
}

/// Claim: rates are numbers that people can say.
#[test]
fn three_digits() {
    let of =
        [(836.6, 837.0), (98_765.0, 98_800.0), (0.123_456, 0.123), (1.0, 1.0), (0.000_1, 0.001)];
    for (per_s, said) in of {
        assert!((rounded(per_s) - said).abs() < 1e-9, "{per_s}: {}", rounded(per_s));
    }
}

/// Claim: where trials agree, the length that is foretold is that of the search, at its beginning for a limit four times the
/// first rate, and at its end nothing.
#[test]
fn the_length_is_foretold() {
    let warmup = Duration::from_secs(1);
    let (asked, search) = searched(&PLAN, up_to(4.0 * PLAN.from));
    let length: Duration = asked.iter().map(|ask| ask.length + warmup).sum();
    assert_eq!(Search::new(&PLAN).remaining(warmup), length);
    assert_eq!(search.remaining(warmup), Duration::ZERO);
}

/// Claim: with a width and a margin of 1 % a sharp limit is found to 2 %: a limiter of 50/s between 49 and 51.
#[test]
fn narrow() {
    let (_, search) = searched(&SearchPlan { width: 0.01, margin: 0.01, ..PLAN }, up_to(50.0));
    let (low, high) = (search.confirmed().unwrap(), search.refuted().unwrap());
    assert!((49.0..=50.0).contains(&low) && (50.0..=51.0).contains(&high), "{low} {high}");
}

/// Claim: of whole numbers the highest that is kept is found to one, however small it is, confirmed at or below it and
/// refuted above it; what comes through, which is a rate, leads nowhere, and no fraction of a client is ever tried.
#[test]
fn whole_numbers() {
    for find in [SearchKey::Clients, SearchKey::Connections] {
        for (from, most_kept) in [(1.0, 1.0), (8.0, 1.0), (8.0, 3.0), (4.0, 17.0), (64.0, 640.0)] {
            let plan = SearchPlan { find, from, most: 20_000.0, ..PLAN };
            let (asked, search) =
                searched(&plan, |ask| Seen { through_per_s: 1e6, ..up_to(most_kept)(ask) });
            assert_eq!(search.end(), Some(SearchEnd::Found), "{most_kept}: {search:?}");
            let (low, high) = (search.confirmed().unwrap(), search.refuted().unwrap());
            assert!(low <= most_kept && high > most_kept, "{most_kept}: {low} {high}");
            assert!(
                low >= (most_kept * 0.9).floor().max(1.0)
                    && high <= (low * 1.12).max(low + 1.0).ceil()
            );
            assert!(asked.iter().all(|ask| ask.value.fract() == 0.0 && ask.value >= 1.0));
            assert!(asked.len() < 30, "{most_kept}: {} trials", asked.len());
        }
        let plan = SearchPlan { find, from: 8.0, most: 24.0, ..PLAN };
        let (asked, none) = searched(&plan, up_to(0.0));
        assert_eq!((none.end(), none.confirmed()), (Some(SearchEnd::NotEven), None));
        assert_eq!(asked.last().map(|ask| ask.value), Some(1.0));
        let (_, all) = searched(&plan, up_to(1e9));
        assert_eq!((all.end(), all.confirmed()), (Some(SearchEnd::AtLeast), Some(24.0)));
    }
}
