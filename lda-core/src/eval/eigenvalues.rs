//! Eigenvalues of symmetric matrices: Householder's reduction to a tridiagonal matrix, then bisection
//! with Sturm sequences (Golub and Van Loan, *Matrix Computations*, 8.3.1 and 8.4.1).

/// Steps of bisection: more than a double has bits.
const STEPS: usize = 64;

/// Eigenvalues of a symmetric matrix of `n` rows, ascending. The matrix is overwritten. O(n³).
///
/// # Panics
/// If the matrix does not have n² entries.
pub(super) fn symmetric_eigenvalues(matrix: &mut [f64], n: usize) -> Vec<f64> {
    assert_eq!(matrix.len(), n * n, "entries of a square matrix");
    let (diagonal, beside) = tridiagonal(matrix, n);
    // All eigenvalues are in Gershgorin's circles.
    let radius = |i: usize| {
        let before = if i == 0 { 0.0 } else { beside[i - 1].abs() };
        before + beside.get(i).map_or(0.0, |by| by.abs())
    };
    let low = (0..n).map(|i| diagonal[i] - radius(i)).fold(f64::INFINITY, f64::min);
    let high = (0..n).map(|i| diagonal[i] + radius(i)).fold(f64::NEG_INFINITY, f64::max);
    let find = |number: usize| {
        let (mut low, mut high) = (low, high);
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            if number_below(&diagonal, &beside, middle) > number {
                high = middle;
            } else {
                low = middle;
            }
        }
        f64::midpoint(low, high)
    };
    (0..n).map(find).collect()
}

/// Diagonal and subdiagonal of a tridiagonal matrix with the same eigenvalues.
fn tridiagonal(matrix: &mut [f64], n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut beside = vec![0.0; n.saturating_sub(1)];
    for k in 0..n.saturating_sub(1) {
        let mut v: Vec<f64> = (k + 1..n).map(|row| matrix[row * n + k]).collect();
        let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        if norm == 0.0 {
            continue;
        }
        let to = -norm.copysign(v[0]);
        beside[k] = to;
        v[0] -= to;
        let squares: f64 = v.iter().map(|x| x * x).sum();
        if squares == 0.0 {
            continue;
        }
        // A ← H A H with H = I − 2 v vᵀ / vᵀv, on the rows and columns after k.
        let row = |i: usize| (k + 1 + i) * n + k + 1;
        let dot = |a: &[f64]| a.iter().zip(&v).map(|(x, y)| x * y).sum::<f64>();
        let p: Vec<f64> =
            (0..v.len()).map(|i| 2.0 * dot(&matrix[row(i)..][..v.len()]) / squares).collect();
        let scale = dot(&p) / squares;
        let w: Vec<f64> = p.iter().zip(&v).map(|(p, v)| p - scale * v).collect();
        for i in 0..v.len() {
            let entries = &mut matrix[row(i)..][..v.len()];
            for (j, entry) in entries.iter_mut().enumerate() {
                *entry -= v[i] * w[j] + w[i] * v[j];
            }
        }
    }
    ((0..n).map(|i| matrix[i * n + i]).collect(), beside)
}

/// Number of eigenvalues below `x`: negative terms of the Sturm sequence.
fn number_below(diagonal: &[f64], beside: &[f64], x: f64) -> usize {
    let (mut below, mut before) = (0, 1.0);
    for (i, value) in diagonal.iter().enumerate() {
        let coupling = if i == 0 { 0.0 } else { beside[i - 1] * beside[i - 1] };
        let mut term = value - x - if coupling == 0.0 { 0.0 } else { coupling / before };
        if term == 0.0 {
            term = -f64::MIN_POSITIVE;
        }
        below += usize::from(term < 0.0);
        before = term;
    }
    below
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Xoshiro256PlusPlus;

    fn near(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!(
                (found - expected).abs() < 1e-10 * (1.0 + expected.abs()),
                "{found}, {expected}"
            );
        }
    }

    #[test]
    fn known_eigenvalues() {
        near(&symmetric_eigenvalues(&mut [], 0), &[]);
        near(&symmetric_eigenvalues(&mut [7.0], 1), &[7.0]);
        near(&symmetric_eigenvalues(&mut [2.0, 1.0, 1.0, 2.0], 2), &[1.0, 3.0]);
        near(&symmetric_eigenvalues(&mut [0.0; 9], 3), &[0.0; 3]);
        // 2 − 2 cos(π i / (n + 1)) of the second difference.
        let n = 20;
        let mut second = vec![0.0; n * n];
        for i in 0..n {
            second[i * n + i] = 2.0;
            for j in [i.wrapping_sub(1), i + 1].into_iter().filter(|&j| j < n) {
                second[i * n + j] = -1.0;
            }
        }
        let angle = |i: usize| std::f64::consts::PI * (i + 1) as f64 / (n + 1) as f64;
        let expected: Vec<f64> = (0..n).map(|i| 2.0 - 2.0 * angle(i).cos()).collect();
        near(&symmetric_eigenvalues(&mut second, n), &expected);
    }

    #[test]
    fn powers_of_random_matrices_have_their_traces() {
        let mut rng = Xoshiro256PlusPlus::from_seed(3);
        for n in [2, 5, 33] {
            let mut matrix = vec![0.0; n * n];
            for i in 0..n {
                for j in 0..=i {
                    let value = rng.next_f64() - 0.5;
                    (matrix[i * n + j], matrix[j * n + i]) = (value, value);
                }
            }
            let times = |a: &[f64], b: &[f64]| -> Vec<f64> {
                let entry = |i: usize, j: usize| (0..n).map(|k| a[i * n + k] * b[k * n + j]).sum();
                (0..n * n).map(|at| entry(at / n, at % n)).collect()
            };
            let trace = |a: &[f64]| (0..n).map(|i| a[i * n + i]).sum::<f64>();
            let square = times(&matrix, &matrix);
            let traces = [trace(&matrix), trace(&square), trace(&times(&square, &matrix))];
            let found = symmetric_eigenvalues(&mut matrix, n);
            assert!(found.is_sorted());
            let sums = [1, 2, 3].map(|power| found.iter().map(|x| x.powi(power)).sum::<f64>());
            near(&sums, &traces);
        }
    }
}
