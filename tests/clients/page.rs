//! The code blocks of a page that say which file they are.
//!
//! A block is a file if the line that opens it says so, as in `python file=redis-py/check.py`. Readers of the page don't see
//! that, readers of its source do.

use std::path::Path;

/// The page with the snippets.
pub const CLIENTS: &str = include_str!("../../docs/clients.md");
pub const README: &str = include_str!("../../README.md");

/// A code block, and which file it is.
pub struct Snippet {
    pub file: String,
    pub text: String,
}

/// The snippets of a page, in its order.
pub fn snippets(page: &str) -> Vec<Snippet> {
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let text = lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
        if let Some((_, file)) = language.split_once(" file=") {
            found.push(Snippet { file: file.to_owned(), text });
        }
    }
    found
}

/// The snippet that is this file.
pub fn snippet(page: &str, file: &str) -> String {
    let found: Vec<String> =
        snippets(page).into_iter().filter(|snippet| snippet.file == file).map(|snippet| snippet.text).collect();
    let [text] = <[String; 1]>::try_from(found).unwrap_or_else(|found| panic!("{} blocks are {file}", found.len()));
    text
}

/// Writes the snippets of one client, the files that begin with its name, into a folder.
pub fn cut_out(client: &str, folder: &Path) {
    let mut count = 0;
    for Snippet { file, text } in snippets(CLIENTS) {
        if let Some(name) = file.strip_prefix(client).and_then(|rest| rest.strip_prefix('/')) {
            std::fs::write(folder.join(name), text).unwrap();
            count += 1;
        }
    }
    assert_eq!(count, 3, "snippets of {client}: a check, and connections to one server and to a cluster");
}
