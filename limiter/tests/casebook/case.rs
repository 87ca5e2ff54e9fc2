//! Cases as they are written down.

use serde::Deserialize;
use serde_json::{Map, Value};

const CASEBOOK: &str = include_str!("../../../tests/casebook/casebook.json");

/// What a case expects of a step, or does to a server: words, each with a value.
pub type Words = Map<String, Value>;

/// All cases, in their order.
pub fn cases() -> Vec<Case> {
    serde_json::from_str(CASEBOOK).expect("a readable casebook")
}

#[derive(Deserialize)]
pub struct Case {
    pub id: String,
    pub title: String,
    /// The moment, in ms since the Unix epoch, from which a case counts its time. A multiple of a week.
    t0_ms: i64,
    pub steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// With a fraction where a case needs microseconds.
    at_ms: f64,
    pub call: Option<Call>,
    /// Something other than a call that happens to a server or a client.
    #[serde(default)]
    pub env: Words,
    /// So many calls.
    #[serde(default = "once")]
    pub repeat: usize,
    /// So far apart; 0: all at one moment.
    #[serde(default)]
    every_ms: f64,
    /// How the calls are issued, where it matters.
    concurrency: Option<String>,
    #[serde(default)]
    pub expect: Words,
}

#[derive(Deserialize)]
pub struct Call {
    #[serde(rename = "algo")]
    algorithm: String,
    params: Words,
    #[serde(default)]
    cost: Value,
    key: Option<String>,
    /// Of a concurrency limit: what is done to a place, and whose it is.
    op: Option<String>,
    holder: Option<String>,
}

/// An algorithm as this project names them. What the casebook calls GCRA is a token bucket here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    FixedWindow,
    SlidingWindow,
    SlidingLog,
    TokenBucket,
    LeakyBucket,
    Concurrency,
    /// Not one that decides: a place of a concurrency limit is given back.
    Release,
}

/// A call as a client sends it: nothing in it has been read as a number.
#[derive(Debug)]
pub struct Request {
    pub kind: Kind,
    pub key: Vec<u8>,
    /// The limit or the capacity.
    pub most: String,
    /// The window or the rate.
    pub pace: String,
    pub cost: String,
    /// Of a concurrency limit.
    pub holder: String,
}

const fn once() -> usize {
    1
}

impl Case {
    /// The limits of the one case that asks several at once, as it has them in words: keys, limits and windows. Each
    /// call costs 1.
    pub const SEVERAL: [(&str, &str, &str); 2] = [("{k}:second", "1", "1000ms"), ("{k}:minute", "2", "60000ms")];

    /// The moment at which a step begins, in µs since the Unix epoch.
    pub fn moment(&self, step: &Step) -> i64 {
        self.t0_ms * 1_000 + micros(step.at_ms)
    }

    /// The moments of a step's calls.
    pub fn moments<'a>(&self, step: &'a Step) -> impl Iterator<Item = i64> + use<'a> {
        let (begin, apart) = (self.moment(step), micros(step.every_ms));
        (0..step.repeat).map(move |index| begin + apart * i64::try_from(index).expect("fewer calls"))
    }

    /// What stands for the casebook's leaky bucket, which is a meter: it says who is admitted and makes nobody wait.
    /// Admission is the same in a token bucket and in a leaky bucket as a queue, so a case with a meter is run as each.
    pub fn meters(&self) -> &'static [Kind] {
        let has_meter = self.steps.iter().any(|step| step.call.as_ref().is_some_and(Call::is_meter));
        if has_meter { &[Kind::TokenBucket, Kind::LeakyBucket] } else { &[Kind::TokenBucket] }
    }
}

impl Step {
    /// Whether all calls are made at one moment.
    pub fn is_instant(&self) -> bool {
        self.repeat == 1 || self.every_ms == 0.0
    }

    /// Whether the step asks [`Case::SEVERAL`] limits at once.
    pub fn asks_several(&self) -> bool {
        self.env.get("pseudo").and_then(Value::as_str).is_some_and(|words| words.starts_with("MULTI-LIMIT"))
    }

    /// By how many connections the calls are to be made at once, if not by one.
    pub fn connections(&self) -> Option<usize> {
        let number = self.concurrency.as_deref()?.strip_suffix(" connections")?;
        Some(number.parse().expect("a number of connections"))
    }
}

impl Call {
    /// The key that a case means if it names none.
    pub const KEY: &str = "k";

    fn is_meter(&self) -> bool {
        self.algorithm == "leaky_bucket"
    }

    /// The call that a client sends, with `meter` in place of a meter.
    pub fn request(&self, meter: Kind) -> Request {
        let (kind, most, pace) = match self.algorithm.as_str() {
            "fixed_window" => (Kind::FixedWindow, self.param("limit"), self.window()),
            "sliding_counter" => (Kind::SlidingWindow, self.param("limit"), self.window()),
            "sliding_log" => (Kind::SlidingLog, self.param("limit"), self.window()),
            "token_bucket" => (Kind::TokenBucket, self.param("capacity"), self.rate("refill_tokens", "refill_ms")),
            "leaky_bucket" => (meter, self.param("capacity"), self.rate("leak_tokens", "leak_ms")),
            "gcra" => {
                let burst = self.params["max_burst"].as_u64().expect("a burst");
                (Kind::TokenBucket, (burst + 1).to_string(), self.rate("count", "period_ms"))
            }
            "concurrency" if self.op.as_deref() == Some("release") => (Kind::Release, String::new(), String::new()),
            "concurrency" => (Kind::Concurrency, self.param("limit"), self.param("lease_ms") + "ms"),
            other => panic!("the casebook has no algorithm {other}"),
        };
        let key = unescape(self.key.as_deref().unwrap_or(Self::KEY));
        let cost = if self.cost.is_null() { "1".to_owned() } else { text(&self.cost) };
        Request { kind, key, most, pace, cost, holder: self.holder.clone().unwrap_or_default() }
    }

    fn param(&self, name: &str) -> String {
        text(&self.params[name])
    }

    fn window(&self) -> String {
        self.param("window_ms") + "ms"
    }

    fn rate(&self, units: &str, millis: &str) -> String {
        format!("{}/{}ms", self.param(units), self.param(millis))
    }
}

/// What stands for these bytes in a command: texts are to be sent as they are.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Keys are written with the escape `\xff` for a byte.
fn unescape(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).expect("two hexadecimal digits"));
        bytes.extend(rest.as_bytes());
    }
    bytes
}

/// All times of the casebook are whole microseconds.
fn micros(millis: f64) -> i64 {
    (millis * 1_000.0).round() as i64
}
