//! The weights of a multi-head layer, and of an encoder block around one.

use synthesizer_attention::{
    Activation, DenseHeads, EncoderBlock, FeedForward, LayerNorm, Linear, MultiHead, Norm, Options, RmsNorm,
    reference::{Bounded, Mask, Matrix, multi_head_dense},
    residual,
};

use super::{
    golden::rows,
    variants::{Load, load_array, load_bias},
};

/// `HEADS` heads of width `K` over rows of `D`.
pub struct MultiHeadWeights<const L: usize, const D: usize, const K: usize, const HEADS: usize> {
    pub w1: Box<[[f32; D]; D]>,
    pub b1: Option<Box<[f32; D]>>,
    pub w2: Vec<[[f32; L]; K]>,
    pub b2: Option<Vec<[f32; L]>>,
    pub wv: Box<[[f32; D]; D]>,
    pub bv: Option<Box<[f32; D]>>,
    pub wo: Box<[[f32; D]; D]>,
    pub bo: Option<Box<[f32; D]>>,
}

pub type Attention<'a, const L: usize, const D: usize, const K: usize, const HEADS: usize> =
    MultiHead<DenseHeads<'a, L, D, D, K, HEADS>, Linear<'a, D, D>, Linear<'a, D, D>>;

impl<const L: usize, const D: usize, const K: usize, const HEADS: usize> MultiHeadWeights<L, D, K, HEADS> {
    /// The second layers are the rows of one tensor, head after head.
    pub fn load(load: &mut Load<'_>) -> Self {
        let w2 = rows::<L>(&load("w2", HEADS * K, L).expect("w2"));
        Self {
            w1: load_array(load, "w1"),
            b1: load_bias(load, "b1"),
            w2: w2.as_chunks().0.to_vec(),
            b2: load("b2", HEADS, L).map(|b2| rows(&b2)),
            wv: load_array(load, "wv"),
            bv: load_bias(load, "bv"),
            wo: load_array(load, "wo"),
            bo: load_bias(load, "bo"),
        }
    }

    pub fn hidden(&self) -> Linear<'_, D, D> {
        Linear::with_bias(&self.w1, self.b1.as_deref())
    }

    pub fn second(&self, i: usize) -> Linear<'_, K, L> {
        Linear::with_bias(&self.w2[i], self.b2.as_ref().map(|b2| &b2[i]))
    }

    pub fn value(&self) -> Linear<'_, D, D> {
        Linear::with_bias(&self.wv, self.bv.as_deref())
    }

    pub fn output(&self) -> Linear<'_, D, D> {
        Linear::with_bias(&self.wo, self.bo.as_deref())
    }

    pub fn heads(&self) -> DenseHeads<'_, L, D, D, K, HEADS> {
        let b2 = self.b2.as_ref().map(|b2| b2.as_slice().try_into().unwrap());
        DenseHeads::new(self.hidden(), self.w2.as_slice().try_into().unwrap(), b2)
    }

    pub fn layer(&self) -> Attention<'_, L, D, K, HEADS> {
        MultiHead::new(self.heads(), self.value(), self.output())
    }

    pub fn reference(&self, x: &[[f32; D]], mask: &Mask<'_>) -> Bounded {
        let w2: Vec<Matrix> = self.w2.iter().map(|w| Matrix::from_rows(w)).collect();
        let b2 = |i: usize| self.b2.as_ref().map(|b2| &b2[i][..]);
        let w2: Vec<_> = w2.iter().enumerate().map(|(i, w)| (w, b2(i))).collect();
        let [w1, wv, wo] = [&self.w1, &self.wv, &self.wo].map(|w| Matrix::from_rows(w.as_slice()));
        let [b1, bv, bo] = [&self.b1, &self.bv, &self.bo].map(|b| b.as_ref().map(|b| &b[..]));
        multi_head_dense(&Matrix::from_rows(x), (&w1, b1), &w2, (&wv, bv), (&wo, bo), mask)
    }
}

/// A multi-head layer, a feed-forward layer of hidden width `F` and two norms.
pub struct EncoderWeights<const L: usize, const D: usize, const K: usize, const HEADS: usize, const F: usize> {
    pub attention: MultiHeadWeights<L, D, K, HEADS>,
    pub f1: Box<[[f32; F]; D]>,
    pub c1: Option<Box<[f32; F]>>,
    pub f2: Box<[[f32; D]; F]>,
    pub c2: Option<Box<[f32; D]>>,
    /// g1, h1, g2, h2: weight and bias of either norm.
    pub norms: [Box<[f32; D]>; 4],
}

pub type Block<'a, const L: usize, const D: usize, const K: usize, const HEADS: usize, const F: usize, N, A> =
    EncoderBlock<Attention<'a, L, D, K, HEADS>, N, FeedForward<'a, D, F, A>>;

impl<const L: usize, const D: usize, const K: usize, const HEADS: usize, const F: usize>
    EncoderWeights<L, D, K, HEADS, F>
{
    pub fn load(load: &mut Load<'_>) -> Self {
        Self {
            attention: MultiHeadWeights::load(load),
            f1: load_array(load, "f1"),
            c1: load_bias(load, "c1"),
            f2: load_array(load, "f2"),
            c2: load_bias(load, "c2"),
            norms: ["g1", "h1", "g2", "h2"].map(|name| load_bias(load, name).expect("a part of a norm")),
        }
    }

    pub fn feed_forward<A: Activation + Copy>(&self, activation: A) -> FeedForward<'_, D, F, A> {
        let up = Linear::with_bias(&self.f1, self.c1.as_deref());
        FeedForward::new(up, activation, Linear::with_bias(&self.f2, self.c2.as_deref()))
    }

    pub fn layer_norms(&self) -> [LayerNorm<'_, D>; 2] {
        let [g1, h1, g2, h2] = &self.norms;
        [LayerNorm::new(g1, h1), LayerNorm::new(g2, h2)]
    }

    pub fn rms_norms(&self) -> [RmsNorm<'_, D>; 2] {
        let [g1, _, g2, _] = &self.norms;
        [RmsNorm::new(g1, 1e-6), RmsNorm::new(g2, 1e-6)]
    }

    pub fn post<N: Norm, A: Activation + Copy>(
        &self,
        [norm1, norm2]: [N; 2],
        activation: A,
    ) -> Block<'_, L, D, K, HEADS, F, N, A> {
        EncoderBlock::post_norm(self.attention.layer(), norm1, self.feed_forward(activation), norm2)
    }

    pub fn pre<N: Norm, A: Activation + Copy>(
        &self,
        [norm1, norm2]: [N; 2],
        activation: A,
    ) -> Block<'_, L, D, K, HEADS, F, N, A> {
        EncoderBlock::pre_norm(norm1, self.attention.layer(), norm2, self.feed_forward(activation))
    }

    /// What a block of these weights is to give: its parts, one after the other.
    pub fn by_parts<N: Norm<Row = [f32; D]>, A: Activation + Copy>(
        &self,
        [norm1, norm2]: [N; 2],
        activation: A,
        pre: bool,
        options: &Options<'_>,
        x: &[[f32; D]],
    ) -> Vec<[f32; D]> {
        let (attention, feed_forward) = (self.attention.layer(), self.feed_forward(activation));
        let zeros = || vec![[0.0; D]; x.len()];
        let normed = |norm: &N, x: &[[f32; D]]| {
            let mut y = zeros();
            norm.forward(options, x, &mut y).unwrap();
            y
        };
        let attend = |x: &[[f32; D]]| {
            let (mut y, mut scratch) = (zeros(), vec![f32::NAN; Attention::<'_, L, D, K, HEADS>::SCRATCH]);
            attention.forward_with(options, x, &mut y, &mut scratch).unwrap();
            y
        };
        let feed = |x: &[[f32; D]]| {
            let (mut y, mut scratch) = (zeros(), vec![f32::NAN; FeedForward::<'_, D, F, A>::SCRATCH]);
            feed_forward.forward(options, x, &mut y, &mut scratch).unwrap();
            y
        };
        let add = |x: &[[f32; D]], mut y: Vec<[f32; D]>| {
            residual(options, x, &mut y).unwrap();
            y
        };
        if pre {
            let x = add(x, attend(&normed(&norm1, x)));
            add(&x, feed(&normed(&norm2, &x)))
        } else {
            let x = normed(&norm1, &add(x, attend(x)));
            normed(&norm2, &add(&x, feed(&x)))
        }
    }
}
