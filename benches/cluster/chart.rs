//! Time against the number of objects as a drawing, both scales logarithmic: a straight line of slope 1 is linear.

use std::fmt::Write as _;
use std::time::Duration;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 48.0;
const TOP: f64 = 24.0;
const RIGHT: f64 = 120.0;

/// One curve: its name, its colour, and (objects, time).
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) name: &'static str,
    pub(crate) colour: &'static str,
    pub(crate) points: Vec<(usize, Duration)>,
}

/// The drawing, and the figures behind it as a table in its description.
pub(crate) fn svg(curves: &[Curve]) -> String {
    let times: Vec<f64> = curves.iter().flat_map(|curve| &curve.points).map(|(_, time)| time.as_secs_f64()).collect();
    let sizes: Vec<f64> = curves.iter().flat_map(|curve| &curve.points).map(|(size, _)| f64_of(*size)).collect();
    let (first_x, last_x) = decades(&sizes);
    let (first_y, last_y) = decades(&times);
    let x = |value: f64| LEFT + (value.log10() - first_x) / (last_x - first_x) * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - (value.log10() - first_y) / (last_y - first_y) * (HEIGHT - BOTTOM - TOP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<title>Time against the number of ConfigMaps</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for decade in steps(first_x, last_x) {
        let (at, value) = (x(10_f64.powf(decade)), 10_f64.powf(decade));
        let _ = writeln!(svg, "<path d=\"M{at:.1} {TOP}V{:.1}\" stroke=\"#ddd\"/>", HEIGHT - BOTTOM);
        let _ = writeln!(
            svg,
            "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{value}</text>",
            HEIGHT - BOTTOM + 18.0
        );
    }
    for decade in steps(first_y, last_y) {
        let (at, value) = (y(10_f64.powf(decade)), 10_f64.powf(decade));
        let _ = writeln!(svg, "<path d=\"M{LEFT} {at:.1}H{:.1}\" stroke=\"#ddd\"/>", WIDTH - RIGHT);
        let _ =
            writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value} s</text>", LEFT - 6.0, at + 4.0);
    }
    let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
    let _ = writeln!(svg, "<text x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\">ConfigMaps</text>", HEIGHT - 10.0);
    for curve in curves {
        let points: Vec<String> = curve
            .points
            .iter()
            .map(|(size, time)| format!("{:.1},{:.1}", x(f64_of(*size)), y(time.as_secs_f64())))
            .collect();
        let (name, colour) = (curve.name, curve.colour);
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            points.join(" ")
        );
        if let Some((size, time)) = curve.points.last() {
            let (at_x, at_y) = (x(f64_of(*size)) + 6.0, y(time.as_secs_f64()) + 4.0);
            let _ = writeln!(svg, "<text x=\"{at_x:.1}\" y=\"{at_y:.1}\" fill=\"{colour}\">{name}</text>");
        }
    }
    svg + "</svg>\n"
}

fn f64_of(size: usize) -> f64 {
    u32::try_from(size).map_or(f64::INFINITY, f64::from)
}

fn decades(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min).log10().floor();
    let most = values.iter().copied().fold(0.0, f64::max).log10().ceil();
    (least, most.max(least + 1.0))
}

fn steps(first: f64, last: f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(first), |step| Some(step + 1.0)).take_while(move |step| *step <= last)
}
