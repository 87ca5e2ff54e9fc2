//! Vectors as text: one step a line, so that people can read them and changes show.

use std::fmt::Write as _;

use serde_json::json;

use super::file::{Reply, Scenario};

/// A file.
pub fn render(scenarios: &[Scenario]) -> String {
    let mut text = String::from("[\n");
    for (index, Scenario { name, why, steps }) in scenarios.iter().enumerate() {
        write!(text, "  {{\n    \"name\": {},\n    \"why\": {},\n    \"steps\": [\n", json!(name), json!(why)).unwrap();
        for (number, step) in steps.iter().enumerate() {
            let end = if number + 1 < steps.len() { "," } else { "" };
            let (call, reply) = (spaced(&step.call), value(&step.reply));
            writeln!(text, "      {{\"at_us\": {}, \"call\": {call}, \"reply\": {reply}}}{end}", step.at_us).unwrap();
        }
        text += if index + 1 < scenarios.len() { "    ]\n  },\n" } else { "    ]\n  }\n" };
    }
    text + "]\n"
}

fn spaced(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| json!(word).to_string()).collect();
    format!("[{}]", words.join(", "))
}

fn value(reply: &Reply) -> String {
    match reply {
        Reply::Null(()) => "null".to_owned(),
        Reply::Integer(number) => number.to_string(),
        Reply::Integers(numbers) => {
            let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
            format!("[{}]", numbers.join(", "))
        }
        Reply::Error { error } => format!("{{\"error\": {}}}", json!(error)),
    }
}
