"""Topics of new documents: how fast, and how well, with this library, tomotopy and gensim.

    cargo build --release -p lda-examples
    LDA_CORPORA=DIR target/baselines/venv/bin/python benches/baselines/inference.py kos 1000

tomotopy trains a model on nine tenths of the documents, and all three programs use its topics: this library
through `lda convert`, gensim through its sufficient statistics. Of each remaining document every other token is
given, and perplexity is that of the other tokens under the inferred shares, computed by this script. One thread;
CPU seconds of the process, medians of five runs.
"""

import gzip
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

for variable in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]:
    os.environ[variable] = "1"

import gensim
import numpy
import tomotopy

BETA = 0.01
ITERATIONS = 100
RUNS = 5
# Copies of the held-out documents, because one copy takes too little time to measure.
COPIES = 100


def read(name):
    """Returns the number of words, and documents as lists of word ids."""
    path = os.path.join(os.environ["LDA_CORPORA"], f"docword.{name}.txt.gz")
    with gzip.open(path, "rt") as file:
        num_documents, num_words, _ = (int(file.readline()) for _ in range(3))
        documents = [[] for _ in range(num_documents)]
        for line in file:
            document, word, count = map(int, line.split())
            documents[document - 1] += [word - 1] * count
    return num_words, documents


def split(documents):
    """Returns nine tenths of the documents for training, and the two halves of the others: given and held out."""
    generator = numpy.random.default_rng(1)
    train, known, held = [], [], []
    for number, document in enumerate(documents):
        generator.shuffle(document)
        if number % 10 or len(document) < 2:
            train.append(document)
        else:
            known.append(document[::2])
            held.append(document[1::2])
    return train, known, held


def perplexity(phi, theta, held):
    log, tokens = 0.0, 0
    for shares, words in zip(theta, held):
        log += numpy.log(shares @ phi[:, words]).sum()
        tokens += len(words)
    return numpy.exp(-log / tokens)


def timed(infer):
    """Returns the last result, and the median of the CPU seconds."""
    seconds = []
    # A run of a minute is not repeated.
    while len(seconds) < RUNS and sum(seconds) < 60:
        start = time.process_time()
        result = infer()
        seconds.append(time.process_time() - start)
    return result, statistics.median(seconds)


def say(name, options, documents, seconds, value):
    print(f"| {name} | {options} | {documents / seconds:,.0f} | {value:.1f} |", flush=True)


def of_tomotopy(model, known, phi, held):
    for iterations in [5, 20, 50]:
        documents = [model.make_doc([str(word) for word in words]) for words in known]
        (theta, _), seconds = timed(lambda: model.infer(documents, iterations, workers=1))
        value = perplexity(phi, numpy.array(theta, dtype=float), held)
        say("tomotopy", f"{iterations} iterations", len(known), seconds, value)


def of_gensim(counts, alpha, known, phi, held):
    topics, words = counts.shape
    names = {word: str(word) for word in range(words)}
    model = gensim.models.LdaModel(id2word=names, num_topics=topics, alpha=alpha, eta=BETA)
    model.state.sstats = counts.astype(numpy.float32)
    model.sync_state()
    chunk = []
    for document in known:
        ids, times = numpy.unique(document, return_counts=True)
        chunk.append([(int(word), int(count)) for word, count in zip(ids, times)])
    for iterations in [2, 5, 50]:
        model.iterations = iterations
        (gamma, _), seconds = timed(lambda: model.inference(chunk))
        theta = gamma / gamma.sum(axis=1, keepdims=True)
        value = perplexity(phi, theta.astype(float), held)
        say("gensim", f"{iterations} iterations", len(known), seconds, value)


def write(documents, words, path):
    """Writes documents in the UCI bag-of-words format."""
    pairs = []
    for number, document in enumerate(documents):
        ids, times = numpy.unique(document, return_counts=True)
        pairs += [f"{number + 1} {word + 1} {count}\n" for word, count in zip(ids, times)]
    with open(path, "w") as file:
        file.writelines([f"{len(documents)}\n{words}\n{len(pairs)}\n"] + pairs)


def of_this(programs, phi, alpha, known, held, scratch):
    topics, words = phi.shape
    array, model, names = (os.path.join(scratch, name) for name in ["phi.npy", "m.lda", "names"])
    numpy.save(array, phi)
    with open(names, "w") as file:
        file.writelines(f"{word}\n" for word in range(words))
    convert = [os.path.join(programs, "lda"), "convert", array, "--out", model, "--quiet"]
    subprocess.run(convert + ["--alpha", repr(alpha), "--names", names], check=True)
    once, often, theta, lines = (
        os.path.join(scratch, name) for name in ["once.txt", "often.txt", "theta.npy", "top.jsonl"]
    )
    write(known, words, once)
    write(known * COPIES, words, often)
    infer = [os.path.join(programs, "lda"), "infer", model, "--vocabulary", names, "--threads", "1"]
    for options in [
        "--method fold-in --burn-in 5 --samples 5",
        "--method fold-in --burn-in 10 --samples 20",
        "--method rt --sweeps 2",
        "--method rt --sweeps 5",
        "--method variational --iterations 2",
        "--method variational --iterations 3",
        "--method variational --iterations 5",
        "--method variational --iterations 20",
        "--method variational --iterations 100",
    ]:
        rates = []
        for _ in range(RUNS):
            timed = infer + [often, "--out", lines, "--top", "1"] + options.split()
            output = subprocess.run(timed, check=True, capture_output=True, text=True)
            rates.append(float(re.search(r"([0-9]+) documents/s", output.stderr).group(1)))
        evaluated = infer + [once, "--out", theta, "--quiet"] + options.split()
        subprocess.run(evaluated, check=True)
        value = perplexity(phi, numpy.load(theta), held)
        say("this library", options.replace("--method ", ""), 1, 1 / statistics.median(rates), value)


def main():
    name, topics = sys.argv[1], int(sys.argv[2])
    programs = os.path.join(os.path.dirname(__file__), "../../target/release")
    num_words, documents = read(name)
    train, known, held = split(documents)
    alpha = 50 / topics
    model = tomotopy.LDAModel(k=topics, alpha=alpha, eta=BETA, seed=1)
    for document in train:
        model.add_doc([str(word) for word in document])
    model.train(ITERATIONS, workers=1)
    place = [int(word) for word in model.used_vocabs]
    known, held = ([[w for w in d if w in set(place)] for d in part] for part in [known, held])
    keep = [i for i in range(len(known)) if known[i] and held[i]]
    known, held = ([part[i] for i in keep] for part in [known, held])
    known_phi = numpy.array([model.get_topic_word_dist(topic) for topic in range(topics)], dtype=float)
    # Words without training tokens get the smoothed probability of a word without tokens in the topic.
    phi = numpy.repeat(known_phi.min(axis=1, keepdims=True), num_words, axis=1)
    phi[:, place] = known_phi
    phi /= phi.sum(axis=1, keepdims=True)
    totals = numpy.array(model.get_count_by_topics())[:, None]
    counts = numpy.maximum(phi * (totals + num_words * BETA) - BETA, 0)
    print(f"{name}, K = {topics}: {len(known)} documents, {sum(map(len, known))} known tokens\n")
    print("| by | options | documents/s | perplexity |\n|---|---|--:|--:|")
    with tempfile.TemporaryDirectory() as scratch:
        of_this(programs, phi, alpha, known, held, scratch)
    of_gensim(counts, alpha, known, phi, held)
    of_tomotopy(model, known, phi, held)


if __name__ == "__main__":
    main()
