use std::time::{Duration, Instant};

use synthesizer_attention::reference::{Answer, Mask, Matrix, attend, dense_scores};
use synthesizer_attention_peers::{Layer, Peer, Result, all};

/// Every peer is timed once a round, so that whatever else the machine does meets all of them alike.
pub const ROUNDS: usize = 51;

/// How long a peer is called in one round, at least; at most twice that, or one call.
const BATCH: Duration = Duration::from_millis(2);

/// The reference bounds what float32 rounding may do where exp errs by two units in the last place; the peers' may be
/// coarser. A wrong answer is off by thousands of times the bound.
const TOLERANCE: f64 = 8.0;

/// One size's times.
pub struct Size {
    pub l: usize,
    pub d: usize,
    pub times: Vec<Time>,
}

/// One peer's times at one size.
pub struct Time {
    pub name: &'static str,
    /// Seconds a call, round by round.
    seconds: Vec<f64>,
}

impl Time {
    pub fn best(&self) -> f64 {
        self.seconds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub fn median(&self) -> f64 {
        median(self.seconds.clone())
    }

    /// How many times as long as `other` it takes: the median over the rounds, whose two times saw the same machine.
    pub fn median_ratio(&self, other: &Self) -> f64 {
        median(self.seconds.iter().zip(&other.seconds).map(|(ours, other)| ours / other).collect())
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Checks and times all peers with D = H = M = W.
pub fn measure<const L: usize, const W: usize>() -> Size {
    let layer = Layer::<L, W>::new();
    let answer = answer(&layer);
    let mut runs = Vec::new();
    for candidate in all() {
        match (candidate.load)(&layer).and_then(|peer| Run::new(candidate.name, peer, &answer)) {
            Ok(run) => runs.push(run),
            Err(error) => eprintln!("{} is left out at L = {L}, D = {W}: {error}", candidate.name),
        }
    }
    for _ in 0..ROUNDS {
        runs.iter_mut().for_each(Run::round);
    }
    Size { l: L, d: W, times: runs.into_iter().map(Run::time).collect() }
}

fn answer<const L: usize, const W: usize>(layer: &Layer<L, W>) -> Answer {
    let [x, v] = [&layer.x, &layer.v].map(|rows| Matrix::from_rows(&rows[..]));
    let (w1, w2) = (Matrix::from_rows(&layer.w1[..]), Matrix::from_rows(&layer.w2[..]));
    let scores = dense_scores(&x, &w1, Some(&layer.b1), &w2, Some(&layer.b2));
    attend(&scores, &v, &Mask::default())
}

struct Run<'a> {
    name: &'static str,
    peer: Box<dyn Peer + 'a>,
    calls: u32,
    seconds: Vec<f64>,
}

impl<'a> Run<'a> {
    /// Checks the answer, then finds how many calls fill a batch.
    fn new(name: &'static str, mut peer: Box<dyn Peer + 'a>, answer: &Answer) -> Result<Self> {
        peer.repeat(1)?;
        check(&peer.y()?, answer)?;
        let mut calls = 1;
        while seconds(peer.as_mut(), calls) < BATCH.as_secs_f64() {
            calls *= 2;
        }
        Ok(Self { name, peer, calls, seconds: Vec::with_capacity(ROUNDS) })
    }

    /// One call to have its weights back in the caches, then those that are timed.
    fn round(&mut self) {
        seconds(self.peer.as_mut(), 1);
        self.seconds.push(seconds(self.peer.as_mut(), self.calls) / f64::from(self.calls));
    }

    fn time(self) -> Time {
        Time { name: self.name, seconds: self.seconds }
    }
}

fn seconds(peer: &mut dyn Peer, calls: u32) -> f64 {
    let start = Instant::now();
    peer.repeat(calls).expect("what ran once runs again");
    start.elapsed().as_secs_f64()
}

fn check(y: &[f32], answer: &Answer) -> Result<()> {
    let mut answer = answer.y.clone();
    let error = &answer.error;
    answer.error = Matrix::from_fn(error.rows(), error.cols(), |i, j| TOLERANCE * error.at(i, j));
    answer.check(y, answer.cols())?;
    Ok(())
}
