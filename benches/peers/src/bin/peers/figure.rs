use std::error::Error;

use plotters::prelude::*;

use crate::measure::Size;
use crate::table::{THIS_CRATE, names};

const FONT: (&str, u32) = ("sans-serif", 15);

/// All of them dark enough for thin lines on white.
const COLORS: [RGBColor; 10] = [
    RGBColor(148, 103, 189),
    RGBColor(31, 119, 180),
    RGBColor(214, 39, 40),
    RGBColor(44, 160, 44),
    RGBColor(255, 127, 14),
    RGBColor(23, 170, 190),
    RGBColor(227, 119, 194),
    RGBColor(140, 86, 75),
    RGBColor(140, 140, 30),
    RGBColor(110, 110, 110),
];

/// Median time against L, both axes logarithmic, a line for each peer.
pub fn write(path: &str, lengths: &[Size]) -> Result<(), Box<dyn Error>> {
    let microseconds = lengths.iter().flat_map(|size| &size.times).map(|time| 1e6 * time.median());
    let (least, most) = microseconds.fold((f64::MAX, 0.0), |(least, most), us| (us.min(least), us.max(most)));
    let [shortest, longest] = [&lengths[0], &lengths[lengths.len() - 1]].map(|size| size.l as f64);

    let area = SVGBackend::new(path, (900, 600)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(15)
        .margin_right(30)
        .x_label_area_size(50)
        .y_label_area_size(70)
        .build_cartesian_2d((shortest..longest).log_scale().base(2.0), (least / 1.5..most * 1.5).log_scale())?;
    chart
        .configure_mesh()
        .x_desc(format!("L, rows of X and V (D = H = M = {})", lengths[0].d))
        .y_desc("microseconds a call, median")
        .x_label_formatter(&ToString::to_string)
        .y_label_formatter(&ToString::to_string)
        .label_style(FONT)
        .axis_desc_style(FONT)
        .draw()?;
    for (i, peer) in names(lengths).into_iter().enumerate() {
        let style = if peer == THIS_CRATE { BLACK.stroke_width(4) } else { COLORS[i % COLORS.len()].stroke_width(2) };
        let points = lengths.iter().filter_map(|size| {
            let time = size.times.iter().find(|time| time.name == peer)?;
            Some((size.l as f64, 1e6 * time.median()))
        });
        chart
            .draw_series(LineSeries::new(points, style))?
            .label(peer)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .label_font(FONT)
        .background_style(WHITE)
        .border_style(BLACK)
        .draw()?;
    Ok(area.present()?)
}
