#!/usr/bin/env python3
"""Prints the values of gensim's CoherenceModel for a generated corpus, as reference values of the tests of
lda-core's `eval::coherence`, which generate the same corpus.

Tokens come from a linear congruential generator and four themes of ten words. Run it with target/baselines/venv/bin/python after benches/baselines/setup.
"""

from gensim.corpora.dictionary import Dictionary
from gensim.models.coherencemodel import CoherenceModel

DOCUMENTS, WORDS = 120, 40
TOPICS = [list(range(0, 10)), list(range(10, 20)), [0, 11, 22, 33, 5, 16, 27, 38], [3, 1], [20, 30, 39, 2, 9]]


def numbers(state):
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 33


def documents():
    rng = numbers(42)
    for d in range(DOCUMENTS):
        length = next(rng) % (30 if d % 3 == 0 else 300)
        theme = next(rng) % 4
        text = []
        for _ in range(length):
            if next(rng) % 3 == 0:
                text.append(next(rng) % WORDS)
            else:
                text.append(theme * 10 + min(next(rng) % 10, next(rng) % 10))
        yield [f"w{word:02}" for word in text]


def main():
    texts = list(documents())
    dictionary = Dictionary([[f"w{word:02}" for word in range(WORDS)]])
    corpus = [dictionary.doc2bow(text) for text in texts]
    topics = [[f"w{word:02}" for word in topic] for topic in TOPICS]
    print("tokens", sum(map(len, texts)))
    for measure in ["u_mass", "c_uci", "c_npmi", "c_v"]:
        for window in [None] if measure == "u_mass" else [None, 25]:
            model = CoherenceModel(
                topics=topics, texts=texts, corpus=corpus, dictionary=dictionary, coherence=measure,
                window_size=window, topn=10, processes=1,
            )
            values = ", ".join(f"{value:.12f}" for value in model.get_coherence_per_topic())
            print(measure, window, f"[{values}]")


if __name__ == "__main__":
    main()
