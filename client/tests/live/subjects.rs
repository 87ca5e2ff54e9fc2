//! Subjects that somebody made up to do harm, in a cluster.

use std::collections::HashSet;
use std::time::Duration;

use redis_rl_client::{HOUR, Limiter, Policy, Source};

use crate::support::{Cluster, ask};

/// As bytes, since they come from requests.
fn hostile() -> Vec<Vec<u8>> {
    let mut subjects: Vec<Vec<u8>> = [
        "",
        "{",
        "}",
        "{}",
        "}{",
        "{}{}",
        "{{",
        "}}",
        "{a}",
        "a{",
        "a}",
        "{a",
        "}a",
        "a{}",
        "{}a",
        "a{b}c",
        "a}b{c",
        "{a}{b}",
        "%",
        "%%",
        "%25",
        "%7B",
        "%7B%7D",
        "%sha256-",
        "a:b",
        ":",
        "}:p",
        "}:p{",
        "a b",
        " ",
        "\n",
        "a\r\nDEL x\r\n",
        "\0",
        "*3\r\n$3\r\nDEL\r\n",
        "é",
        "日本",
        "\u{202e}",
        "'\"\\",
        "*",
        "?",
        "[a]",
    ]
    .iter()
    .map(|subject| subject.as_bytes().to_vec())
    .collect();
    subjects.push((0..=255).collect());
    subjects.extend((0..=255).map(|byte| vec![byte, b'x']));
    subjects.push(vec![b'{'; 1 << 20]);
    subjects.push(vec![b'}'; 1 << 20]);
    subjects.push(vec![0xFF; 1 << 20]);
    subjects.push([vec![b'a'; 1 << 20], vec![b'b']].concat());
    subjects.push(vec![b'a'; 1 << 20]);
    subjects
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_has_a_count_of_its_own_where_the_client_looks_for_it() {
    let cluster = Cluster::of(3);
    let builder = Limiter::cluster(cluster.addresses()).deadline(Duration::from_secs(5)).nodes(1).without_fleet();
    let limiter = builder.connect().await.unwrap();
    let [policy, other] = ["p", "q"].map(|name| Policy::fixed_window(name, 2, 36_500 * 24 * HOUR).unwrap());
    let subjects = hostile();
    assert_eq!(subjects.iter().collect::<HashSet<_>>().len(), subjects.len());
    for subject in &subjects {
        let shown = subject[..subject.len().min(40)].escape_ascii().to_string();
        for remaining in [1, 0] {
            let decision = limiter.try_check(&policy, subject).await.unwrap_or_else(|error| panic!("{shown}: {error}"));
            assert_eq!((decision.allowed, decision.source), (true, Source::Redis), "{shown}");
            assert_eq!(decision.remaining, Some(remaining), "{shown}");
        }
        assert!(!limiter.check(&policy, subject).await.allowed, "{shown}");
        assert_eq!(limiter.check(&other, subject).await.remaining, Some(1), "{shown}");
    }
    let mut keys = 0;
    for connection in &mut cluster.connections() {
        let here: Vec<String> = ask(connection, "KEYS *");
        keys += here.len();
        for key in &here {
            assert!(key.len() < 200 && key.bytes().all(|byte| byte.is_ascii_graphic()), "{key}");
            assert!(key.starts_with("rl:{") && (key.ends_with("}:p") || key.ends_with("}:q")), "{key}");
            // All limits of a subject must share a slot, or a command about several would be refused.
            let [slot, other]: [usize; 2] = ["p", "q"].map(|name| {
                let key = format!("{}{name}", &key[..key.len() - 1]);
                ask(connection, &format!("CLUSTER KEYSLOT {key}"))
            });
            assert_eq!(slot, other, "{key}");
        }
    }
    assert_eq!(keys, 2 * subjects.len(), "keys of all subjects");
    assert_eq!((cluster.errors("MOVED"), cluster.errors("CROSSSLOT")), (0, 0), "the client's slots are the servers'");
}
