//! Bars, as SVG.

/// One bar.
pub struct Bar {
    pub label: String,
    pub value: f64,
    pub ours: bool,
}

const LABELS: f64 = 210.0;
const WIDTH: f64 = 430.0;
const STEP: f64 = 26.0;
const TOP: f64 = 44.0;

/// Horizontal bars below a title; `None` where there are none.
pub fn bars(title: &str, bars: &[Bar]) -> Option<String> {
    let most = bars.iter().map(|bar| bar.value).reduce(f64::max)?;
    let height = TOP + STEP * bars.len() as f64 + 8.0;
    let width = LABELS + WIDTH + 80.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"12\" y=\"25\" font-size=\"15\" font-weight=\"bold\" fill=\"#222222\">{}</text>\n",
        escape(title)
    );
    for (at, bar) in bars.iter().enumerate() {
        let y = TOP + STEP * at as f64;
        let length = (bar.value / most * WIDTH).max(1.0);
        let colour = if bar.ours { "#2b6cb0" } else { "#a0aec0" };
        svg.push_str(&format!(
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\" fill=\"#222222\">{}</text>\n\
             <rect x=\"{LABELS}\" y=\"{y:.0}\" width=\"{length:.1}\" height=\"18\" fill=\"{colour}\"/>\n\
             <text x=\"{:.0}\" y=\"{:.0}\" fill=\"#222222\">{}</text>\n",
            LABELS - 8.0,
            y + 14.0,
            escape(&bar.label),
            LABELS + length + 6.0,
            y + 14.0,
            super::table::cell(Some(bar.value), 0)
        ));
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
