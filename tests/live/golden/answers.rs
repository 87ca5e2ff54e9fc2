//! Calls and their replies, as a file.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use redis::{Connection, Value};

use crate::support::{Server, ask};

const FILE: &str = "answers.txt";

/// Asks what the file asks, and compares. Returns how many answers there were.
pub fn replay(server: &mut Server, folder: &Path) -> usize {
    let mut redis = server.connect();
    let mut answers = 0;
    for line in fs::read_to_string(folder.join(FILE)).unwrap().lines() {
        if let Some(moment) = line.strip_prefix("@ ") {
            server.clock().set(moment.parse().unwrap());
            continue;
        }
        let (question, expected) = line.split_once(" = ").unwrap();
        let told = answer(&mut redis, question);
        // Later versions may tell people more.
        let has_all = question.starts_with("RL.INSPECT")
            && expected.split("; ").all(|field| told.split("; ").any(|other| other == field));
        assert!(told == expected || has_all, "{question}: {told}, where {expected} was told");
        answers += 1;
    }
    answers
}

/// The time at which the file begins.
pub fn first_moment(folder: &Path) -> i64 {
    let answers = fs::read_to_string(folder.join(FILE)).unwrap();
    answers.lines().next().and_then(|line| line.strip_prefix("@ ")).unwrap().parse().unwrap()
}

/// Calls whose replies are put down.
#[derive(Default)]
pub struct Answers(String);

impl Answers {
    pub fn at(&mut self, server: &mut Server, moment: i64) {
        server.clock().set(moment);
        writeln!(self.0, "@ {moment}").unwrap();
    }

    pub fn ask(&mut self, redis: &mut Connection, question: &str) {
        writeln!(self.0, "{question} = {}", answer(redis, question)).unwrap();
    }

    pub fn write(&self, folder: &Path) {
        fs::write(folder.join(FILE), &self.0).unwrap();
    }
}

/// The reply as text: integers behind each other, or names and values.
fn answer(redis: &mut Connection, question: &str) -> String {
    match ask(redis, question) {
        Value::Array(fields) if question.starts_with("RL.INSPECT") => {
            let fields = fields.chunks_exact(2).map(|pair| format!("{}: {}", text(&pair[0]), text(&pair[1])));
            fields.collect::<Vec<_>>().join("; ")
        }
        reply => text(&reply),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(" "),
        other => panic!("{other:?} has no place here"),
    }
}
