"""Drives one baseline for the sampler lab: `python adapters NAME`.

The lab writes a job to standard input, a JSON object on one line. The baseline trains; at every
evaluation its adapter writes the state of training into the scratch directory, prints a line

    {"evaluated": {"epoch": 5, "cpu-seconds": 1.2, "wall-seconds": 1.3, "file": "5.txt"}}

and waits for an answer, `go` or `stop`. The last line is {"done": {...}}. `lab.py` describes the files.
Each baseline has a module here with one function, `run(lab, job)`.
"""

import importlib
import os
import signal
import sys

MODULES = {
    "tomotopy": "baseline_tomotopy",
    "gensim": "baseline_gensim",
    "scikit-learn": "baseline_scikit_learn",
    "spark": "baseline_spark",
    "mallet": "baseline_mallet",
    "warplda": "baseline_warplda",
}


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in MODULES:
        sys.exit(f"usage: python adapters {'|'.join(MODULES)}")
    # A broken pipe means that the lab has exited.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        import lab
    except ImportError as error:
        sys.exit(f"not installed: run benches/baselines/setup ({error})")
    connection = lab.Lab()
    job = connection.job()
    # Set before numpy is loaded, because its libraries read them then.
    for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):
        os.environ[f"{library}_NUM_THREADS"] = str(job["threads"])
    try:
        baseline = importlib.import_module(MODULES[sys.argv[1]])
    except ImportError as error:
        sys.exit(f"not installed: run benches/baselines/setup ({error})")
    baseline.run(connection, job)


main()
