//! A table for a terminal.

#[derive(Clone, Copy)]
pub enum Align {
    Left,
    Right,
}

/// Lays out the rows under the headings, each column as wide as it must be.
pub fn table<const N: usize>(headings: [(&str, Align); N], rows: &[[String; N]]) -> String {
    let width = |text: &str| text.chars().count();
    let widths: [usize; N] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| width(&row[column]));
        cells.max().unwrap_or(0).max(width(headings[column].0))
    });
    let line = |cells: [&str; N]| {
        let cells = std::array::from_fn::<String, N, _>(|column| {
            let (cell, width) = (cells[column], widths[column]);
            match headings[column].1 {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            }
        });
        format!("{}\n", cells.join("  ").trim_end())
    };

    let mut text = line(headings.map(|(heading, _)| heading));
    text += &line(widths.map(|width| "─".repeat(width)).each_ref().map(String::as_str));
    for row in rows {
        text += &line(row.each_ref().map(String::as_str));
    }
    text
}
