"""tomotopy: collapsed Gibbs sampling, dense over topics, vectorised C++.

It keeps K counts for each document, and for each word once and once more a worker. Where that does
not fit the memory, it is not started: the system would end it, or something else, in the middle.
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
        sys.exit(f"its dense counts need {needed / 2**30:.1f} GiB, and {free / 2**30:.1f} are free")
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
    # It has no empty documents.
    for document in filter(None, documents):
        model.add_doc([str(word) for word, count in document for _ in range(count)])
    # The start: topics are drawn, nothing is sampled.
    model.train(0, workers=job["threads"])
    spelled = [int(word) for word in model.used_vocabs]

    def topics_of(document):
        spellings = map(spelled.__getitem__, document.words.tolist())
        return zip(spellings, document.topics.tolist())

    def write(epoch):
        # In the order they were added; version 0.14 has them in no other way.
        trained = map(topics_of, model.docs)
        rows = [next(trained) if document else () for document in documents]
        return shared.write_assignments(job, epoch, words, rows)

    def step(epochs):
        model.train(epochs, workers=job["threads"])

    shared.train(lab, job, [0, *shared.evaluations(job)], step, write)
    options.update(optim_interval=0, workers=job["threads"], isa=tomotopy.isa)
    version = f"tomotopy {tomotopy.__version__}"
    lab.done(version, options, "Its V is the words it has seen.")
