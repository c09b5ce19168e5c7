"""What a notebook does: counts of MLlib to shards, shards to a model, with the modules beside the scripts.

Arguments: the documents (JSON lines), the directory of the shards, the configuration, the program, where to write the
vocabulary.
"""

import sys

import cut
import launch
from pyspark.ml.feature import CountVectorizer
from pyspark.sql import SparkSession

documents, shards, config, cluster, words = sys.argv[1:]
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
spark.stop()
