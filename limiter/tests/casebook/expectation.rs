//! Replies, held against what is expected of them.

use serde_json::{Value, json};

use super::case::Words;

/// What came back.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The five integers of a decision.
    Decision([i64; 5]),
    /// The whole text of an error.
    Error(String),
    /// Anything else.
    Plain(Value),
}

/// Where the fields of a decision stand.
pub const ALLOWED: usize = 0;
pub const LIMIT: usize = 1;
pub const REMAINING: usize = 2;
pub const RETRY_AFTER: usize = 3;
pub const RESET: usize = 4;

/// A wait that never ends.
pub const NEVER: i64 = -1;

const MAX_EXACT: i64 = (1 << 53) - 1;

/// The replies of one step against all that is expected of them.
pub fn check(expected: &Words, replies: &[Reply]) -> Result<(), String> {
    match expected.iter().find(|(word, value)| !holds(word, value, replies)) {
        None => Ok(()),
        Some((word, value)) => Err(format!("expected {word} {value}, got {}", shown(replies))),
    }
}

/// What holds for every reply to a call, whatever a case expects. Where calls queue, the fourth field of one that is
/// admitted is its delay.
pub fn check_bounds(reply: &Reply, queues: bool) -> Result<(), String> {
    let [allowed, limit, remaining, retry_after, reset] = match reply {
        Reply::Decision(fields) => *fields,
        Reply::Error(text) if text.starts_with("ERR ") && !text.contains(" must be ") => {
            return Err(format!("{text:?} does not say what an argument must be"));
        }
        _ => return Ok(()),
    };
    let retry_fits = match allowed {
        1 => queues || retry_after == 0,
        _ => retry_after == NEVER || retry_after >= 1,
    };
    let fits = (0..=1).contains(&allowed)
        && (0..=MAX_EXACT).contains(&limit)
        && (0..=limit).contains(&remaining)
        && (0..=MAX_EXACT).contains(&reset)
        && (NEVER..=MAX_EXACT).contains(&retry_after)
        && retry_fits;
    if fits { Ok(()) } else { Err(format!("{reply:?} can't be a decision")) }
}

/// Whether a case leaves several answers open.
pub fn is_choice(expected: &Words) -> bool {
    expected.keys().any(|word| word == "one_of" || word.ends_with("_min") || word.ends_with("_max"))
}

/// Reads an expectation in the casebook's own short form: `DENY, rem 2, retry never`.
pub fn read(notation: &str) -> Words {
    let mut words = Words::new();
    let mut expect = |word: &str, value: Value| words.insert(word.to_owned(), value);
    for part in notation.split(", ") {
        match part.split_once(' ').unwrap_or((part, "")) {
            ("ALLOW", "") => expect("allowed", json!(true)),
            ("DENY", "") => expect("allowed", json!(false)),
            ("ERROR", "") => expect("error", json!("ERR")),
            ("ERROR", code) => expect("error", json!(code)),
            ("limit", number) => expect("limit", integer(number)),
            ("rem", number) => expect("remaining", integer(number)),
            ("retry", "never") => expect("retry_after_ms", json!("never")),
            ("retry", number) => expect("retry_after_ms", integer(number)),
            ("delay", number) => expect("delay_ms", integer(number)),
            ("reset", number) => expect("reset_ms", integer(number)),
            ("passed", number) => expect("allowed_count", integer(number)),
            ("reply", number) => expect("reply", integer(number)),
            ("has", flags) => expect("contains", json!(flags.split(' ').collect::<Vec<_>>())),
            ("lacks", flags) => expect("lacks", json!(flags.split(' ').collect::<Vec<_>>())),
            ("pttl", bounds) => {
                let (least, most) = bounds.split_once(" to ").expect("two bounds");
                expect("pttl_ms_min", integer(least));
                expect("pttl_ms_max", integer(most))
            }
            _ => panic!("what does {part} expect?"),
        };
    }
    words
}

fn integer(text: &str) -> Value {
    json!(text.parse::<i64>().expect("an integer"))
}

fn holds(word: &str, value: &Value, replies: &[Reply]) -> bool {
    let number = || value.as_i64().unwrap_or_else(|| panic!("{word} {value}: not a number"));
    match word {
        "one_of" => alternatives(value).any(|words| check(words, replies).is_ok()),
        "allowed" => field(replies, ALLOWED) == value.as_bool().map(i64::from),
        "limit" => field(replies, LIMIT) == Some(number()),
        "remaining" => field(replies, REMAINING) == Some(number()),
        "remaining_min" => field(replies, REMAINING) >= Some(number()),
        "remaining_max" => field(replies, REMAINING).is_some_and(|remaining| remaining <= number()),
        "retry_after_ms" if value == "never" => field(replies, RETRY_AFTER) == Some(NEVER),
        "retry_after_ms" | "delay_ms" => field(replies, RETRY_AFTER) == Some(number()),
        "retry_after_ms_max" => field(replies, RETRY_AFTER).is_some_and(|wait| wait != NEVER && wait <= number()),
        "reset_ms" => field(replies, RESET) == Some(number()),
        "allowed_count" => count_allowed(replies) == Some(number()),
        "allowed_count_min" => count_allowed(replies) >= Some(number()),
        "allowed_count_max" => count_allowed(replies).is_some_and(|count| count <= number()),
        "error" => match value {
            Value::String(code) => replies.iter().all(|reply| error_code(reply) == Some(code)),
            _ => replies.iter().all(|reply| error_code(reply).is_some()) == (value == true),
        },
        "reply" => {
            !replies.is_empty() && replies.iter().all(|reply| matches!(reply, Reply::Plain(got) if got == value))
        }
        "equals" | "equal" => plain(replies) == Some(value),
        "error_inside" => {
            let text = plain(replies).and_then(Value::as_str);
            text.is_some_and(|text| text.starts_with("ERR ")) == (value == true)
        }
        "pttl_ms_min" | "at_least" => plain_number(replies) >= Some(number()),
        "pttl_ms_max" | "at_most" => plain_number(replies).is_some_and(|got| got <= number()),
        "contains" => replies.iter().all(|reply| elements(value).iter().all(|element| has(reply, element))),
        "lacks" => replies.iter().all(|reply| !elements(value).iter().any(|element| has(reply, element))),
        "pattern" => {
            let named = |reply: &Value| if reply == 1 { "allowed" } else { "denied" };
            plain(replies).is_some_and(|got| elements(got).iter().map(named).eq(elements(value)))
        }
        _ => panic!("the casebook expects {word}, which is not understood here"),
    }
}

fn alternatives(value: &Value) -> impl Iterator<Item = &Words> {
    elements(value).iter().map(|words| words.as_object().expect("words"))
}

fn elements(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A field of the decision, if there is just one.
fn field(replies: &[Reply], index: usize) -> Option<i64> {
    match replies {
        [Reply::Decision(fields)] => Some(fields[index]),
        _ => None,
    }
}

/// How many were allowed, if all were decided.
fn count_allowed(replies: &[Reply]) -> Option<i64> {
    replies.iter().try_fold(0, |count, reply| match reply {
        Reply::Decision(fields) => Some(count + fields[ALLOWED]),
        _ => None,
    })
}

fn error_code(reply: &Reply) -> Option<&str> {
    match reply {
        Reply::Error(text) => text.split(' ').next(),
        _ => None,
    }
}

fn plain(replies: &[Reply]) -> Option<&Value> {
    match replies {
        [Reply::Plain(value)] => Some(value),
        _ => None,
    }
}

fn plain_number(replies: &[Reply]) -> Option<i64> {
    plain(replies).and_then(Value::as_i64)
}

fn has(reply: &Reply, element: &Value) -> bool {
    matches!(reply, Reply::Plain(list) if elements(list).contains(element))
}

/// A few of the replies, and how many there are.
fn shown(replies: &[Reply]) -> String {
    match replies {
        [] => "nothing".to_owned(),
        [reply] => format!("{reply:?}"),
        [first, .., last] => {
            let count = count_allowed(replies);
            format!("{} replies from {first:?} to {last:?}, allowed: {count:?}", replies.len())
        }
    }
}
