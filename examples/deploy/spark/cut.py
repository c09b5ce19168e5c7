#!/usr/bin/env python3
"""Documents of a DataFrame as the shards that nodes of `lda cluster` read: what `lda cluster cut` does, on the executors.

    spark-submit cut.py --input articles.parquet --column tokens --shards 8 --out /shared/articles --cluster lda
    spark-submit launch.py --config /shared/run.toml --cluster lda           # documents = "articles"

A row is a document. Its column has words (an array of strings), or how often each word is in it (a vector, as of
CountVectorizer, whose `vocabulary` names the words). Documents are cut as `lda cluster cut` does, about equal in tokens
and in order, and the files are the same to the byte; the order is that of --order-by, and without it whatever Spark
has, so that another time other topics may come of it. Words of an array get their numbers in the order of their code
points, unless --vocabulary has them; then other words are left out.

Each shard is made by one task, which has its documents in a file of its own and, when it is packed, in memory. Driver
and executors see --out under the same path. Spark keeps the documents (memory and disk), as they are gone through
three times.

In a notebook, where a DataFrame is there:

    import cut
    cut.cut(counted, "features", "/shared/articles", vocabulary=model.vocabulary, cluster="target/release/lda")

Exit status: 0 done, 1 failed, 2 wrong usage. Tested with Spark 4.3 and Python 3.11.
"""

import argparse
import bisect
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile

import launch
from launch import USAGE, LaunchError, Trouble
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkFiles, StorageLevel
from pyspark.errors import PySparkException
from pyspark.ml.linalg import VectorUDT
from pyspark.sql.types import ArrayType, StringType

MANIFEST = "manifest"
WORDS = "words"
HOSTS = "hosts"
MOST_SHARDS = 65_535
# Before the words of a task that has failed, by which the driver finds them among those of Spark.
MARK = "LDA-CUT-FAILED "


class CutFailed(Exception):
    """Why a task has failed; Spark takes the text to the driver."""

    def __init__(self, status, words):
        super().__init__(MARK + json.dumps({"status": status, "words": words}))


# On the driver.


def cut(frame, column, out, shards=8, vocabulary=None, order_by=None, cluster=None, installed="lda"):
    """Writes the documents of a DataFrame to the directory `out`, in so many shards, and returns how many documents,
    tokens and words there are.

    `vocabulary` is a list of words, by their numbers; an array's words that are not in it are left out. For the others
    see the head of this file, and launch.launch. Raises LaunchError.
    """
    context = frame.sparkSession.sparkContext
    if not 1 <= shards <= MOST_SHARDS:
        raise LaunchError(f"{shards} shards: give 1 to {MOST_SHARDS}", USAGE)
    if "://" in out:
        raise LaunchError(f"{out}: give a directory that driver and executors see", USAGE)
    program = launch.send(context, cluster, installed)
    context.addPyFile(os.path.abspath(launch.__file__))
    if __name__ != "__main__":
        # Functions of a module are sent by name.
        context.addPyFile(os.path.abspath(__file__))
    try:
        documents, words, names = count(frame, column, vocabulary, order_by)
        documents.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            return store(context, documents, words, names, os.path.abspath(out), shards, program)
        finally:
            documents.unpersist(blocking=True)
    except (Py4JJavaError, PySparkException) as error:
        raise judge(error) from None
    except OSError as error:
        raise LaunchError(f"{out}: {error}") from None


def count(frame, column, vocabulary, order_by):
    """Documents as lists of pairs of a word's number and how often it is there, how many words there are, and their
    names if they have some."""
    if column not in frame.columns:
        raise LaunchError(f"there is no column {column}: there are {', '.join(frame.columns)}", USAGE)
    kind = frame.schema[column].dataType
    if order_by:
        frame = frame.orderBy(order_by)
    rows = frame.select(column).rdd.map(lambda row: row[0])
    if isinstance(kind, VectorUDT):
        size = rows.map(len_of).reduce(same)
        if vocabulary is not None and len(vocabulary) != size:
            raise LaunchError(f"{column} is of {size} words, and the vocabulary has {len(vocabulary)}", USAGE)
        return rows.map(pairs_of_vector), size, vocabulary
    if not (isinstance(kind, ArrayType) and isinstance(kind.elementType, StringType)):
        found = kind.simpleString()
        raise LaunchError(f"{column} is of type {found}: give an array of words, or a vector of counts", USAGE)
    if vocabulary is None:
        vocabulary = sorted(rows.flatMap(words_of).distinct().collect())
    numbers = {word: number for number, word in enumerate(vocabulary)}
    if len(numbers) < len(vocabulary):
        raise LaunchError("a word is in the vocabulary twice", USAGE)
    shared = frame.sparkSession.sparkContext.broadcast(numbers)
    return rows.map(lambda words: pairs_of_words(words, shared.value)), len(vocabulary), vocabulary


def store(context, documents, words, names, out, shards, program):
    """Writes the shards and, when all are there, the manifest."""
    if any("\n" in word or "\r" in word for word in names or []):
        raise LaunchError("a word has a line break in it: leave it out, or split there", USAGE)
    sizes = documents.mapPartitions(size).collect()
    befores = list(itertools.accumulate(sizes, lambda a, b: (a[0] + b[0], a[1] + b[1]), initial=(0, 0)))
    total, tokens = befores.pop()
    if tokens == 0:
        raise LaunchError("no document has a word", 1)
    if shards > total:
        raise LaunchError(f"{shards} shards of {total} documents: give fewer", USAGE)
    marks = documents.mapPartitionsWithIndex(
        lambda part, those: reached(those, *befores[part], shards, tokens)
    ).collect()
    firsts = cuts(marks, total, shards)
    os.makedirs(out, exist_ok=True)
    # Without a manifest there is nothing, and other shards may lie elsewhere.
    for name in [MANIFEST, HOSTS]:
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(out, name))
    shared = context.broadcast(names)
    parts = (
        documents.mapPartitionsWithIndex(lambda part, those: enumerate(those, befores[part][0]))
        .repartitionAndSortWithinPartitions(shards, lambda document: bisect.bisect_right(firsts, document) - 1)
        .mapPartitionsWithIndex(lambda shard, those: [pack(shard, those, words, shared, out, program)])
        .collect()
    )
    lines = list(parts[0]["head"])
    for shard, (first, part) in enumerate(zip(firsts, parts)):
        lines.append(f"shard {shard} {first} {part['rest']}")
    replace(os.path.join(out, MANIFEST), ("\n".join(lines) + "\n").encode())
    return {"documents": total, "tokens": tokens, "words": words}


def cuts(marks, documents, shards):
    """The first document of each shard. No shard is without one."""
    wanted, known = {}, 0
    for document, number in sorted(marks):
        for other in range(known + 1, number + 1):
            wanted[other] = document
        known = max(known, number)
    firsts = [0]
    for number in range(1, shards):
        # As many documents must be left as shards.
        latest = documents - (shards - number)
        firsts.append(min(latest, max(firsts[-1] + 1, wanted.get(number, latest))))
    return firsts


def judge(error):
    """What a task has to say, or Spark."""
    text = str(error)
    at = text.find(MARK)
    if at >= 0:
        failed, _ = json.JSONDecoder().raw_decode(text, at + len(MARK))
        return LaunchError(failed["words"], failed["status"])
    return LaunchError(f"Spark: {text}")


# On the executors.


def len_of(vector):
    if vector is None:
        raise CutFailed(1, "a document has no vector: leave such rows out")
    return vector.size


def same(one, other):
    if one != other:
        raise CutFailed(1, f"vectors are of {one} words and of {other}: take those of one vocabulary")
    return one


def pairs_of_vector(vector):
    indices, values = getattr(vector, "indices", None), vector.values
    pairs = enumerate(values) if indices is None else zip(indices, values)
    whole = []
    for word, times in pairs:
        if not (0 <= times < 2**32 and times == int(times)):
            raise CutFailed(1, f"word {word} is {times} times in a document: give whole numbers")
        if times:
            whole.append((int(word), int(times)))
    return whole


def words_of(words):
    if words is None or None in words:
        raise CutFailed(1, "a document, or a word of one, is null: leave such rows out")
    return words


def pairs_of_words(words, numbers):
    counts = {}
    for word in words_of(words):
        number = numbers.get(word)
        if number is not None:
            counts[number] = counts.get(number, 0) + 1
    return sorted(counts.items())


def size(documents):
    """How many documents a partition has, and how many tokens."""
    count, tokens = 0, 0
    for document in documents:
        count += 1
        tokens += sum(times for _, times in document)
    return [(count, tokens)]


def reached(documents, first, before, shards, tokens):
    """Documents before which are the tokens of one shard more, and of how many; `before` the first are so many."""
    last = 0
    for number, document in enumerate(documents, first):
        now = min(before * shards // tokens, shards - 1)
        if now > last:
            yield number, now
            last = now
        before += sum(times for _, times in document)


def pack(shard, documents, words, names, out, program):
    """Has the program make the shard of some documents, and says what the manifest is to say of it."""
    try:
        found = launch.find(program)
    except Trouble as trouble:
        raise CutFailed(*trouble.args) from None
    if not os.path.isdir(out):
        raise CutFailed(1, f"{out} is not there on an executor: give a directory that all see")
    with tempfile.TemporaryDirectory(dir=SparkFiles.getRootDirectory()) as directory:
        path, made = os.path.join(directory, "documents"), os.path.join(directory, "made")
        with open(path, "w", encoding="ascii") as file:
            for _, document in documents:
                file.write(" ".join([str(len(document)), *(f"{word}:{times}" for word, times in document)]) + "\n")
        command = [found, "cluster", "cut", path, "--format", "ldac", "--num-words", str(words), "--shards", "1", "--out", made]
        # Names are in a file of their own, and one is enough.
        if shard == 0 and names.value is not None:
            vocabulary = os.path.join(directory, "vocabulary")
            with open(vocabulary, "w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{word}\n" for word in names.value)
            command += ["--vocabulary", vocabulary]
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        if ended.returncode:
            said = ended.stderr.decode(errors="replace").strip().splitlines()
            raise CutFailed(1, f"shard {shard}: {said[-1] if said else f'status {ended.returncode}'}")
        with open(os.path.join(made, MANIFEST), encoding="utf-8") as file:
            *head, line = file.read().splitlines()
        copies = [("shard-00000", f"shard-{shard:05}"), (WORDS, WORDS)]
        for source, target in copies if shard == 0 else copies[:1]:
            with open(os.path.join(made, source), "rb") as file:
                replace(os.path.join(out, target), file)
    # After `shard 0 0`.
    return {"head": head, "rest": line.split(" ", 3)[3]}


def replace(path, content):
    """Writes a file beside, and then in the place of whatever is there: a task may run twice."""
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(path), prefix=".", delete=False) as file:
        try:
            if isinstance(content, bytes):
                file.write(content)
            else:
                shutil.copyfileobj(content, file)
            file.flush()
            # As other files are, and not for its owner only.
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


# The command line.


def main():
    about, _, rest = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        description=about, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--input", metavar="PATH", help="documents, in files that Spark reads")
    source.add_argument("--table", metavar="NAME", help="documents, in a table or view")
    parser.add_argument("--format", default="parquet", help="of --input: parquet, json, orc and others [parquet]")
    parser.add_argument("--column", required=True, metavar="NAME", help="an array of words, or a vector of counts")
    parser.add_argument("--order-by", metavar="NAME", help="a column by which documents are put in order")
    parser.add_argument("--vocabulary", metavar="FILE", help="words, one a line")
    parser.add_argument("--shards", type=launch.positive, default=8, metavar="N", help="as of lda cluster cut [8]")
    parser.add_argument("--out", required=True, metavar="DIR", help="directory that they are written to")
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
