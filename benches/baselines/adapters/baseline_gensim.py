"""gensim: online variational Bayes (Hoffman et al. 2010) in numpy."""

import gensim
from gensim.models import LdaModel, LdaMulticore

import lab as shared

# Documents per minibatch. The default of 2,000 makes two updates per pass on a small corpus.
CHUNK = 256


def run(lab, job):
    words, documents = shared.read_corpus(job)
    options = {
        "num_topics": job["topics"],
        "alpha": [job["alpha"]] * job["topics"],
        "eta": job["beta"],
        "chunksize": CHUNK,
        "passes": 1,
        "iterations": 50,
        "eval_every": None,
        "random_state": job["seed"],
    }
    kind = LdaModel
    if job["threads"] > 1:
        # The workers infer; the parent process updates.
        kind = LdaMulticore
        options["workers"] = job["threads"]
    model = kind(id2word={word: str(word) for word in range(words)}, **options)

    def step(epochs):
        for _ in range(epochs):
            model.update(documents)

    def write(epoch):
        return shared.write_weights(job, epoch, model.state.get_lambda())

    shared.train(lab, job, [0, *shared.evaluations(job)], step, write)
    options["alpha"] = job["alpha"]
    version = f"gensim {gensim.__version__} {kind.__name__}"
    lab.done(version, options, "Epochs are passes.")
