"""tomotopy: collapsed Gibbs sampling, dense over topics, vectorised C++.

It stores K counts per document, per word, and per word and worker. If they do not fit the available
memory, it is not started, because the system would kill it, or another process, during the run.
"""

import sys

import psutil
import tomotopy

import lab as shared


def run(lab, job):
    words, documents = shared.read_corpus(job)
    needed = 4 * job["topics"] * (len(documents) + words * (1 + job["threads"]))
    free = psutil.virtual_memory().available
    if needed > free:
        sys.exit(f"its dense counts need {needed / 2**30:.1f} GiB, but {free / 2**30:.1f} GiB are free")
    options = {
        "k": job["topics"],
        "alpha": job["alpha"],
        "eta": job["beta"],
        "seed": job["seed"],
        "min_cf": 0,
        "rm_top": 0,
    }
    model = tomotopy.LDAModel(**options)
    model.optim_interval = 0
    # tomotopy rejects empty documents.
    for document in filter(None, documents):
        model.add_doc([str(word) for word, count in document for _ in range(count)])
    # Draws the initial topics without sampling.
    model.train(0, workers=job["threads"])
    spelled = [int(word) for word in model.used_vocabs]

    def topics_of(document):
        spellings = map(spelled.__getitem__, document.words.tolist())
        return zip(spellings, document.topics.tolist())

    def write(epoch):
        # The documents are in the order of `add_doc`; version 0.14 has no other access.
        trained = map(topics_of, model.docs)
        rows = [next(trained) if document else () for document in documents]
        return shared.write_assignments(job, epoch, words, rows)

    def step(epochs):
        model.train(epochs, workers=job["threads"])

    shared.train(lab, job, [0, *shared.evaluations(job)], step, write)
    options.update(optim_interval=0, workers=job["threads"], isa=tomotopy.isa)
    version = f"tomotopy {tomotopy.__version__}"
    lab.done(version, options, "Its V is the number of words with tokens.")
