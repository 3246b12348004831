use synthesizer_attention::Backend;

use crate::measure::{ROUNDS, Size, Time};

pub const THIS_CRATE: &str = "this crate";

/// A row for each peer, a column for each size, in Markdown; medians first, then bests. How many times faster this crate
/// is than the fastest peer comes from the ratios of each round in the first, from the bests in the second.
pub fn print(sizes: &[Size]) {
    println!("CPU: {}; this crate's backend: {}; one thread.", cpu(), Backend::detect());
    print_statistic("median", sizes, Time::median, Time::median_ratio);
    print_statistic("best", sizes, Time::best, |peer, ours| peer.best() / ours.best());
}

fn cpu() -> String {
    let cpu_info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu_info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or("unknown", |(_, model)| model).to_string()
}

fn print_statistic(name: &str, sizes: &[Size], time: impl Fn(&Time) -> f64, ratio: impl Fn(&Time, &Time) -> f64) {
    println!("\n| {name} of {ROUNDS} rounds, us | {} |", cells(sizes, |size| format!("{}, {}", size.l, size.d)));
    println!("|---|{}", "---|".repeat(sizes.len()));
    for peer in names(sizes) {
        let cell = |size: &Size| {
            let of_peer = size.times.iter().find(|time| time.name == peer);
            of_peer.map_or("–".into(), |of_peer| significant(1e6 * time(of_peer)))
        };
        println!("| {peer} | {} |", cells(sizes, cell));
    }
    let lead = |size: &Size| {
        let (ours, peers): (Vec<&Time>, Vec<&Time>) = size.times.iter().partition(|time| time.name == THIS_CRATE);
        let leads = ours.first().map(|ours| peers.into_iter().map(|peer| (ratio(peer, ours), peer.name)));
        let least = leads.and_then(|leads| leads.min_by(|(a, _), (b, _)| a.total_cmp(b)));
        least.map_or("–".into(), |(lead, peer)| format!("{lead:.2} ({peer})"))
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
