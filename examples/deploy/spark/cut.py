#!/usr/bin/env python3
"""Shards for `lda cluster` from the documents of a DataFrame: what `lda cluster cut` does, on the executors.

    spark-submit cut.py --input articles.parquet --column tokens --shards 8 --out /shared/articles --cluster lda
    spark-submit launch.py --config /shared/run.toml --cluster lda           # documents = "articles"

A row is a document. Its column holds the words (an array of strings), or their counts (a vector, as from
CountVectorizer, whose `vocabulary` names the words). Documents are divided as by `lda cluster cut`, in order and into
shards of about equally many tokens, and the files are identical byte for byte. The order is that of --order-by.
Without it, the order is whatever Spark returns, so that another run may give other topics. Words of an array are
numbered in the order of their code points. With --vocabulary, they have the numbers of the vocabulary, and other
words are left out.

Each shard is written by one task, which stores its documents in a temporary file and, while it packs them, in memory.
Driver and executors must see --out under the same path, or it is the URL of an object store (s3://bucket/articles),
for a program `lda` with the feature `object-store`. Spark caches the documents (memory and disk), because they
are read three times.

In a notebook with a DataFrame `counted`:

    import cut
    cut.cut(counted, "features", "/shared/articles", vocabulary=model.vocabulary, cluster="target/release/lda")

Exit status: 0 success, 1 failure, 2 wrong usage. Tested with Spark 4.3 and Python 3.11.
"""

import argparse
import bisect
import itertools
import json
import operator
import os
import subprocess
import sys
import tempfile

import launch
from launch import USAGE, LaunchError, StartError
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkFiles, StorageLevel
from pyspark.errors import PySparkException
from pyspark.ml.linalg import VectorUDT
from pyspark.sql.types import ArrayType, StringType

MANIFEST = "manifest"
WORDS = "words"
HOSTS = "hosts"
STATISTICS = "statistics"
MOST_SHARDS = 65_535
# Prefix of the report of a failed task, by which the driver finds it in the error message of Spark.
MARK = "LDA-CUT-FAILED "


class CutFailed(Exception):
    """A task failed. Spark transports the text to the driver."""

    def __init__(self, status, words):
        super().__init__(MARK + json.dumps({"status": status, "words": words}))


# On the driver.


def cut(frame, column, out, shards=8, vocabulary=None, order_by=None, cluster=None, installed="lda"):
    """Writes the documents of a DataFrame to the directory or object store `out` as `shards` shards.

    Returns the numbers of documents, tokens and words. `vocabulary` is the list of words by number; words of an array
    that are not in it are left out. The other arguments are those of the command line and of launch.launch. Raises
    LaunchError.
    """
    context = frame.sparkSession.sparkContext
    if not 1 <= shards <= MOST_SHARDS:
        raise LaunchError(f"{shards} shards: give 1 to {MOST_SHARDS}", USAGE)
    program = launch.send(context, cluster, installed)
    context.addPyFile(os.path.abspath(launch.__file__))
    if __name__ != "__main__":
        # Spark sends functions of a module by name, so the executors need the module.
        context.addPyFile(os.path.abspath(__file__))
    try:
        documents, words, names = count(frame, column, vocabulary, order_by)
        documents.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            out = out if "://" in out else os.path.abspath(out)
            return store(context, documents, words, names, out, shards, program)
        finally:
            documents.unpersist(blocking=True)
    except (Py4JJavaError, PySparkException) as error:
        raise diagnose(error) from None
    except OSError as error:
        raise LaunchError(f"{out}: {error}") from None


def count(frame, column, vocabulary, order_by):
    """Returns documents as lists of (word number, count), the number of words, and their names or None."""
    if column not in frame.columns:
        raise LaunchError(f"there is no column {column}: the columns are {', '.join(frame.columns)}", USAGE)
    kind = frame.schema[column].dataType
    if order_by:
        frame = frame.orderBy(order_by)
    rows = frame.select(column).rdd.map(lambda row: row[0])
    if isinstance(kind, VectorUDT):
        size = rows.map(len_of).reduce(same)
        if vocabulary is not None and len(vocabulary) != size:
            raise LaunchError(f"{column} has {size} words, but the vocabulary has {len(vocabulary)}: give the one of these vectors", USAGE)
        return rows.map(pairs_of_vector), size, vocabulary
    if not (isinstance(kind, ArrayType) and isinstance(kind.elementType, StringType)):
        found = kind.simpleString()
        raise LaunchError(f"{column} is of type {found}: give an array of words, or a vector of counts", USAGE)
    if vocabulary is None:
        vocabulary = sorted(rows.flatMap(words_of).distinct().collect())
    numbers = {word: number for number, word in enumerate(vocabulary)}
    if len(numbers) < len(vocabulary):
        raise LaunchError("a word is in the vocabulary twice: remove one of them", USAGE)
    shared = frame.sparkSession.sparkContext.broadcast(numbers)
    return rows.map(lambda words: pairs_of_words(words, shared.value)), len(vocabulary), vocabulary


def store(context, documents, words, names, out, shards, program):
    """Writes the shards, and then the manifest."""
    if any("\n" in word or "\r" in word for word in names or []):
        raise LaunchError("a word contains a line break: remove it, or split the word there", USAGE)
    sizes = documents.mapPartitions(size).collect()
    befores = list(itertools.accumulate(sizes, lambda a, b: tuple(map(operator.add, a, b)), initial=(0, 0, 0)))
    total, tokens, empty = befores.pop()
    if tokens == 0:
        raise LaunchError("the documents have no words", 1)
    if shards > total:
        raise LaunchError(f"{shards} shards of {total} documents: give fewer", USAGE)
    marks = documents.mapPartitionsWithIndex(
        lambda part, those: reached(those, *befores[part][:2], shards, tokens)
    ).collect()
    firsts = cuts(marks, total, shards)
    if "://" not in out:
        os.makedirs(out, exist_ok=True)
    # A directory without a manifest holds no shards. The other files belong to the shards before.
    before = [f"--remove={name}" for name in [MANIFEST, HOSTS, STATISTICS]]
    context.parallelize([None], 1).map(lambda _: put(program, out, before)).collect()
    shared = context.broadcast(names)
    parts = (
        documents.mapPartitionsWithIndex(lambda part, those: enumerate(those, befores[part][0]))
        .repartitionAndSortWithinPartitions(shards, lambda document: bisect.bisect_right(firsts, document) - 1)
        .mapPartitionsWithIndex(lambda shard, those: [pack(shard, those, words, shared, out, program)])
        .collect()
    )
    # That of shard 0 counts the documents without words in it, and the manifest those in all shards.
    lines = [f"empty {empty}" if line.startswith("empty ") else line for line in parts[0]["head"]]
    for shard, (first, part) in enumerate(zip(firsts, parts)):
        lines.append(f"shard {shard} {first} {part['rest']}")
    manifest = "\n".join(lines) + "\n"
    context.parallelize([manifest], 1).map(lambda text: put_text(program, out, MANIFEST, text)).collect()
    return {"documents": total, "tokens": tokens, "words": words}


def cuts(marks, documents, shards):
    """Returns the first document of each shard. No shard is empty."""
    wanted, known = {}, 0
    for document, number in sorted(marks):
        for other in range(known + 1, number + 1):
            wanted[other] = document
        known = max(known, number)
    firsts = [0]
    for number in range(1, shards):
        # Each of the remaining shards needs a document.
        latest = documents - (shards - number)
        firsts.append(min(latest, max(firsts[-1] + 1, wanted.get(number, latest))))
    return firsts


def diagnose(error):
    """Returns the error that a task reported, or that of Spark."""
    text = str(error)
    at = text.find(MARK)
    if at >= 0:
        failed, _ = json.JSONDecoder().raw_decode(text, at + len(MARK))
        return LaunchError(failed["words"], failed["status"])
    return LaunchError(f"Spark: {text}")


# On the executors.


def len_of(vector):
    if vector is None:
        raise CutFailed(1, "the vector of a document is null: filter such rows out")
    return vector.size


def same(one, other):
    if one != other:
        raise CutFailed(1, f"vectors have {one} words and {other} words: use those of one vocabulary")
    return one


def pairs_of_vector(vector):
    indices, values = getattr(vector, "indices", None), vector.values
    pairs = enumerate(values) if indices is None else zip(indices, values)
    whole = []
    for word, times in pairs:
        if not (0 <= times < 2**32 and times == int(times)):
            raise CutFailed(1, f"word {word} has the count {times} in a document: give whole numbers")
        if times:
            whole.append((int(word), int(times)))
    return whole


def words_of(words):
    if words is None or None in words:
        raise CutFailed(1, "a document, or a word of a document, is null: filter such rows out")
    return words


def pairs_of_words(words, numbers):
    counts = {}
    for word in words_of(words):
        number = numbers.get(word)
        if number is not None:
            counts[number] = counts.get(number, 0) + 1
    return sorted(counts.items())


def size(documents):
    """Returns the numbers of documents, tokens, and documents without tokens of a partition."""
    count, tokens, empty = 0, 0, 0
    for document in documents:
        count += 1
        length = sum(times for _, times in document)
        tokens += length
        empty += length == 0
    return [(count, tokens, empty)]


def reached(documents, first, before, shards, tokens):
    """Yields (document, n) where the tokens before the document first fill n shards; `before` is the number of tokens
    before document `first`."""
    last = 0
    for number, document in enumerate(documents, first):
        now = min(before * shards // tokens, shards - 1)
        if now > last:
            yield number, now
            last = now
        before += sum(times for _, times in document)


def pack(shard, documents, words, names, out, program):
    """Writes a shard with the program, and returns its lines of the manifest."""
    found = find(program)
    with tempfile.TemporaryDirectory(dir=SparkFiles.getRootDirectory()) as directory:
        path, made = os.path.join(directory, "documents"), os.path.join(directory, "made")
        with open(path, "w", encoding="ascii") as file:
            for _, document in documents:
                file.write(" ".join([str(len(document)), *(f"{word}:{times}" for word, times in document)]) + "\n")
        command = [found, "cluster", "cut", path, "--format", "ldac", "--num-words", str(words), "--shards", "1", "--out", made]
        # The names of the words are in a file of their own, which one task writes.
        if shard == 0 and names.value is not None:
            vocabulary = os.path.join(directory, "vocabulary")
            with open(vocabulary, "w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{word}\n" for word in names.value)
            command += ["--vocabulary", vocabulary]
        run(command, f"shard {shard}: ")
        with open(os.path.join(made, MANIFEST), encoding="utf-8") as file:
            *head, line = file.read().splitlines()
        copies = [("shard-00000", f"shard-{shard:05}"), (WORDS, WORDS)]
        copies = copies if shard == 0 else copies[:1]
        put(program, out, [f"{target}={os.path.join(made, source)}" for source, target in copies])
    # `rest` is what follows `shard 0 0`.
    return {"head": head, "rest": line.split(" ", 3)[3]}


def find(program):
    """Returns the path of the program on this executor."""
    try:
        return launch.find(program)
    except StartError as error:
        raise CutFailed(*error.args) from None


def run(command, what):
    """Runs a command to its end."""
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if ended.returncode:
        said = ended.stderr.decode(errors="replace").strip().splitlines()
        raise CutFailed(1, f"{what}{said[-1] if said else f'status {ended.returncode}'}")


def put(program, out, arguments):
    """Writes files to `out`, or removes some, each as a whole, because a task may run twice at the same time."""
    if "://" not in out and not os.path.isdir(out):
        raise CutFailed(1, f"{out} does not exist on an executor: give a directory that all share")
    run([find(program), "cluster", "put", "--out", out, *arguments], f"{out}: ")


def put_text(program, out, name, text):
    """Writes a text to `out`."""
    with tempfile.TemporaryDirectory(dir=SparkFiles.getRootDirectory()) as directory:
        path = os.path.join(directory, name)
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        put(program, out, [f"{name}={path}"])


# The command line.


def main():
    about, _, rest = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        description=about, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--input", metavar="PATH", help="files of the documents, in a format that Spark reads")
    source.add_argument("--table", metavar="NAME", help="table or view of the documents")
    parser.add_argument("--format", default="parquet", help="format of --input: parquet, json, orc and others [parquet]")
    parser.add_argument("--column", required=True, metavar="NAME", help="column of the words: an array of strings, or a vector of counts")
    parser.add_argument("--order-by", metavar="NAME", help="column by which the documents are sorted")
    parser.add_argument("--vocabulary", metavar="FILE", help="file of the words, one per line")
    parser.add_argument("--shards", type=launch.positive, default=8, metavar="N", help="number of shards, as for lda cluster cut [8]")
    parser.add_argument("--out", required=True, metavar="DIR", help="output directory")
    launch.add_program(parser)
    args = parser.parse_args()
    try:
        vocabulary = None
        if args.vocabulary:
            with open(args.vocabulary, encoding="utf-8", newline="\n") as file:
                vocabulary = [line.rstrip("\r\n") for line in file]
        spark = launch.session(args.spark)
        frame = spark.table(args.table) if args.table else spark.read.format(args.format).load(args.input)
        options = {"vocabulary": vocabulary, "order_by": args.order_by}
        options |= {"cluster": args.cluster, "installed": args.installed}
        done = cut(frame, args.column, args.out, args.shards, **options)
        kinds = ", ".join(f"{number} {kind}" for kind, number in done.items())
        launch.note(f"{args.out}: {args.shards} shards of {kinds}")
        spark.stop()
    except LaunchError as error:
        launch.note(f"error: {error}")
        return error.status
    except (OSError, UnicodeDecodeError) as error:
        launch.note(f"error: {error}")
        return USAGE
    except (Py4JError, PySparkException) as error:
        launch.note(f"error: Spark: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
