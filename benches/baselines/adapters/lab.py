"""What all adapters share: talking with the lab, reading its corpus, writing states, clocks.

A state is one of two text files. The topic of every token, a line a document, empty if it has no
tokens; D documents, V words, K topics, ids from 0:

    assignments D V K
    word:topic word:topic ...

or, of a baseline without assignments, weights of the words, a line a topic, on any scale:

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
    """The lab has seen enough, or is gone."""


class Lab:
    """The lab's end of the conversation."""

    def __init__(self):
        # Baselines print what they like; only lines of ours may go to the lab.
        self.out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def job(self):
        """What is to be done, as a dictionary."""
        line = sys.stdin.readline()
        if not line:
            sys.exit("no job: the lab starts this program")
        return json.loads(line)

    def evaluated(self, epoch, cpu_seconds, wall_seconds, path):
        """Hands over a state; returns when the lab has judged it."""
        self._print({"evaluated": {
            "epoch": epoch,
            "cpu-seconds": round(cpu_seconds, 6),
            "wall-seconds": round(wall_seconds, 6),
            "file": os.path.basename(path),
        }})
        if sys.stdin.readline().strip() != "go":
            raise Stop

    def done(self, version, options, clock, peak_bytes=None):
        """Says goodbye. `options` is a dictionary, by the baseline's own names."""
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
    """The corpus as (words of the vocabulary, documents); a document is a list of (word, count)."""
    with open(job["corpus"]) as file:
        documents = [[] for _ in range(int(file.readline()))]
        words = int(file.readline())
        file.readline()
        for line in file:
            document, word, count = line.split()
            documents[int(document) - 1].append((int(word) - 1, int(count)))
    return words, documents


def read_matrix(job):
    """The corpus as a sparse matrix, a row a document."""
    import numpy
    from scipy.sparse import csr_matrix

    words, documents = read_corpus(job)
    starts = numpy.cumsum([0] + [len(document) for document in documents])
    pairs = [pair for document in documents for pair in document]
    columns, counts = zip(*pairs)
    return csr_matrix((numpy.array(counts, dtype=float), columns, starts), (len(documents), words))


def write_assignments(job, epoch, words, documents):
    """Writes topics of tokens: for each document, an iterable of (word, topic)."""
    path = os.path.join(job["scratch"], f"{epoch}.txt")
    with open(path, "w") as file:
        file.write(f"assignments {len(documents)} {words} {job['topics']}\n")
        for document in documents:
            file.write(" ".join([f"{word}:{topic}" for word, topic in document]))
            file.write("\n")
    return path


def write_weights(job, epoch, weights):
    """Writes a matrix of weights, a row a topic and a column a word."""
    path = os.path.join(job["scratch"], f"{epoch}.txt")
    with open(path, "w") as file:
        file.write(f"weights {len(weights)} {len(weights[0])}\n")
        for row in weights:
            file.write(" ".join(["%.7g" % weight for weight in row.tolist()]))
            file.write("\n")
    return path


def evaluations(job):
    """Epochs to be evaluated, the last one included; not the start."""
    every, last = job["evaluate-every"], job["epochs"]
    return sorted({*range(every, last + 1, every), last})


def doublings(job):
    """Epochs to be evaluated of a baseline that has to begin again for each: 1, 2, 4, ... times
    `evaluate-every` and the last, which together cost at most three times the last. Wants to be sent
    the CPU seconds of each, and then goes no further than the time allows, as far as can be foreseen.
    """
    epoch = min(job["evaluate-every"], job["epochs"])
    while True:
        cpu_seconds = yield epoch
        if epoch == job["epochs"] or enough(job, cpu_seconds):
            return
        goal = min(2 * epoch, job["epochs"])
        if job["seconds"] is not None and cpu_seconds > 0:
            goal = min(goal, int(epoch * job["seconds"] / cpu_seconds))
        # A run from the start for a few epochs more would not tell much.
        if goal < 1.1 * epoch:
            return
        epoch = goal


def further(goals, cpu_seconds):
    """The next of `doublings` after a run of so many CPU seconds; None, if that was the last."""
    try:
        return goals.send(cpu_seconds)
    except StopIteration:
        return None


def enough(job, cpu_seconds):
    """Whether the time is over."""
    return job["seconds"] is not None and cpu_seconds >= job["seconds"]


class Clock:
    """Time of what runs in `with` blocks, in this process and those it has waited for."""

    def __init__(self):
        self.cpu_seconds = 0.0
        self.wall_seconds = 0.0

    def __enter__(self):
        self.start = (cpu(), time.monotonic())

    def __exit__(self, *error):
        self.cpu_seconds += cpu() - self.start[0]
        self.wall_seconds += time.monotonic() - self.start[1]


def cpu():
    """CPU seconds so far, user and system, of this process and all that it has started."""
    this = psutil.Process()
    times = this.cpu_times()
    ended = getattr(times, "children_user", 0) + getattr(times, "children_system", 0)
    # Of itself it knows more exactly than the system's ticks.
    return time.process_time() + ended + sum(map(program.cpu_of, this.children()))


def own_peak():
    """Largest resident sets of this process and of those it has started and that are still there,
    in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return own + sum(map(program.peak_of, psutil.Process().children()))


def train(lab, job, epochs, step, write):
    """Trains a baseline that can go on from where it was: `step(n)` makes n epochs, `write(epoch)` a
    file. Returns when the lab, the epochs or the time say so. Epoch 0 is the start."""
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
