//! Tables in Markdown.

/// A table whose columns are padded, so that the text can be read as it is.
pub struct Table(Vec<Vec<String>>);

impl Table {
    pub fn new(heads: &[&str]) -> Self {
        Table(vec![heads.iter().map(|&head| head.to_owned()).collect()])
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.0.push(cells);
    }

    pub fn is_empty(&self) -> bool {
        self.0.len() < 2
    }

    pub fn text(&self) -> String {
        let columns = self.0[0].len();
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                self.0
                    .iter()
                    .map(|row| row[column].chars().count())
                    .max()
                    .unwrap_or(0)
                    .max(3)
            })
            .collect();
        let mut text = String::new();
        for (at, row) in self.0.iter().enumerate() {
            for (cell, width) in row.iter().zip(&widths) {
                let gap = " ".repeat(width - cell.chars().count());
                // Numbers stand to the right.
                let right = at > 0 && is_number(cell);
                let cell = cell.replace('|', "\\|");
                text.push_str(&if right {
                    format!("| {gap}{cell} ")
                } else {
                    format!("| {cell}{gap} ")
                });
            }
            text.push_str("|\n");
            if at == 0 {
                for (column, width) in widths.iter().enumerate() {
                    let numbers = self.0[1..].iter().any(|row| is_number(&row[column]));
                    let end = if numbers { ":" } else { "-" };
                    text.push_str(&format!("|{}{end}", "-".repeat(width + 1)));
                }
                text.push_str("|\n");
            }
        }
        text
    }
}

fn is_number(cell: &str) -> bool {
    cell.starts_with(|c: char| c.is_ascii_digit() || c == '-') && !cell.contains(|c: char| c.is_alphabetic())
}

/// A number in a cell, or a dash where there is none; thousands apart.
pub fn cell(value: Option<f64>, digits: usize) -> String {
    let Some(value) = value else {
        return "–".to_owned();
    };
    let text = format!("{:.digits$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if value < 0.0 { "-" } else { "" };
    match fraction {
        "" => format!("{sign}{grouped}"),
        fraction => format!("{sign}{grouped}.{fraction}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(cell(Some(1234567.89), 1), "1,234,567.9");
        assert_eq!(cell(Some(-12.0), 0), "-12");
        assert_eq!(cell(None, 0), "–");
    }

    #[test]
    fn a_table_is_markdown() {
        let mut table = Table::new(&["what", "n"]);
        table.row(vec!["a|b".to_owned(), "12".to_owned()]);
        assert_eq!(table.text(), "| what | n   |\n|------|----:|\n| a\\|b  |  12 |\n");
    }
}
