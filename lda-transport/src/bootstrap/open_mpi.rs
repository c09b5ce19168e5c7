//! A node that `mpirun` of Open MPI has started.
//!
//! It says how many there are and which this is, and not where: that is for the transport over MPI to know. Programs
//! that use `mpirun` for starting alone give the addresses themselves.

use super::{Environment, Error, Placed, Started, rank_and_size};
use crate::transport::NodeId;

/// What `mpirun` says.
///
/// # Errors
/// [`enum@Error`].
pub fn started(environment: Environment<'_>) -> Result<Started, Error> {
    let names = ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"];
    let (this, count) = rank_and_size(environment, names, "start the program with mpirun")?;
    let place = |id| Placed { id: NodeId(id), address: None, role: None };
    let nodes = (0..count).map(place).collect();
    // The same for all processes of a run, and of its daemon's making.
    let job = environment("PMIX_NAMESPACE").or_else(|| environment("OMPI_MCA_ess_base_jobid"));
    Ok(Started { this: NodeId(this), nodes, job })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::tests::with;

    #[test]
    fn ranks_are_numbers() {
        let names = ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"];
        let started = |rank, size| with(&[(names[0], rank), (names[1], size)], started);
        let fourth = started("3", "4").unwrap();
        assert_eq!((fourth.this, fourth.ids().len()), (NodeId(3), 4));
        for (rank, size) in [("4", "4"), ("x", "4"), ("0", "-1"), ("0", "4000000000")] {
            assert!(started(rank, size).is_err(), "{rank} {size}");
        }
        let error = with(&[(names[0], "0")], super::started).unwrap_err().to_string();
        assert!(error.starts_with("OMPI_COMM_WORLD_SIZE is not set"), "{error}");
    }
}
