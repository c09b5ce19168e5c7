//! Multidimensional scaling: maps topics to points of a plane such that similar topics are close.
//!
//! [`classical_scaling`] (principal coordinates: Torgerson 1952, Gower 1966) projects the points
//! that have these distances onto their two directions of greatest variance. LDAvis shows this map.
//! It is exact if two dimensions suffice, and never places near topics far apart. But topics are
//! about equally far from each other, which takes as many dimensions as there are topics, and the
//! projection puts most of them on top of each other in the middle.
//!
//! [`smacof`] starts from such points and moves them until the stress Σ (|x_i − x_j| − d_ij)² is in
//! a local minimum, by the SMACOF iteration (de Leeuw 1977), each step of which lowers the stress.
//! The points then fill a disc, neighbours stay neighbours, and circles have space. Preferred for
//! display.
//!
//! Both are deterministic: the same distances give the same points on any number of threads. The
//! axes have no meaning; each is oriented such that its farthest point is on the positive side.

use rayon::prelude::*;

use super::distance::TopicDistances;
use crate::random::Xoshiro256PlusPlus;

/// Number of iterated directions: more than two, so that the first two separate from the rest.
const DIRECTIONS: usize = 8;
/// Maximum number of iterations.
const MAX_ITERATIONS: usize = 100;
/// Stops when the cosine between successive directions is within this of 1, for both directions.
const SETTLED: f64 = 1e-12;

/// Classical scaling: one point per topic, centred at the origin, whose distances are the best
/// projection of those given.
///
/// O(K²) per iteration, in the current rayon pool, and 8 K² bytes. At most 100 iterations: if
/// eigenvalues are too close to be separated in these, any mixture of their directions is as good a
/// map.
///
/// ```
/// use lda_core::eval::{TopicDistances, classical_scaling};
/// use lda_core::model::{TopicModel, Weights};
///
/// let rows = [[0.9, 0.1, 0.0], [0.8, 0.2, 0.0], [0.0, 0.1, 0.9]];
/// let model = TopicModel::from_weights(Weights::from_rows(&rows)?, 0.1.into());
/// let distances = TopicDistances::jensen_shannon(&model);
/// let points = classical_scaling(&distances);
/// let apart = |i: usize, j: usize| {
///     (points[i][0] - points[j][0]).hypot(points[i][1] - points[j][1])
/// };
/// // Three points have a plane for themselves.
/// assert!((apart(0, 2) - distances.get(0, 2)).abs() < 1e-9);
/// assert!(apart(0, 1) < apart(1, 2));
/// # Ok::<(), lda_core::model::WeightsError>(())
/// ```
pub fn classical_scaling(distances: &TopicDistances) -> Vec<[f64; 2]> {
    let n = distances.num_topics();
    let products = scalar_products(distances);
    let directions = DIRECTIONS.min(n);
    // Any start that is not orthogonal to the answer is good; the seed is fixed.
    let mut rng = Xoshiro256PlusPlus::from_seed(0);
    let mut basis: Vec<Vec<f64>> =
        (0..directions).map(|_| (0..n).map(|_| rng.next_f64() - 0.5).collect()).collect();
    orthonormalize(&mut basis);
    let mut values = vec![0.0; directions];
    for _ in 0..MAX_ITERATIONS {
        let images: Vec<Vec<f64>> = basis.iter().map(|x| multiply(&products, x)).collect();
        let (next, rotated) = rotate_to_eigenvectors(&basis, &images, &mut values);
        let kept = basis.iter().zip(&next).take(2).map(|(a, b)| dot(a, b).abs());
        let settled = kept.fold(1.0, f64::min) > 1.0 - SETTLED;
        basis = rotated;
        orthonormalize(&mut basis);
        if settled {
            break;
        }
    }
    let mut points = vec![[0.0; 2]; n];
    for axis in 0..directions.min(2) {
        // The eigenvalue of a direction without variance consists of rounding errors.
        let length = if values[axis] > 1e-12 * values[0] { values[axis].sqrt() } else { 0.0 };
        for (point, x) in points.iter_mut().zip(&basis[axis]) {
            point[axis] = length * x;
        }
    }
    orient(&mut points);
    points
}

/// SMACOF: moves points until a step lowers the stress by less than a millionth, at most
/// `iterations` times. Returns Kruskal's stress, √(Σ (|x_i − x_j| − d_ij)² / Σ d_ij²), 0 for a map
/// without distortion.
///
/// O(K²) per iteration, in the current rayon pool, and 8 K² bytes.
///
/// # Panics
/// If the number of points is not K.
pub fn smacof(distances: &TopicDistances, points: &mut Vec<[f64; 2]>, iterations: u32) -> f64 {
    let n = distances.num_topics();
    assert_eq!(points.len(), n, "one point per topic");
    let wanted = matrix(n, |i, j| distances.get(i, j));
    // Every pair is counted twice, here and below.
    let squares = wanted.iter().map(|row| dot(row, row)).sum::<f64>() / 2.0;
    if squares == 0.0 {
        return 0.0;
    }
    let mut last = f64::INFINITY;
    for iteration in 0.. {
        let step: Vec<([f64; 2], f64)> =
            wanted.par_iter().enumerate().map(|(i, row)| guttman(row, points, i)).collect();
        let stress = step.iter().map(|(_, errors)| errors).sum::<f64>() / 2.0;
        if iteration == iterations || stress > last * (1.0 - 1e-6) {
            last = stress.min(last);
            break;
        }
        last = stress;
        *points = step.into_iter().map(|(point, _)| point).collect();
    }
    orient(points);
    (last / squares).sqrt()
}

/// Guttman transform of one point: its new position, the mean of the positions that preserve the
/// wanted distance to each other point; and the sum of its squared errors before the move.
fn guttman(wanted: &[f64], points: &[[f64; 2]], i: usize) -> ([f64; 2], f64) {
    let [x, y] = points[i];
    let (mut to, mut errors) = ([0.0; 2], 0.0);
    // The point itself adds 0: both its distances to itself are 0.
    for (&[u, v], wanted) in points.iter().zip(wanted) {
        let (dx, dy) = (x - u, y - v);
        let found = (dx * dx + dy * dy).sqrt();
        errors += (found - wanted) * (found - wanted);
        // Coincident points have no direction in which to separate.
        let pull = if found > 1e-12 { wanted / found } else { 0.0 };
        to[0] += pull * dx;
        to[1] += pull * dy;
    }
    let n = points.len() as f64;
    (to.map(|sum| sum / n), errors)
}

/// Rows of the n × n matrix with these values.
fn matrix(n: usize, value: impl Fn(usize, usize) -> f64 + Sync) -> Vec<Vec<f64>> {
    (0..n).into_par_iter().map(|i| (0..n).map(|j| value(i, j)).collect()).collect()
}

/// −½ J D² J with J = I − 11ᵀ/n: scalar products, around their mean, of points with these
/// distances.
fn scalar_products(distances: &TopicDistances) -> Vec<Vec<f64>> {
    let n = distances.num_topics();
    let mut rows = matrix(n, |i, j| distances.get(i, j).powi(2));
    let means: Vec<f64> = rows.iter().map(|row| row.iter().sum::<f64>() / n as f64).collect();
    let mean = means.iter().sum::<f64>() / n as f64;
    rows.par_iter_mut().zip(&means).for_each(|(row, of_row)| {
        for (square, of_column) in row.iter_mut().zip(&means) {
            *square = (of_row + of_column - *square - mean) / 2.0;
        }
    });
    rows
}

fn multiply(matrix: &[Vec<f64>], x: &[f64]) -> Vec<f64> {
    matrix.par_iter().map(|row| dot(row, x)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Gram-Schmidt, applied twice, which is enough. Vectors that depend on those before them become 0.
fn orthonormalize(basis: &mut [Vec<f64>]) {
    for at in 0..basis.len() {
        let (before, rest) = basis.split_at_mut(at);
        let own = &mut rest[0];
        let length = dot(own, own).sqrt();
        for _ in 0..2 {
            for other in &*before {
                let along = dot(own, other);
                own.iter_mut().zip(other).for_each(|(x, y)| *x -= along * y);
            }
        }
        let left = dot(own, own).sqrt();
        let scale = if left > 1e-12 * length { left.recip() } else { 0.0 };
        own.iter_mut().for_each(|x| *x *= scale);
    }
}

/// Rayleigh-Ritz: approximate eigenvectors in the span of `basis`, and their images, by descending
/// eigenvalue.
fn rotate_to_eigenvectors(
    basis: &[Vec<f64>],
    images: &[Vec<f64>],
    values: &mut [f64],
) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let projected = basis.iter().map(|x| images.iter().map(|y| dot(x, y)).collect()).collect();
    let (found, vectors) = eigen(projected);
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by(|&a, &b| found[b].total_cmp(&found[a]));
    let mix = |from: &[Vec<f64>], at: usize| {
        let mut mixed = vec![0.0; from[0].len()];
        for (x, row) in from.iter().zip(&vectors) {
            mixed.iter_mut().zip(x).for_each(|(sum, x)| *sum += row[at] * x);
        }
        mixed
    };
    for (value, &at) in values.iter_mut().zip(&order) {
        *value = found[at];
    }
    let all = |from| order.iter().map(|&at| mix(from, at)).collect();
    (all(basis), all(images))
}

/// Eigenvalues of a small symmetric matrix, and eigenvectors as columns, by Jacobi's rotations.
fn eigen(mut matrix: Vec<Vec<f64>>) -> (Vec<f64>, Vec<Vec<f64>>) {
    let n = matrix.len();
    let mut vectors: Vec<Vec<f64>> =
        (0..n).map(|i| (0..n).map(|j| f64::from(i == j)).collect()).collect();
    // Convergence is quadratic: matrices of this size are known to take at most six sweeps.
    for _ in 0..12 {
        for p in 0..n {
            for q in p + 1..n {
                let off = matrix[p][q];
                if off == 0.0 {
                    continue;
                }
                let theta = (matrix[q][q] - matrix[p][p]) / (2.0 * off);
                let tangent = theta.signum() / (theta.abs() + theta.hypot(1.0));
                let cosine = tangent.hypot(1.0).recip();
                let sine = tangent * cosine;
                let turn = |a: &mut f64, b: &mut f64| {
                    (*a, *b) = (cosine * *a - sine * *b, sine * *a + cosine * *b);
                };
                for row in matrix.iter_mut().chain(&mut vectors) {
                    let (low, high) = row.split_at_mut(q);
                    turn(&mut low[p], &mut high[0]);
                }
                let (low, high) = matrix.split_at_mut(q);
                low[p].iter_mut().zip(&mut high[0]).for_each(|(a, b)| turn(a, b));
            }
        }
    }
    ((0..n).map(|i| matrix[i][i]).collect(), vectors)
}

/// Turns each axis so that its farthest point, the first of equals, is on the positive side.
fn orient(points: &mut [[f64; 2]]) {
    for axis in 0..2 {
        let mut farthest: f64 = 0.0;
        for point in &*points {
            // Values that are equal up to rounding count as equal.
            if point[axis].abs() > farthest.abs() * (1.0 + 1e-9) {
                farthest = point[axis];
            }
        }
        if farthest < 0.0 {
            points.iter_mut().for_each(|point| point[axis] = -point[axis]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(a: [f64; 2], b: [f64; 2]) -> f64 {
        (a[0] - b[0]).hypot(a[1] - b[1])
    }

    fn of(points: &[[f64; 2]]) -> TopicDistances {
        TopicDistances::from_fn(points.len(), |i, j| apart(points[i], points[j]))
    }

    fn cloud(n: usize) -> Vec<[f64; 2]> {
        let mut rng = Xoshiro256PlusPlus::from_seed(8);
        (0..n).map(|_| [rng.next_f64() * 3.0, rng.next_f64()]).collect()
    }

    fn worst(found: &[[f64; 2]], distances: &TopicDistances) -> f64 {
        let n = found.len();
        let error = |i, j| f64::abs(apart(found[i], found[j]) - distances.get(i, j));
        (0..n).flat_map(|i| (0..n).map(move |j| error(i, j))).fold(0.0, f64::max)
    }

    #[test]
    fn points_of_a_plane_are_found_again() {
        for n in [2, 3, 4, 7, 60] {
            let distances = of(&cloud(n));
            let mut found = classical_scaling(&distances);
            assert!(worst(&found, &distances) < 1e-9, "{n}: {}", worst(&found, &distances));
            for axis in 0..2 {
                assert!(found.iter().map(|point| point[axis]).sum::<f64>().abs() < 1e-9);
                let side = |sign: f64| found.iter().map(|p| sign * p[axis]).fold(0.0, f64::max);
                assert!(side(1.0) >= side(-1.0) * (1.0 - 1e-6), "{n}");
            }
            let before = found.clone();
            assert!(smacof(&distances, &mut found, 50) < 1e-9);
            assert!(found.iter().zip(&before).all(|(&a, &b)| apart(a, b) < 1e-6));
        }
    }

    #[test]
    fn the_projection_is_of_greatest_variance() {
        // The corners of a brick: the projection drops the shortest side.
        let corner = |i: usize| [3.0 * (i & 1) as f64, (i >> 1 & 1) as f64, 0.2 * (i >> 2) as f64];
        let distances = TopicDistances::from_fn(8, |i, j| {
            let (a, b) = (corner(i), corner(j));
            (0..3).map(|x| (a[x] - b[x]).powi(2)).sum::<f64>().sqrt()
        });
        let found = classical_scaling(&distances);
        for (i, point) in found.iter().enumerate() {
            assert!((point[0].abs() - 1.5).abs() < 1e-9 && (point[1].abs() - 0.5).abs() < 1e-9);
            assert!(apart(*point, found[i ^ 4]) < 1e-9);
        }
    }

    #[test]
    fn majorization_lowers_the_stress() {
        // Nearly a simplex, which does not fit into a plane.
        let distances = TopicDistances::from_fn(30, |i, j| 0.9 + 0.1 / (1 + i.abs_diff(j)) as f64);
        let mut points = classical_scaling(&distances);
        let stress = |points: &[[f64; 2]]| smacof(&distances, &mut points.to_vec(), 0);
        let mut last = stress(&points);
        let first = last;
        for _ in 0..30 {
            smacof(&distances, &mut points, 1);
            assert!(stress(&points) <= last * (1.0 + 1e-12));
            last = stress(&points);
        }
        assert!(last < 0.8 * first, "{last}, of {first}");
        assert_eq!(smacof(&distances, &mut points.clone(), 0), last);
    }

    #[test]
    fn few_and_equal_topics_do_no_harm() {
        for n in 0..4 {
            let same = TopicDistances::from_fn(n, |_, _| 0.0);
            let mut points = classical_scaling(&same);
            assert_eq!(points, vec![[0.0; 2]; n]);
            assert_eq!(smacof(&same, &mut points, 9), 0.0);
            assert_eq!(points, vec![[0.0; 2]; n]);
        }
        // Coincident points, two at each place, stay coincident.
        let place = |i: usize| (i / 2) as f64;
        let twins = TopicDistances::from_fn(8, |i, j| (place(i) - place(j)).abs());
        let points = classical_scaling(&twins);
        assert!(worst(&points, &twins) < 1e-9 && points.iter().all(|p| p[1].abs() < 1e-6));
    }

    #[test]
    fn threads_do_not_matter() {
        let distances = TopicDistances::from_fn(40, |i, j| 1.0 / (1.0 + (i * j % 7) as f64));
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut points = classical_scaling(&distances);
                let stress = smacof(&distances, &mut points, 20);
                (points, stress)
            })
        };
        assert_eq!(on(1), on(3));
    }
}
