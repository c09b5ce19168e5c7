//! SVG output.

use std::io::{self, Write};

use super::{Anchor, Color, HEIGHT, Shape, Size, WIDTH};

pub(super) fn write(shapes: &[Shape], metadata: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"'Noto Sans Mono', 'DejaVu Sans Mono', Menlo, Consolas, monospace\">"
    )?;
    writeln!(out, "<metadata>{}</metadata>", escape(metadata))?;
    writeln!(out, "<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>")?;
    for shape in shapes {
        write_shape(shape, out)?;
    }
    writeln!(out, "</svg>")
}

fn write_shape(shape: &Shape, out: &mut impl Write) -> io::Result<()> {
    match shape {
        Shape::Line { points, width, color } => {
            let color = hex(*color);
            write!(
                out,
                "<polyline fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\" \
                 stroke-linejoin=\"round\" stroke-linecap=\"round\" points=\""
            )?;
            for (n, (x, y)) in points.iter().enumerate() {
                let space = if n == 0 { "" } else { " " };
                write!(out, "{space}{x:.1},{y:.1}")?;
            }
            writeln!(out, "\"/>")
        }
        Shape::Dot { at: (x, y), radius, color } => {
            let color = hex(*color);
            writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{color}\"/>")
        }
        Shape::Text { at: (x, y), anchor, size, color, text } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let size = font_size(*size);
            // The baseline is half the height of a capital below the middle.
            let base = y + 0.36 * size;
            let (color, text) = (hex(*color), escape(text));
            writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{base:.1}\" font-size=\"{size}\" fill=\"{color}\" \
                 text-anchor=\"{anchor}\">{text}</text>"
            )
        }
    }
}

/// Font sizes with the same letter widths as in the PNG.
fn font_size(size: Size) -> f64 {
    match size {
        Size::Small => 15.0,
        Size::Normal => 18.0,
        Size::Large => 24.0,
    }
}

fn hex(Color(red, green, blue): Color) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Escapes text for XML. Control characters, which XML does not allow, become `?`: a title may come
/// from a file name.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('?'),
            c if c.is_control() => escaped.push('?'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::Picture;
    use super::super::chart::Chart;

    #[test]
    fn markup_in_titles_is_escaped() {
        let chart = Chart {
            title: "a<b>&\u{1b}".into(),
            y_label: "nats".into(),
            x_label: "seconds".into(),
            caption: "caption".into(),
            points: vec![(1.0, -9.0), (2.0, -8.0)],
        };
        let mut out = Vec::new();
        Picture::Svg.write(&chart, "{\"path\":\"<x>\"}", &mut out).unwrap();
        let svg = String::from_utf8(out).unwrap();
        assert!(svg.contains(">a&lt;b&gt;&amp;?</text>"), "{svg}");
        assert!(svg.contains("<metadata>{\"path\":\"&lt;x&gt;\"}</metadata>"), "{svg}");
        assert!(svg.contains("-8.0000"), "{svg}");
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }
}
