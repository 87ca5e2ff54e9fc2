//! Events of keys: what listeners hear, and what they don't.

use redis::{Connection, PubSub};

use crate::support::{Options, Server, ask, decide, error, send};

const CHANNELS: [&str; 2] = ["__keyevent@*__:*", "__keyspace@*__:*"];

fn listen(listener: &mut Connection) -> PubSub<'_> {
    let mut events = listener.as_pubsub();
    for channel in CHANNELS {
        events.psubscribe(channel).unwrap();
    }
    events
}

/// What is heard until somebody says `end`, without the class and database of the channel.
fn heard(redis: &mut Connection, events: &mut PubSub<'_>) -> Vec<String> {
    ask::<i64>(redis, "PUBLISH __keyevent@0__:end now");
    let mut heard = vec![];
    loop {
        let message = events.get_message().unwrap();
        let (channel, payload) = (message.get_channel_name().to_owned(), message.get_payload::<String>().unwrap());
        if channel == "__keyevent@0__:end" {
            return heard;
        }
        heard.push(format!("{channel} {payload}"));
    }
}

fn denied_once(server: &Server, flags: &str) -> Vec<String> {
    let mut redis = server.connect();
    ask::<()>(&mut redis, "DEL k");
    decide(&mut redis, "RL.TOKENBUCKET k 1 1/w");
    ask::<()>(&mut redis, &format!("CONFIG SET notify-keyspace-events {flags}"));
    let mut listener = server.connect();
    let mut events = listen(&mut listener);
    assert_eq!(decide(&mut redis, "RL.TOKENBUCKET k 1 1/w")[0], 0);
    heard(&mut redis, &mut events)
}

#[test]
fn a_denied_call_is_an_event_where_both_settings_say_so() {
    let server = Server::new();
    let mut redis = server.connect();
    assert_eq!(ask::<Vec<String>>(&mut redis, "CONFIG GET rl.notify-denied"), ["rl.notify-denied", "no"]);
    assert_eq!(denied_once(&server, "KEA"), [""; 0]);

    ask::<()>(&mut redis, "CONFIG SET rl.notify-denied yes");
    let (event, space) = ("__keyevent@0__:rl.denied k", "__keyspace@0__:k rl.denied");
    for (flags, expected) in [
        ("Ed", vec![event]),
        ("Kd", vec![space]),
        ("KEd", vec![space, event]),
        ("KEA", vec![space, event]),
        // A class without a channel, and a channel without the class.
        ("d", vec![]),
        ("KE$", vec![]),
    ] {
        assert_eq!(denied_once(&server, flags), expected, "{flags}");
    }
    assert!(send::<()>(&mut redis, "CONFIG SET rl.notify-denied maybe").is_err());
    ask::<()>(&mut redis, "CONFIG SET rl.notify-denied no");
    assert_eq!(denied_once(&server, "KEA"), [""; 0]);
}

#[test]
fn only_denied_calls_that_ask_for_something_are_events() {
    let server = Options::new().set("notify-keyspace-events", "Ed").set("rl.notify-denied", "yes").start();
    let mut redis = server.connect();
    let mut listener = server.connect();
    let mut events = listen(&mut listener);
    for command in ["RL.FIXED f 1 36500d", "RL.SLIDING s 1 36500d", "RL.SLIDINGLOG log 1 36500d"] {
        assert_eq!(decide(&mut redis, command)[0], 1);
    }
    for command in ["RL.TOKENBUCKET b 1 1/w", "RL.LEAKY l 1 1/w"] {
        assert_eq!(decide(&mut redis, command)[0], 1);
    }
    decide(&mut redis, "RL.PEEK b");
    decide(&mut redis, "RL.TOKENBUCKET b 1 1/w 0");
    error(&mut redis, "RL.FIXED b 1 1");
    assert_eq!(heard(&mut redis, &mut events), [""; 0]);
    for command in ["RL.FIXED f 1 36500d", "RL.SLIDING s 1 36500d", "RL.SLIDINGLOG log 1 36500d"] {
        assert_eq!(decide(&mut redis, command)[0], 0);
    }
    for command in ["RL.TOKENBUCKET b 1 1/w", "RL.LEAKY l 1 1/w"] {
        assert_eq!(decide(&mut redis, command)[0], 0);
    }
    let expected = ["f", "s", "log", "b", "l"].map(|key| format!("__keyevent@0__:rl.denied {key}"));
    assert_eq!(heard(&mut redis, &mut events), expected);
}
