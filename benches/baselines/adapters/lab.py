"""Code that all adapters share: the protocol of the lab, its corpus, states, and clocks.

A state is one of two text files. One has the topic of every token, one line per document, empty for
a document without tokens; D documents, V words, K topics, ids from 0:

    assignments D V K
    word:topic word:topic ...

The other, for a baseline without assignments, has weights of words, one line per topic, on any scale:

    weights K V
    weight weight ...
"""

import json
import os
import resource
import sys
import time

import psutil

import program


class Stop(Exception):
    """The lab has stopped the run, or has exited."""


class Lab:
    """Connection to the lab."""

    def __init__(self):
        # Output of baselines goes to standard error, so that only protocol lines go to the lab.
        self.out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def job(self):
        """Reads the job, a dictionary."""
        line = sys.stdin.readline()
        if not line:
            sys.exit("no job: the lab starts this program")
        return json.loads(line)

    def evaluated(self, epoch, cpu_seconds, wall_seconds, path):
        """Sends a state; returns when the lab has evaluated it."""
        self._print({"evaluated": {
            "epoch": epoch,
            "cpu-seconds": round(cpu_seconds, 6),
            "wall-seconds": round(wall_seconds, 6),
            "file": os.path.basename(path),
        }})
        if sys.stdin.readline().strip() != "go":
            raise Stop

    def done(self, version, options, clock, peak_bytes=None):
        """Sends the end of the run. `options` is a dictionary with the names of the baseline."""
        python = ".".join(map(str, sys.version_info[:3]))
        self._print({"done": {
            "version": f"{version}, Python {python}",
            "options": ", ".join(f"{name} = {value}" for name, value in options.items()),
            "clock": clock,
            "peak-bytes": own_peak() if peak_bytes is None else peak_bytes,
        }})

    def _print(self, message):
        print(json.dumps(message), file=self.out, flush=True)


def read_corpus(job):
    """Returns the number of words and the documents; a document is a list of (word, count)."""
    with open(job["corpus"]) as file:
        documents = [[] for _ in range(int(file.readline()))]
        words = int(file.readline())
        file.readline()
        for line in file:
            document, word, count = line.split()
            documents[int(document) - 1].append((int(word) - 1, int(count)))
    return words, documents


def read_matrix(job):
    """Returns the corpus as a sparse matrix, one row per document."""
    import numpy
    from scipy.sparse import csr_matrix

    words, documents = read_corpus(job)
    starts = numpy.cumsum([0] + [len(document) for document in documents])
    pairs = [pair for document in documents for pair in document]
    columns, counts = zip(*pairs)
    return csr_matrix((numpy.array(counts, dtype=float), columns, starts), (len(documents), words))


def write_assignments(job, epoch, words, documents):
    """Writes the topics of tokens; a document is an iterable of (word, topic)."""
    path = os.path.join(job["scratch"], f"{epoch}.txt")
    with open(path, "w") as file:
        file.write(f"assignments {len(documents)} {words} {job['topics']}\n")
        for document in documents:
            file.write(" ".join([f"{word}:{topic}" for word, topic in document]))
            file.write("\n")
    return path


def write_weights(job, epoch, weights):
    """Writes a matrix of weights, one row per topic and one column per word."""
    path = os.path.join(job["scratch"], f"{epoch}.txt")
    with open(path, "w") as file:
        file.write(f"weights {len(weights)} {len(weights[0])}\n")
        for row in weights:
            file.write(" ".join(["%.7g" % weight for weight in row.tolist()]))
            file.write("\n")
    return path


def evaluations(job):
    """Returns the epochs to evaluate, with the last one and without the start."""
    every, last = job["evaluate-every"], job["epochs"]
    return sorted({*range(every, last + 1, every), last})


def doublings(job):
    """Yields the epochs to evaluate of a baseline that restarts for each: 1, 2, 4, ... times
    `evaluate-every` and the last one, which together cost at most three times the last one. The caller
    sends the CPU seconds of each run, from which the last epoch within the time limit is predicted.
    """
    epoch = min(job["evaluate-every"], job["epochs"])
    while True:
        cpu_seconds = yield epoch
        if epoch == job["epochs"] or enough(job, cpu_seconds):
            return
        goal = min(2 * epoch, job["epochs"])
        if job["seconds"] is not None and cpu_seconds > 0:
            goal = min(goal, int(epoch * job["seconds"] / cpu_seconds))
        # A run from the start for a few more epochs is not worth its time.
        if goal < 1.1 * epoch:
            return
        epoch = goal


def further(goals, cpu_seconds):
    """Returns the next epoch of `doublings` after a run of `cpu_seconds`; None if that was the last."""
    try:
        return goals.send(cpu_seconds)
    except StopIteration:
        return None


def enough(job, cpu_seconds):
    """Whether the time limit is reached."""
    return job["seconds"] is not None and cpu_seconds >= job["seconds"]


class Clock:
    """Time of `with` blocks, in this process and its children."""

    def __init__(self):
        self.cpu_seconds = 0.0
        self.wall_seconds = 0.0

    def __enter__(self):
        self.start = (cpu(), time.monotonic())

    def __exit__(self, *error):
        self.cpu_seconds += cpu() - self.start[0]
        self.wall_seconds += time.monotonic() - self.start[1]


def cpu():
    """Returns the CPU seconds, user and system, of this process and all its descendants."""
    this = psutil.Process()
    times = this.cpu_times()
    ended = getattr(times, "children_user", 0) + getattr(times, "children_system", 0)
    # process_time is more precise than the system's ticks.
    return time.process_time() + ended + sum(map(program.cpu_of, this.children()))


def own_peak():
    """Returns the sum of the peak resident sets of this process and of its running children, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return own + sum(map(program.peak_of, psutil.Process().children()))


def train(lab, job, epochs, step, write):
    """Trains a baseline that can continue: `step(n)` runs n epochs, `write(epoch)` writes a state.
    Returns when the lab stops it, or after the last epoch or the time limit. Epoch 0 is the start."""
    clock, epoch = Clock(), 0
    try:
        for goal in epochs:
            if goal > epoch:
                with clock:
                    step(goal - epoch)
            epoch = goal
            lab.evaluated(epoch, clock.cpu_seconds, clock.wall_seconds, write(epoch))
            if enough(job, clock.cpu_seconds):
                return
    except Stop:
        pass
