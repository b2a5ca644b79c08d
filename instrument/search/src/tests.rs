//! The search on systems whose limit is known.

use super::*;

const PLAN: SearchPlan = SearchPlan {
    from_per_s: 50.0,
    most_per_s: 100_000.0,
    width: 0.05,
    margin: 0.05,
    bracket: Duration::from_secs(10),
    hold: Duration::from_secs(30),
    confirmations: 3,
};

/// Every trial of a search of a system of which `class` is the answer, and the search at its end.
fn searched(plan: &SearchPlan, class: impl Fn(Ask) -> Seen) -> (Vec<Ask>, Search) {
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
        class: if ask.per_s <= capacity { SearchClass::Kept } else { SearchClass::Failed },
        through_per_s: ask.per_s.min(capacity),
    }
}

/// Claim: of a system with a fixed capacity, near or far from the first rate, the result lies at most margin and width
/// below it, the rate above it is refuted, and nothing above twice the capacity is offered but in the first trial.
#[test]
fn a_fixed_capacity() {
    for capacity in [0.7, 12.0, 49.0, 51.0, 333.0, 4_711.0, 60_000.0] {
        let (asked, search) = searched(&PLAN, up_to(capacity));
        assert_eq!(search.end(), Some(SearchEnd::Found), "{capacity}: {search:?}");
        let confirmed = search.confirmed_per_s().unwrap();
        let least = capacity / (1.0 + PLAN.width) * (1.0 - PLAN.margin) * 0.99;
        assert!((least..=capacity).contains(&confirmed), "{capacity}: {confirmed}");
        let refuted = search.refuted_per_s().unwrap();
        assert!(refuted > capacity && refuted < confirmed * 1.12, "{capacity}: {refuted}");
        let most = asked.iter().skip(1).map(|ask| ask.per_s).fold(0.0, f64::max);
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
    let (_, all) = searched(&SearchPlan { most_per_s: 700.0, ..PLAN }, up_to(1e9));
    assert_eq!((all.end(), all.confirmed_per_s()), (Some(SearchEnd::AtLeast), Some(700.0)));
    let (asked, none) = searched(&PLAN, up_to(0.0));
    assert_eq!((none.end(), none.confirmed_per_s()), (Some(SearchEnd::NotEven), None));
    assert!(asked.len() < 15);
    let untold = |_| Seen { class: SearchClass::Untold, through_per_s: 1.0 };
    let (asked, search) = searched(&PLAN, untold);
    assert_eq!((search.end(), search.confirmed_per_s()), (Some(SearchEnd::Untold), None));
    assert_eq!(asked.len(), 3);
    // Every bracket and bisection passes up to 400/s, and no confirmation ever does.
    let (_, search) = searched(&PLAN, |ask| match ask.role {
        SearchRole::Confirm => Seen { class: SearchClass::Failed, through_per_s: ask.per_s },
        _ => up_to(400.0)(ask),
    });
    assert!(matches!(search.end(), Some(SearchEnd::NotEven | SearchEnd::Unsteady)), "{search:?}");
    assert_eq!(search.confirmed_per_s(), None);
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
    let confirmed = search.confirmed_per_s().unwrap();
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
    let confirmed = search.confirmed_per_s().unwrap();
    assert!((890.0..=1_000.0).contains(&confirmed), "{confirmed}: {search:?}");
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
    let (asked, search) = searched(&PLAN, up_to(4.0 * PLAN.from_per_s));
    let length: Duration = asked.iter().map(|ask| ask.length + warmup).sum();
    assert_eq!(Search::new(&PLAN).remaining(warmup), length);
    assert_eq!(search.remaining(warmup), Duration::ZERO);
}

/// Claim: with a width and a margin of 1 % a sharp limit is found to 2 %: a limiter of 50/s between 49 and 51.
#[test]
fn narrow() {
    let (_, search) = searched(&SearchPlan { width: 0.01, margin: 0.01, ..PLAN }, up_to(50.0));
    let (low, high) = (search.confirmed_per_s().unwrap(), search.refuted_per_s().unwrap());
    assert!((49.0..=50.0).contains(&low) && (50.0..=51.0).contains(&high), "{low} {high}");
}
