use crate::Backend;

/// What a call may be told besides its matrices: position, masks, backend.
///
/// ```
/// use synthesizer_attention::Options;
///
/// let padding = [true, true, true, false];
/// let options = Options::new().causal().key_mask(&padding);
/// # let _ = options;
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct Options<'a> {
    pub(crate) first: usize,
    pub(crate) causal: bool,
    pub(crate) key_mask: Option<&'a [bool]>,
    pub(crate) backend: Option<Backend>,
}

impl<'a> Options<'a> {
    /// All keys are seen from every row, row 0 stands at position 0, and the fastest backend is taken.
    pub const fn new() -> Self {
        Self { first: 0, causal: false, key_mask: None, backend: None }
    }

    /// The position of row 0 of `x`: row i stands at `first + i`. Matters to causal calls and to layers whose scores
    /// depend on the position.
    pub const fn first(self, first: usize) -> Self {
        Self { first, ..self }
    }

    /// The row at position p sees key j only where j <= p.
    pub const fn causal(self) -> Self {
        Self { causal: true, ..self }
    }

    /// Which keys exist, one `bool` a key. Where it is false the key contributes nothing, even if its row of V holds
    /// NaN.
    pub const fn key_mask(self, mask: &'a [bool]) -> Self {
        Self { key_mask: Some(mask), ..self }
    }

    /// Runs on this backend and no other. [`Error::Backend`](crate::Error::Backend) if the processor lacks it.
    pub const fn backend(self, backend: Backend) -> Self {
        Self { backend: Some(backend), ..self }
    }
}
