"""Spark MLlib: expectation maximisation on a graph, in a JVM that pyspark starts.

It cannot continue from a model, so each evaluation is a fit from the start, after 1, 2, 4, ... times
`evaluate-every` iterations. It maximises the posterior and needs priors above 1. It gets the priors of
the plan plus 1, whose mode is the mean under the plan's.
"""

import os
import shutil
import sys

import psutil
import pyspark
from pyspark.ml.clustering import LDA
from pyspark.ml.linalg import Vectors
from pyspark.sql import SparkSession

import lab as shared
import program


def run(lab, job):
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        sys.exit("not installed: it needs Java 17 or later, in PATH or JAVA_HOME")
    words, documents = shared.read_corpus(job)
    memory = os.environ.get("LDA_SPARK_MEMORY", "4g")
    session = (
        SparkSession.builder.master(f"local[{job['threads']}]")
        .config("spark.driver.memory", memory)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", job["scratch"])
        .config("spark.sql.warehouse.dir", os.path.join(job["scratch"], "warehouse"))
        .config("spark.sql.shuffle.partitions", job["threads"])
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    # Without checkpoints, the lineage of an iteration grows with each iteration.
    session.sparkContext.setCheckpointDir(os.path.join(job["scratch"], "checkpoints"))
    rows = [(d, Vectors.sparse(words, document)) for d, document in enumerate(documents)]
    corpus = session.createDataFrame(rows, ["id", "features"]).repartition(job["threads"]).cache()
    corpus.count()
    options = {
        "k": job["topics"],
        "optimizer": "em",
        "docConcentration": [job["alpha"] + 1],
        "topicConcentration": job["beta"] + 1,
        "checkpointInterval": 10,
        "seed": job["seed"],
    }
    try:
        goals = shared.doublings(job)
        epoch = next(goals)
        while epoch is not None:
            clock = shared.Clock()
            with clock:
                model = LDA(maxIter=epoch, **options).fit(corpus)
            # Expected counts without the prior, one row per word.
            weights = model.topicsMatrix().toArray().T + job["beta"]
            path = shared.write_weights(job, epoch, weights)
            lab.evaluated(epoch, clock.cpu_seconds, clock.wall_seconds, path)
            epoch = shared.further(goals, clock.cpu_seconds)
    except shared.Stop:
        pass
    peak = program.peak_of(psutil.Process())
    session.stop()
    clock = "All of the JVM during a fit, with JIT compilation. Each evaluation is a fit from the start."
    options["spark.driver.memory"] = memory
    lab.done(f"Spark {pyspark.__version__}", options, clock, peak)
