//! What Prometheus gets to see, and that the alerts of `docs/monitoring/alerts.yml` fire when they should. Needs Debian's exporter and `promtool`.

mod exporter;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use exporter::Exporter;

use crate::support::{Options, Server, ask, decide, error, info, replica_of, skip, wait_until};

const ALERTS: &str = include_str!("../../../docs/monitoring/alerts.yml");
const EXAMPLES: &str = include_str!("../../../docs/monitoring/alerts-test.yml");

/// Whether the machine has what the test needs; says so if not.
fn have(program: &str) -> bool {
    let found = Command::new("which").arg(program).output().is_ok_and(|which| which.status.success());
    if !found {
        skip(&format!("{program} is not installed, which scripts/setup --monitoring does on Debian"));
    }
    found
}

/// The fields of the module among what was scraped.
fn fields(scraped: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let fields = scraped.iter().filter_map(|(name, value)| {
        let key = name.strip_prefix("redis_script_values{key=\"")?.strip_suffix("\"}")?;
        Some((key.to_owned(), *value))
    });
    fields.collect()
}

#[test]
fn a_scrape_has_each_number_that_the_server_tells() {
    if !have("prometheus-redis-exporter") {
        return;
    }
    // With save points, so that whether effects are propagated stays as it is.
    let server = Options::new().set("save", "36000 1000000").start();
    let mut redis = server.connect();
    let exporter = Exporter::of(&server);
    let before = fields(&exporter.scrape());
    for allowed in [1, 1, 0] {
        assert_eq!(decide(&mut redis, "RL.FIXED f 2 36500d")[0], allowed);
    }
    for allowed in [1, 0, 0] {
        assert_eq!(decide(&mut redis, "RL.TOKENBUCKET b 5 1/d 3")[0], allowed);
    }
    error(&mut redis, "RL.LEAKY f 5 1/d");
    error(&mut redis, "RL.FIXED f 5 nonsense");

    let scraped = exporter.scrape();
    assert_eq!((scraped["redis_up"], scraped["redis_exporter_last_scrape_error{err=\"\"}"]), (1.0, 0.0));
    let now = fields(&scraped);
    let told: String = ask(&mut redis, "INFO rl");
    let told: BTreeMap<String, f64> = told
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect();
    assert_eq!(now, told);
    for (field, counted) in [
        ("rl_allowed", 3.0),
        ("rl_denied", 3.0),
        ("rl_fixed_window_allowed", 2.0),
        ("rl_fixed_window_denied", 1.0),
        ("rl_token_bucket_allowed", 1.0),
        ("rl_token_bucket_denied", 2.0),
        ("rl_sliding_window_allowed", 0.0),
        ("rl_errors", 2.0),
        ("rl_errors_wrongtype", 1.0),
        ("rl_panics_caught", 0.0),
    ] {
        assert_eq!(now[field] - before[field], counted, "{field}");
    }
}

#[test]
fn a_scrape_of_a_server_without_the_module_lacks_its_numbers_and_nothing_else() {
    if !have("prometheus-redis-exporter") {
        return;
    }
    let server = Options::new().module(None).start();
    let scraped = Exporter::of(&server).scrape();
    assert_eq!(scraped["redis_up"], 1.0);
    assert_eq!(fields(&scraped), BTreeMap::new());
}

/// When nothing else can be asked, the numbers still can.
#[test]
fn a_scrape_succeeds_without_memory_and_on_a_stale_replica() {
    if !have("prometheus-redis-exporter") {
        return;
    }
    let primary = Server::new();
    let replica = replica_of(&primary, Options::new().set("replica-serve-stale-data", "no"));
    let exporters = [&primary, &replica].map(Exporter::of);
    ask::<()>(&mut primary.connect(), "CONFIG SET maxmemory 1");
    error(&mut primary.connect(), "RL.FIXED new 9 1m");
    assert_eq!(fields(&exporters[0].scrape())["rl_errors_oom"], 1.0);
    drop(primary);
    let mut redis = replica.connect();
    wait_until("the link is down", || info(&mut redis, "replication", "master_link_status") == Some("down".into()));
    assert!(error(&mut redis, "RL.PEEK k").starts_with("MASTERDOWN "));
    assert!(fields(&exporters[1].scrape()).contains_key("rl_allowed"));
}

/// The names after `begin` in the alerts' expressions.
fn names(begin: &str) -> BTreeSet<&'static str> {
    let is_part = |symbol: char| symbol.is_ascii_alphanumeric() || symbol == '_';
    let lines = ALERTS.lines().filter(|line| !line.trim_start().starts_with('#'));
    let found = lines.flat_map(|line| line.match_indices(begin).map(move |(at, _)| &line[at..]));
    found.map(|text| text.split(|symbol| !is_part(symbol)).next().unwrap()).collect()
}

/// An alert that asks for what nobody tells never fires.
#[test]
fn whatever_the_alerts_ask_for_is_scraped() {
    if !have("prometheus-redis-exporter") {
        return;
    }
    let primary = Server::new();
    let replica = replica_of(&primary, Options::new());
    error(&mut primary.connect(), "NO.SUCH.COMMAND");
    let mut scraped = Exporter::of(&primary).scrape();
    scraped.extend(Exporter::of(&replica).scrape());
    let known: BTreeSet<&str> = scraped.keys().map(|name| name.split('{').next().unwrap()).collect();
    let metrics = names("redis_");
    assert!(metrics.len() > 10, "{metrics:?}");
    for metric in metrics {
        assert!(known.contains(metric), "nobody tells {metric}");
    }
    let fields = fields(&scraped);
    let keys = names("rl_");
    for key in keys.iter().filter(|key| ALERTS.contains(&format!("key=\"{key}\""))) {
        assert!(fields.contains_key(*key), "nobody tells {key}");
    }
}

fn promtool(arguments: &[&str]) {
    let ran = Command::new("promtool")
        .args(arguments)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/monitoring"))
        .output();
    let ran = ran.unwrap();
    let (said, wrong) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "promtool {arguments:?}: {said}{wrong}");
}

#[test]
fn alerts_fire_when_they_should() {
    if !have("promtool") {
        return;
    }
    promtool(&["check", "rules", "alerts.yml"]);
    promtool(&["test", "rules", "alerts-test.yml"]);
}

#[test]
fn each_alert_has_an_example_in_which_it_fires_and_one_in_which_it_does_not() {
    let alerts: Vec<&str> = ALERTS.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() >= 14, "{alerts:?}");
    for alert in alerts {
        let examples =
            EXAMPLES.split("- eval_time:").filter(|example| example.contains(&format!("alertname: {alert}\n")));
        let (silent, firing): (Vec<&str>, Vec<&str>) = examples.partition(|example| example.contains("exp_alerts: []"));
        assert!(!silent.is_empty() && !firing.is_empty(), "{alert}");
    }
}
