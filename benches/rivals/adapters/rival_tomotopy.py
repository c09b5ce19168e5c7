"""tomotopy: collapsed Gibbs sampling, dense over topics, vectorised C++."""

import tomotopy

import lab as shared


def run(lab, job):
    words, documents = shared.read_corpus(job)
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
    # It has no empty documents; a place is then None.
    places = []
    for document in documents:
        tokens = [str(word) for word, count in document for _ in range(count)]
        places.append(model.add_doc(tokens) if tokens else None)
    # The start: topics are drawn, nothing is sampled.
    model.train(0)
    spelled = [int(word) for word in model.used_vocabs]

    def tokens_of(place):
        if place is None:
            return ()
        document = model.docs[place]
        return zip(map(spelled.__getitem__, document.words), document.topics)

    def write(epoch):
        rows = [tokens_of(place) for place in places]
        return shared.write_assignments(job, epoch, words, rows)

    def step(epochs):
        if epochs:
            model.train(epochs, workers=job["threads"])

    shared.train(lab, job, [0, *shared.evaluations(job)], step, write)
    options.update(optim_interval=0, workers=job["threads"], isa=tomotopy.isa)
    version = f"tomotopy {tomotopy.__version__}"
    lab.done(version, options, "Its V is the words it has seen.")
