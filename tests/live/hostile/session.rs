//! A connection that sends whatever it is told, many words at a time, and looks at every answer.

use redis::{Connection, ConnectionLike, Value};

use super::arguments::Words;
use crate::support::{Server, ask, info};

/// Calls that are sent at once.
const BATCH: usize = 4_000;
/// What may stay behind in the server's memory after all data is gone: buffers, tables.
const LEFT_BEHIND: u64 = 16 << 20;
/// The largest number in a reply.
const MOST: i64 = (1 << 53) - 1;

pub struct Session<'a> {
    server: &'a Server,
    redis: Connection,
    run_id: String,
    used_memory: u64,
    packed: Vec<u8>,
    /// Where in it each call begins.
    begins: Vec<usize>,
    calls: usize,
    refused: usize,
}

impl<'a> Session<'a> {
    pub fn begin(server: &'a Server) -> Self {
        let mut redis = server.connect();
        let run_id = info(&mut redis, "server", "run_id").unwrap();
        let used_memory = used_memory(&mut redis);
        Self { server, redis, run_id, used_memory, packed: Vec::new(), begins: Vec::new(), calls: 0, refused: 0 }
    }

    /// Sends the words of a call, sooner or later.
    pub fn send(&mut self, words: &[&[u8]]) {
        let mut command = redis::Cmd::new();
        for word in words {
            command.arg(*word);
        }
        self.begins.push(self.packed.len());
        command.write_packed_command(&mut self.packed);
    }

    /// The same for words that were made.
    pub fn call(&mut self, words: &Words) {
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        self.send(&words);
    }

    /// What is under a key.
    pub fn value_of(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        self.send(&[b"GET", key]);
        match self.answers().pop() {
            Some(Value::BulkString(value)) => Some(value),
            _ => None,
        }
    }

    /// Looks at the answers as soon as there are many.
    pub fn check_often(&mut self) {
        if self.begins.len() >= BATCH || self.packed.len() > 4 << 20 {
            self.answers();
        }
    }

    /// The answers to what was sent.
    fn answers(&mut self) -> Vec<Value> {
        self.send(&[b"PING"]);
        let (packed, begins) = (std::mem::take(&mut self.packed), std::mem::take(&mut self.begins));
        let answers = self.redis.req_packed_commands(&packed, 0, begins.len());
        let mut answers =
            answers.unwrap_or_else(|error| panic!("the server answers no more: {error}\n{}", self.server.log()));
        for (answer, &begin) in answers.iter().zip(&begins) {
            if let Err(wrong) = judge(answer) {
                let call = &packed[begin..packed.len().min(begin + 300)];
                panic!("{wrong} to {} …", call.escape_ascii());
            }
        }
        assert_eq!(answers.pop(), Some(Value::SimpleString("PONG".to_owned())));
        self.calls += answers.len();
        self.refused += answers.iter().filter(|answer| matches!(answer, Value::ServerError(_))).count();
        answers
    }

    /// It is still the same server, all of whose memory comes back.
    pub fn end(mut self) {
        self.answers();
        let log = self.server.log();
        assert!(!log.contains("panicked"), "{log}");
        assert_eq!(info(&mut self.redis, "server", "run_id"), Some(self.run_id), "another server");
        assert_eq!(info(&mut self.redis, "rl", "rl_panics_caught").as_deref(), Some("0"));
        let with_data = used_memory(&mut self.redis);
        ask::<()>(&mut self.redis, "FLUSHALL");
        let after = used_memory(&mut self.redis);
        println!(
            "{} calls, {} refused; memory {} before, {with_data} with all data, {after} after",
            self.calls, self.refused, self.used_memory
        );
        assert!(after < self.used_memory + LEFT_BEHIND, "{after} bytes where there were {}", self.used_memory);
        assert!(
            with_data < self.used_memory + 4 * LEFT_BEHIND,
            "{with_data} bytes where there were {}",
            self.used_memory
        );
    }
}

/// Says what is wrong with an answer. An error must begin with a code; any other answer must keep to its bounds.
fn judge(answer: &Value) -> Result<(), String> {
    match answer {
        Value::ServerError(error) => {
            let (code, text) = (error.code(), error.details().unwrap_or_default());
            let is_code = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_uppercase());
            if is_code && !text.contains("internal error") { Ok(()) } else { Err(format!("{code} {text}")) }
        }
        Value::Array(values) => values.iter().try_for_each(judge),
        Value::Int(number) if !(-1..=MOST).contains(number) => Err(number.to_string()),
        _ => Ok(()),
    }
}

fn used_memory(redis: &mut Connection) -> u64 {
    info(redis, "memory", "used_memory").unwrap().parse().unwrap()
}
