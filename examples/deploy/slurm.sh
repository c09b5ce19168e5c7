#!/usr/bin/env bash
# A run of `lda cluster` as a job of Slurm: the ranks of one MPI job, of which the first is the master, the next ones
# are servers and the rest workers. The program is built with `--features mpi`, by the MPI that Slurm knows:
#
#   lda cluster cut docword.nips.txt.gz --shards 8 --out nips
#   sbatch --ntasks=7 examples/deploy/slurm.sh run.toml
#
# run.toml has no [grpc], and its numbers of servers and workers are one less than the tasks together. A job whose
# node fails is put into the queue again, and goes on from what all workers have kept ([snapshots]). Five minutes
# before its time is over the epoch that is on is kept.
#SBATCH --job-name=lda
#SBATCH --ntasks=7
#SBATCH --cpus-per-task=1
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=TERM@300
set -euo pipefail

config=${1:?give the configuration of the run}
# What would go wrong again.
usage=2
most_restarts=10

status=0
srun --mpi="${LDA_SLURM_MPI:-pmix}" --kill-on-bad-exit=1 "${LDA_PROGRAM:-lda}" cluster node --config "$config" || status=$?
if [ "$status" -ne 0 ] && [ "$status" -ne "$usage" ] && [ "${SLURM_RESTART_COUNT:-0}" -lt "$most_restarts" ]; then
    echo "status $status: the job goes into the queue again" >&2
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
