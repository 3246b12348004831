use std::vec::Vec;

/// A row-major float64 matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    data: Vec<f64>,
}

impl Matrix {
    /// The rows of an array of arrays, the shape the crate's own types use.
    #[must_use]
    pub fn from_rows<const C: usize>(rows: &[[f32; C]]) -> Self {
        Self::from_f32(rows.len(), C, rows.as_flattened())
    }

    /// `rows * cols` values, row after row.
    #[must_use]
    pub fn from_f32(rows: usize, cols: usize, data: &[f32]) -> Self {
        assert_eq!(data.len(), rows * cols, "a {rows} x {cols} matrix");
        Self { rows, cols, data: data.iter().copied().map(f64::from).collect() }
    }

    /// The matrix whose entry at row `i`, column `j` is `f(i, j)`.
    #[must_use]
    pub fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> f64) -> Self {
        let mut data = Vec::with_capacity(rows * cols);
        for i in 0..rows {
            data.extend((0..cols).map(|j| f(i, j)));
        }
        Self { rows, cols, data }
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The entry at row `i`, column `j`.
    #[must_use]
    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.row(i)[j]
    }

    /// Row `i`.
    #[must_use]
    pub fn row(&self, i: usize) -> &[f64] {
        assert!(i < self.rows, "row {i} of {}", self.rows);
        &self.data[i * self.cols..][..self.cols]
    }

    /// Rows and columns exchanged.
    #[must_use]
    pub fn transposed(&self) -> Self {
        Self::from_fn(self.cols, self.rows, |i, j| self.at(j, i))
    }
}
