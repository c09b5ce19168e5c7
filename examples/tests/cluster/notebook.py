"""What a notebook does: counts of MLlib to shards, shards to a model, with the modules beside the scripts.

Arguments: the documents (JSON lines), the directory of the shards, a configuration, another of a run without end and
the file by which it is known that it goes on, the program, where to write the vocabulary.
"""

import os
import pathlib
import sys
import threading
import time

import cut
import launch
from pyspark.ml.feature import CountVectorizer
from pyspark.sql import SparkSession

documents, shards, config, endless, kept, cluster, words = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
frame = spark.read.json(documents)
model = CountVectorizer(inputCol="tokens", outputCol="counts").fit(frame)
with open(words, "w", encoding="utf-8") as file:
    file.writelines(f"{word}\n" for word in model.vocabulary)
found = cut.cut(
    model.transform(frame), "counts", shards, shards=4, vocabulary=model.vocabulary, order_by="id", cluster=cluster
)
print("cut", found["documents"], found["words"])
for column, said in [("id", "give an array of words, or a vector"), ("ids", "there is no column ids")]:
    try:
        cut.cut(frame, column, shards, cluster=cluster)
    except launch.LaunchError as error:
        assert said in str(error), error
    else:
        raise AssertionError(column)
nodes = launch.launch(spark, config, installed=cluster)
print("nodes", *(node["node"] for node in nodes))
topics = launch.document_topics(spark, config, cluster=cluster, parts=3)
rows = topics.collect()
assert [row.document for row in rows] == list(range(40)), rows
assert {row.epoch for row in rows} == {30}, rows
assert sum(row.tokens for row in rows) == frame.rdd.map(lambda row: len(row.tokens)).sum()
for row in rows:
    # alpha is 0.5 for each of four topics.
    expected = (row.tokens + 0.5 * len(row.topics)) / (row.tokens + 2)
    assert abs(sum(topic.share for topic in row.topics) - expected) < 1e-9, row
print("topics", topics.where("tokens = 0").count(), topics.columns)
try:
    launch.document_topics(spark, endless, cluster=cluster)
except launch.LaunchError as error:
    assert "the run has completed no checkpoint there" in str(error), error
else:
    raise AssertionError("a run without checkpoints")
try:
    launch.document_topics(spark, config, cluster=cluster, epoch=7).collect()
except Exception as error:
    assert "topics-00000007-0000" in str(error), error
else:
    raise AssertionError("an epoch without a checkpoint")


def cancel():
    while not os.path.exists(kept):
        time.sleep(0.1)
    print("running", running())
    spark.sparkContext.cancelAllJobs()


def running():
    """How many nodes of the run without end there are."""
    count = 0
    for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = process.read_bytes().split(b"\0")
        except OSError:
            continue
        name = os.path.basename(endless).encode()
        count += any(word.endswith(b"/" + name) for word in command) and b"--role" in command
    return count


# Whoever ends the job ends its nodes, and it does not begin again.
threading.Thread(target=cancel, daemon=True).start()
try:
    launch.launch(spark, endless, cluster=cluster)
except launch.LaunchError as error:
    print("cancelled", error.status, error)
    print("left", running())
spark.stop()
