"""MALLET: SparseLDA in Java, from its command line.

MALLET writes a state before an iteration, so "state.5" is the state after four. The clock is that of
its processes after loading, without the time of writing states, which is observed, and without that
of evaluation, during which the processes are halted.
"""

import contextlib
import gzip
import os
import re
import subprocess
import threading
import time

import lab as shared
import program


def run(lab, job):
    mallet = os.environ["LDA_MALLET"]
    words, documents = shared.read_corpus(job)
    present = [d for d, document in enumerate(documents) if document]
    corpus = load(mallet, job, documents, present)
    state = os.path.join(job["scratch"], "state")
    every = min(job["evaluate-every"], job["epochs"])
    options = {
        "num-topics": job["topics"],
        # The sum over all topics.
        "alpha": job["alpha"] * job["topics"],
        "beta": job["beta"],
        "optimize-interval": 0,
        "num-iterations": job["epochs"],
        "num-threads": job["threads"],
        # The seed 0 stands for the time of day.
        "random-seed": job["seed"] % 2**31 or 1,
        "output-state-interval": every,
        "show-topics-interval": 0,
    }
    command = [mallet, "train-topics", "--input", corpus, "--output-state", state]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    training = Training(command)
    try:
        for iteration in range(every, job["epochs"] + 1, every):
            path = f"{state}.{iteration}"
            training.wait_for(path)
            with training.halted() as (cpu_seconds, wall_seconds):
                rows = [[] for _ in documents]
                for place, word, topic in read_state(path):
                    rows[present[place]].append((word, topic))
                os.remove(path)
                counts = shared.write_assignments(job, iteration - 1, words, rows)
                lab.evaluated(iteration - 1, cpu_seconds, wall_seconds, counts)
            if shared.enough(job, cpu_seconds):
                break
    except shared.Stop:
        pass
    finally:
        training.program.kill()
    clock = "All of the JVM without loading and writing; with its own likelihood every 10 iterations."
    lab.done(f"MALLET {version(mallet)}", options, clock, training.program.peak)


def load(mallet, job, documents, present):
    """Writes the corpus in MALLET's format; words are spelled as their ids."""
    text, corpus = (os.path.join(job["scratch"], f"corpus.{end}") for end in ("txt", "mallet"))
    with open(text, "w") as file:
        for d in present:
            tokens = [str(word) for word, count in documents[d] for _ in range(count)]
            file.write(f"{d} none {' '.join(tokens)}\n")
    program.convert([mallet, "import-file", "--input", text, "--output", corpus,
                     "--keep-sequence", "--token-regex", r"\S+"])
    os.remove(text)
    return corpus


def read_state(path):
    """Yields (number among the non-empty documents, word, topic) of every token."""
    with gzip.open(path, "rt") as file:
        for line in file:
            if not line.startswith("#"):
                fields = line.split()
                yield int(fields[0]), int(fields[-2]), int(fields[-1])


def version(mallet):
    """Returns the version in the help text."""
    said = subprocess.run([mallet], capture_output=True, text=True).stdout
    found = re.search(r"Mallet ([0-9][0-9.]*)", said)
    return found.group(1) if found else "of an unknown version"


class Training:
    """A run of MALLET, and its clocks."""

    def __init__(self, command):
        # (CPU seconds, seconds of the clock) at the end of loading, plus the times that do not count.
        self.start = None
        self.loaded = threading.Event()
        self.program = program.Program(command, self.on_line)

    def now(self):
        return self.program.cpu(), time.monotonic()

    def on_line(self, running, line):
        """Starts the clocks: MALLET prints the number of tokens before the first iteration."""
        if line.startswith("total tokens:") and not self.loaded.is_set():
            self.start = (running.cpu(), time.monotonic())
            self.loaded.set()

    def leave_out(self, since):
        """Excludes the time since `since`."""
        self.start = tuple(start + now - then
                           for start, now, then in zip(self.start, self.now(), since))

    def wait_for(self, path):
        """Waits until a state is written, and excludes the time of writing."""
        program.wait_for(lambda: os.path.exists(path) or not self.program.running())
        if not os.path.exists(path):
            self.program.end()
            raise program.Failed(f"MALLET ended without writing {os.path.basename(path)}")
        if not self.loaded.is_set():
            raise program.Failed("MALLET did not print 'total tokens:' after loading the corpus")
        began = self.now()
        program.wait_for(lambda: not self.program.holds(path))
        self.leave_out(began)

    @contextlib.contextmanager
    def halted(self):
        """Halts MALLET, yields CPU and clock seconds of training, and excludes the halt."""
        with self.program.halted():
            since = self.now()
            yield tuple(now - start for now, start in zip(since, self.start))
            self.leave_out(since)
