use synthesizer_attention::Backend;

use crate::measure::{ROUNDS, Size, Time};

pub const THIS_CRATE: &str = "this crate";

/// A row for each peer, a column for each size, in Markdown; medians first, then bests.
pub fn print(sizes: &[Size]) {
    println!("CPU: {}; this crate's backend: {}; one thread.", cpu(), Backend::detect());
    print_statistic("median", sizes, |time| time.median);
    print_statistic("best", sizes, |time| time.best);
}

fn cpu() -> String {
    let cpu_info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu_info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or("unknown", |(_, model)| model).to_string()
}

fn print_statistic(name: &str, sizes: &[Size], statistic: impl Fn(&Time) -> f64) {
    println!("\n| {name} of {ROUNDS} rounds, us | {} |", cells(sizes, |size| format!("{}, {}", size.l, size.d)));
    println!("|---|{}", "---|".repeat(sizes.len()));
    for peer in names(sizes) {
        let cell = |size: &Size| {
            let time = size.times.iter().find(|time| time.name == peer);
            time.map_or("–".into(), |time| significant(1e6 * statistic(time)))
        };
        println!("| {peer} | {} |", cells(sizes, cell));
    }
    let lead = |size: &Size| {
        let (ours, peers): (Vec<&Time>, Vec<&Time>) = size.times.iter().partition(|time| time.name == THIS_CRATE);
        let fastest = peers.into_iter().min_by(|a, b| statistic(a).total_cmp(&statistic(b)));
        match (ours.first(), fastest) {
            (Some(ours), Some(peer)) => format!("{:.2} ({})", statistic(peer) / statistic(ours), peer.name),
            _ => "–".into(),
        }
    };
    println!("| times faster than the fastest peer | {} |", cells(sizes, lead));
}

/// Every peer that was timed at any size, in their order.
pub fn names(sizes: &[Size]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for time in sizes.iter().flat_map(|size| &size.times) {
        if !names.contains(&time.name) {
            names.push(time.name);
        }
    }
    names
}

fn cells(sizes: &[Size], cell: impl Fn(&Size) -> String) -> String {
    sizes.iter().map(cell).collect::<Vec<_>>().join(" | ")
}

/// Three significant digits, and no fewer than the integer part has.
fn significant(number: f64) -> String {
    let decimals = match number {
        ..1.0 => 3,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{number:.decimals$}")
}
