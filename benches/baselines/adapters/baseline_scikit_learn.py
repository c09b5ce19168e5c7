"""scikit-learn: online variational Bayes (Hoffman et al. 2010) in numpy and Cython."""

import sklearn
from sklearn.decomposition import LatentDirichletAllocation

import lab as shared

# Documents per minibatch; the default of 128 gives about the same result.
BATCH = 256


def run(lab, job):
    corpus = shared.read_matrix(job)
    options = {
        "n_components": job["topics"],
        "doc_topic_prior": job["alpha"],
        "topic_word_prior": job["beta"],
        "learning_method": "online",
        "batch_size": BATCH,
        "total_samples": corpus.shape[0],
        "max_doc_update_iter": 50,
        "n_jobs": job["threads"],
        "random_state": job["seed"],
    }
    model = LatentDirichletAllocation(**options)

    def step(epochs):
        for _ in range(epochs):
            model.partial_fit(corpus)

    def write(epoch):
        return shared.write_weights(job, epoch, model.components_)

    shared.train(lab, job, shared.evaluations(job), step, write)
    clock = "Epochs are passes, each a partial_fit; the first one includes the initialization."
    lab.done(f"scikit-learn {sklearn.__version__}", options, clock)
