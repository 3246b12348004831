/// Rows of a block, of which there are at most [`RowSet::MOST`].
#[derive(Clone, Copy)]
pub struct RowSet(Bits);

#[cfg(target_arch = "x86_64")]
type Bits = u128;
#[cfg(not(target_arch = "x86_64"))]
type Bits = u64;

impl RowSet {
    pub(crate) const EMPTY: Self = Self(0);
    /// How many rows there can be.
    pub(crate) const MOST: usize = Bits::BITS as usize;

    #[inline(always)]
    pub(crate) fn insert(&mut self, row: usize) {
        self.0 |= 1 << (row % Self::MOST);
    }

    #[inline(always)]
    pub(crate) fn contains(self, row: usize) -> bool {
        self.0 >> (row % Self::MOST) & 1 != 0
    }

    #[inline(always)]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}
