//! The 23 published rows of an HTTP study made with vegeta 12.7, against the formulas here. Data, not prose.

use super::rates;

/// Name, seconds, requests, rate, throughput, wait in ms, success in percent, (code, count).
type Published = (&'static str, u64, u64, f64, f64, f64, f64, &'static [(u16, u64)]);

#[rustfmt::skip]
const ROWS: [Published; 23] = [
    ("all_240_TX_20", 240, 4800, 20.00, 19.00, 319.5, 95.12, &[(200, 4566), (404, 234)]),
    ("all_240_TX_30", 240, 7200, 30.00, 28.54, 151.8, 95.17, &[(200, 6852), (404, 348)]),
    ("all_240_TX_40", 240, 9600, 40.00, 38.00, 413.3, 95.16, &[(200, 9135), (404, 465)]),
    ("all_240_TX_50", 240, 12000, 50.00, 47.48, 419.0, 95.12, &[(200, 11415), (404, 585)]),
    ("all_600_TX_20", 600, 12000, 20.00, 19.48, 107.8, 97.41, &[(200, 11689), (404, 311)]),
    ("all_600_TX_25", 600, 15000, 25.00, 24.36, 116.5, 97.43, &[(200, 14615), (404, 385)]),
    ("all_600_TX_30", 600, 18000, 30.00, 29.24, 106.3, 97.47, &[(200, 17544), (404, 456)]),
    ("all_600_TX_35", 600, 21000, 35.00, 34.06, 757.7, 97.44, &[(200, 20463), (404, 537)]),
    ("all_600_TX_40", 600, 24000, 40.00, 38.96, 328.3, 97.44, &[(200, 23386), (404, 614)]),
    ("all_600_TX_50", 600, 30000, 50.00, 48.70, 190.0, 97.43, &[(0, 27), (200, 29229), (404, 744)]),
    ("dapp_600_TX_20", 600, 12000, 20.00, 19.93, 227.2, 99.67, &[(200, 11961), (404, 39)]),
    ("dapp_600_TX_30", 600, 18000, 30.00, 29.88, 206.3, 99.62, &[(200, 17931), (404, 69)]),
    ("dapp_600_TX_40", 600, 24000, 40.00, 39.87, 323.4, 99.73, &[(200, 23936), (404, 64)]),
    ("dapp_600_TX_50", 600, 30000, 50.00, 49.83, 306.1, 99.71, &[(200, 29913), (404, 87)]),
    ("large_240_TX_45", 240, 10800, 45.00, 44.98, 107.4, 100.00, &[(200, 10800)]),
    ("large_240_TX_48", 240, 11520, 48.00, 47.98, 115.3, 100.00, &[(200, 11520)]),
    ("large_240_TX_49", 240, 11760, 49.00, 27.44, 395.4, 56.09, &[(200, 6596), (404, 5164)]),
    ("large_240_TX_50", 240, 12000, 50.00, 11.10, 104.4, 22.21, &[(200, 2665), (404, 9335)]),
    ("large_600_TX_20", 600, 12000, 20.00, 20.00, 119.4, 100.00, &[(200, 12000)]),
    ("large_600_TX_30", 600, 18000, 30.00, 29.99, 193.5, 100.00, &[(200, 18000)]),
    ("large_600_TX_40", 600, 24000, 40.00, 32.89, 448.4, 82.27, &[(200, 19745), (404, 4255)]),
    ("large_600_TX_50", 600, 30000, 50.00, 6.48, 132.1, 12.95, &[(200, 3886), (404, 26114)]),
    ("log_240_TX_40", 240, 9600, 40.00, 0.00, 25875.1, 0.00, &[(0, 9591), (404, 9)]),
];

/// Claim: requests = rate × duration; success is the share of 2xx and 3xx; throughput = successes ÷ (attack +
/// wait) with attack = duration − 1 ÷ rate. All 23 rows, to the digits printed.
#[test]
fn published_rows_follow_the_formulas() {
    for (name, seconds, requests, rate, throughput, wait_ms, success, codes) in ROWS {
        assert_eq!((rate * seconds as f64).round() as u64, requests, "{name}");
        assert_eq!(codes.iter().map(|(_, count)| count).sum::<u64>(), requests, "{name}");
        let successes: u64 = codes
            .iter()
            .filter(|(code, _)| (200..400).contains(code))
            .map(|(_, count)| count)
            .sum();
        let attack_ns = ((seconds as f64 - 1.0 / rate) * 1e9).round() as i64;
        let (rate_now, throughput_now, success_now) =
            rates(requests, successes, attack_ns, (wait_ms * 1e6) as i64);
        assert!((rate_now - rate).abs() < rate * 0.005, "{name}: rate {rate_now}");
        assert!(
            (throughput_now - throughput).abs() <= 0.0101,
            "{name}: {throughput_now} for {throughput}"
        );
        assert!(
            (success_now * 100.0 - success).abs() <= 0.0051,
            "{name}: {success_now} for {success}"
        );
    }
}
