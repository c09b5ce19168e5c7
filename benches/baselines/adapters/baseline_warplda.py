"""WarpLDA by its authors, from its command line.

It cannot continue from a state, and its seed is fixed, so each evaluation is a run from the start,
after 1, 2, 4, ... times `evaluate-every` epochs. CPU time is that of its process between the first and
the last iteration that it prints, plus the printed time of the first.
"""

import os
import re
import time

import lab as shared
import program

ITERATION = re.compile(r"Iteration (\d+), ([0-9.]+) s")


def run(lab, job):
    warplda = os.environ["LDA_WARPLDA"]
    words, documents = shared.read_corpus(job)
    present = [d for d, document in enumerate(documents) if document]
    prefix = os.path.join(job["scratch"], "corpus")
    spelled = load(warplda, prefix, documents, present)
    options = {
        "k": job["topics"],
        # The sum over all topics.
        "alpha": job["alpha"] * job["topics"],
        "beta": job["beta"],
    }
    peak = 0
    try:
        goals = shared.doublings(job)
        epoch = next(goals)
        while epoch is not None:
            z = f"{prefix}.z"
            flags = {**options, "niter": epoch, "z": z, "dumpmodel": "false", "writeinfo": "false"}
            command = [warplda, f"--prefix={prefix}"]
            command += [f"--{name}={value}" for name, value in flags.items()]
            training = Training(command, job["threads"])
            peak = max(peak, training.peak)
            rows = [[] for _ in documents]
            for d, tokens in zip(present, read_topics(z)):
                rows[d] = [(spelled[word], topic) for word, topic in tokens]
            os.remove(z)
            path = shared.write_assignments(job, epoch, words, rows)
            lab.evaluated(epoch, training.cpu_seconds, training.wall_seconds, path)
            epoch = shared.further(goals, training.cpu_seconds)
    except shared.Stop:
        pass
    clock = "With its own likelihood. Each evaluation is a run from the start; its seed is fixed."
    lab.done("WarpLDA", {**options, "OMP_NUM_THREADS": job["threads"]}, clock, peak)


def load(warplda, prefix, documents, present):
    """Writes the corpus in WarpLDA's format; returns the word id of each of its words."""
    text = f"{prefix}.txt"
    with open(text, "w") as file:
        for d in present:
            tokens = [str(word) for word, count in documents[d] for _ in range(count)]
            file.write(f"{d} none {' '.join(tokens)}\n")
    tool = os.path.join(os.path.dirname(os.path.abspath(warplda)), "format")
    if not os.path.exists(tool):
        raise program.Failed("not installed: there is no `format` next to LDA_WARPLDA")
    program.convert([tool, f"--input={text}", f"--prefix={prefix}"])
    os.remove(text)
    with open(f"{prefix}.vocab") as file:
        return [int(word) for word in file.read().split()]


def read_topics(path):
    """Yields (word, topic) of the tokens of each document, with word ids of WarpLDA."""
    with open(path) as file:
        for line in file:
            tokens = (token.split(":") for token in line.split()[1:])
            yield [(int(word), int(topic)) for word, topic in tokens]


class Training:
    """One run, from start to end."""

    def __init__(self, command, threads):
        self.threads = threads
        self.cpu_seconds = self.wall_seconds = self.peak = 0
        self.start = None
        program.Program(command, self.on_line).end()

    def on_line(self, running, line):
        found = ITERATION.match(line)
        if not found:
            return
        cpu, now = running.cpu(), time.monotonic()
        if self.start is None:
            first = float(found.group(2))
            self.start = (cpu - first * self.threads, now - first)
        self.cpu_seconds, self.wall_seconds = cpu - self.start[0], now - self.start[1]
        self.peak = max(self.peak, program.peak_of(running.root))
