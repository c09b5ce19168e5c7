#!/usr/bin/env bash
# A run of `lda cluster` as a Slurm job. The nodes are the ranks of one MPI job: rank 0 is the master, the next ranks
# are servers, and the others are workers. Build the program with `--features mpi` and the MPI that Slurm supports:
#
#   lda cluster cut docword.nips.txt.gz --shards 8 --out nips
#   sbatch --ntasks=7 examples/deploy/slurm.sh run.toml
#
# run.toml has no table [grpc]. The number of tasks is 1 + servers + workers. A job with a failed node returns to the
# queue and continues from the last epoch that every worker has checkpointed ([snapshots]). Five minutes before the
# time limit, Slurm sends TERM, and the run stops after the current epoch and its checkpoint.
#SBATCH --job-name=lda
#SBATCH --ntasks=7
#SBATCH --cpus-per-task=1
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=TERM@300
set -euo pipefail

config=${1:?usage: sbatch slurm.sh FILE, the configuration of the run}
# Exit status of a wrong usage, which a restart does not change.
usage=2
most_restarts=10

status=0
srun --mpi="${LDA_SLURM_MPI:-pmix}" --kill-on-bad-exit=1 "${LDA_PROGRAM:-lda}" cluster node --config "$config" || status=$?
if [ "$status" -ne 0 ] && [ "$status" -ne "$usage" ] && [ "${SLURM_RESTART_COUNT:-0}" -lt "$most_restarts" ]; then
    echo "exit status $status: the job returns to the queue" >&2
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
