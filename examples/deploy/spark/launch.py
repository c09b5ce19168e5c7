#!/usr/bin/env python3
"""A run of `lda cluster` on the executors of Spark. All nodes start together, as tasks of a barrier stage.

    lda cluster cut docword.nips.txt.gz --shards 8 --out /shared/nips     # or cut.py, from a DataFrame
    spark-submit --master spark://host:7077 launch.py --config /shared/run.toml --cluster target/release/lda

run.toml is the configuration of `lda cluster node`, without addresses: each task reserves a port of its executor, the
tasks exchange their addresses through the barrier, and each node gets the list (`--nodes`). Executors get run.toml
itself, and must find the paths in it under the same names: on a shared file system, relative ones from the directory
of run.toml, or in an object store (documents = "s3://bucket/nips"; the same for checkpoints). With an empty table
[locality], shards go to the workers on hosts that hold them. Build the program `lda` with `--features grpc`, and
`object-store` or `hdfs` as needed. It is sent to the executors (--cluster), or is installed there (--installed). With
[grpc.tls] in run.toml, nodes authenticate each other by certificates for the host name of their executor. Roles are assigned to
hosts only at the start, so give each host its own certificate under the same path, and `name = "{host}"` in [grpc.tls],
since nodes may have the same host.

The run needs 1 + servers + workers tasks at the same time: that many free cores (times spark.task.cpus), and dynamic
allocation turned off, which Spark requires for barrier stages. The output of a node is in the standard error of its
executor.

If a task fails, Spark aborts the whole stage and does not repeat it. This script starts it again, at most --attempts
times, if a node was killed, lost its executor, or exited with status 75 (a restart may succeed). The run then
continues from the last epoch that every worker has checkpointed ([snapshots]) and ends with the same bits. Any other
failure ends the job, with the message of the node. No node outlives its task. Leave `patience` out of run.toml: a
failed node restarts together with all others.

In a notebook with a session `spark`:

    import launch
    launch.launch(spark, "/shared/run.toml", cluster="target/release/lda")

    topics = launch.document_topics(spark, "/shared/run.toml", cluster="target/release/lda")

The model is the file `save` of run.toml. `lda convert model.lda --out topics.csv` makes a table for `spark.read.csv`.
`document_topics` returns the topics of the training documents at the last checkpoint, so run.toml needs [snapshots].

Exit status: 0 success, 1 failure, 2 wrong usage, 75 every attempt failed with status 75: start it again. Tested with
Spark 4.3 and Python 3.11.
"""

import argparse
import collections
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import BarrierTaskContext, SparkFiles
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

USAGE = 2
# A restart may succeed.
AGAIN = 75
# Prefix of the report of a failed node, by which the driver finds it in the error message of Spark.
MARK = "LDA-NODE-ENDED "
# Number of lines of a node's output that are returned to the driver.
LAST_WORDS = 20
# A node usually exits with status 75 because another node failed. The wait lets the report of that node arrive first.
GRACE_SECONDS = 3
# Time that a node has to exit when its task ends.
END_SECONDS = 10
# Time that the tasks of an attempt have to end.
LEAVE_SECONDS = 60


class LaunchError(Exception):
    """The run failed; `status` is the exit status."""

    def __init__(self, words, status=1):
        super().__init__(words)
        self.status = status


class NodeEnded(Exception):
    """A node failed. Spark transports the text to the driver."""

    def __init__(self, node, status, words):
        super().__init__(MARK + json.dumps({"node": node, "status": status, "words": words}))


class StartError(Exception):
    """A node cannot be started. Arguments: exit status, message."""


# On the driver.


def launch(spark, config, cluster=None, installed="lda", attempts=4, ports=None, wait=60.0):
    """Runs a job on the executors of a session.

    Returns a list of {"node", "host", "words"}, the master first; "words" are the last lines of the node's output.

    `cluster` is a path of the program `lda` on this machine, which is sent to the executors; without it, the executors
    have the program at `installed`. `ports` are the first and the last port that nodes may listen on; without them the
    system chooses. `wait` is the maximum number of seconds until enough executors are available. Raises LaunchError.
    """
    context = spark.sparkContext
    config = os.path.abspath(config)
    text, roles = read_config(config)
    program = send(context, cluster, installed)
    if __name__ != "__main__":
        # Spark sends functions of a module by name, so the executors need the module.
        context.addPyFile(os.path.abspath(__file__))
    task = node_task(config, text, roles, program, ports)
    for attempt in range(1, attempts + 1):
        # Lost executors may take time to come back.
        wait_for_slots(spark, roles, wait, USAGE if attempt == 1 else AGAIN)
        try:
            return run_stage(context, task, len(roles), f"lda {os.path.basename(config)} {attempt}")
        except (Py4JJavaError, PySparkException) as error:
            words, status = diagnose(error)
        if status != AGAIN:
            raise LaunchError(words, status)
        note(f"attempt {attempt} of {attempts} failed: {words}")
    raise LaunchError(f"{attempts} attempts failed, the last one with: {words}", AGAIN)


def read_config(config):
    """The bytes of the file, and role and index of each task: the master, the servers, the workers."""
    try:
        import tomllib
    except ImportError:
        raise LaunchError("this Python is older than 3.11: set PYSPARK_PYTHON to a newer one", USAGE) from None
    try:
        with open(config, "rb") as file:
            text = file.read()
        training = tomllib.loads(text.decode()).get("training", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LaunchError(f"{config}: {error}", USAGE) from None
    if not isinstance(training, dict):
        raise LaunchError(f"{config}: training is {training}: write a table [training]", USAGE)
    roles = [("master", 0)]
    for role in ("server", "worker"):
        # The default of `lda cluster`.
        count = training.get(f"{role}s", 1)
        if type(count) is not int or count < 1:
            raise LaunchError(f"{config}: {role}s is {count}: give a whole number above 0", USAGE)
        roles += [(role, index) for index in range(count)]
    return text, roles


def send(context, cluster, installed):
    """Sends the program to the executors, if a path is given. Returns its name there, and whether it was sent."""
    if cluster is None:
        return installed, False
    if not (os.path.isfile(cluster) and os.access(cluster, os.X_OK)):
        raise LaunchError(f"{cluster} is not an executable file: give the path of lda to --cluster", USAGE)
    context.addFile(os.path.abspath(cluster))
    return os.path.basename(cluster), True


def wait_for_slots(spark, roles, seconds, status):
    """Waits until a task per role can run at the same time. Spark itself reports a lack of slots only after minutes."""
    context = spark.sparkContext
    if spark.conf.get("spark.dynamicAllocation.enabled", "false").lower() == "true":
        raise LaunchError(
            "spark.dynamicAllocation.enabled is true, but barrier stages need fixed executors: set it to false", USAGE
        )
    scheduler = context._jsc.sc()
    profile = scheduler.resourceProfileManager().defaultResourceProfile()
    until = time.monotonic() + seconds
    while (slots := scheduler.maxNumConcurrentTasks(profile)) < len(roles):
        if time.monotonic() > until:
            servers = sum(role == "server" for role, _ in roles)
            raise LaunchError(
                f"{len(roles)} tasks must run at the same time, for a master, {servers} servers and "
                f"{len(roles) - servers - 1} workers, but the executors have room for {slots}: give Spark more executors "
                "or cores, or the run fewer workers",
                status,
            )
        time.sleep(0.5)


def run_stage(context, task, tasks, name):
    """Runs one attempt."""
    group = f"{name} {time.time_ns()}"
    context.setJobGroup(group, name)
    try:
        return context.parallelize(range(tasks), tasks).barrier().mapPartitions(task).collect()
    except (Py4JJavaError, PySparkException):
        wait_for_end(context, group)
        raise
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)


def wait_for_end(context, group):
    """Waits until no task of a failed attempt runs, so that its nodes do not connect to those of the next attempt."""
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [stage for job in jobs if job for stage in job.stageIds]
    until = time.monotonic() + LEAVE_SECONDS
    while time.monotonic() < until:
        active = [info.numActiveTasks for info in map(tracker.getStageInfo, stages) if info]
        if not any(active):
            return
        time.sleep(0.2)


def diagnose(error):
    """Returns the cause of a failure, and the exit status, which tells whether a restart may succeed."""
    text = str(error)
    at = text.find(MARK)
    if at >= 0:
        ended, _ = json.JSONDecoder().raw_decode(text, at + len(MARK))
        node, status = ended["node"], ended["status"]
        if status < 0:
            return f"{node} was killed by signal {-status}", AGAIN
        return f"{node}: {ended['words']}", status if status in (USAGE, AGAIN) else 1
    lines = [line.strip(" \t:") for line in text.splitlines()]
    signs = ("ExecutorLostFailure", "SparkException", "")
    of_spark = (line for sign in signs for line in lines if line and sign in line)
    words = next(of_spark, "Spark gives no reason")
    # A task that failed without a report of its node lost its executor. Other errors concern the job itself.
    return words, AGAIN if "barrier task" in text or "ResultStage" in text else 1


def note(words):
    print(words, file=sys.stderr, flush=True)


# Columns of `document_topics`.
TOPICS = "epoch int, document long, name string, tokens long, topics array<struct<topic: int, share: double>>"


def document_topics(spark, config, cluster=None, installed="lda", epoch=None, parts=None):
    """Returns the topics of the training documents at a checkpoint of a run as a DataFrame, in the order of documents.

    Columns: `epoch` of the checkpoint, number of the `document` in the order of the shards, its `name` if it has one,
    its number of `tokens`, and `topics`: (topic, share) of those with tokens, largest first. Shares of other topics
    are those of the prior, alpha_k / (tokens + sum of alpha).

    `epoch` is that of the last checkpoint if it is not given. The executors read the shards and the checkpoint
    whenever the DataFrame is computed, in `parts` tasks: cache or store it if the run goes on, which removes
    checkpoints. The other arguments are those of launch(). Raises LaunchError if the configuration is invalid.
    """
    context = spark.sparkContext
    config = os.path.abspath(config)
    text, _ = read_config(config)
    program = send(context, cluster, installed)
    if __name__ != "__main__":
        context.addPyFile(os.path.abspath(__file__))
    if epoch is None:
        # The first row names the epoch, so that all parts are of one.
        rows = context.parallelize([0], 1).mapPartitionsWithIndex(topics_task(config, text, program, 1, None))
        try:
            epoch = rows.first()[0]
        except (Py4JJavaError, PySparkException) as error:
            raise LaunchError(*diagnose(error)) from None
    parts = parts or context.defaultParallelism
    tasks = context.parallelize(range(parts), parts)
    rows = tasks.mapPartitionsWithIndex(topics_task(config, text, program, parts, epoch))
    return spark.createDataFrame(rows, TOPICS)


# On the executors.


def topics_task(config, text, program, parts, epoch):
    """Returns the function of a task that reads the documents of a part of the shards."""

    def task(part, _):
        try:
            found = find(program)
        except StartError as error:
            raise NodeEnded("document-topics", *error.args) from None
        with contextlib.ExitStack() as held:
            directory = held.enter_context(tempfile.TemporaryDirectory(dir=SparkFiles.getRootDirectory()))
            words = held.enter_context(tempfile.TemporaryFile())
            command = [found, "cluster", "document-topics", *write_config(config, text, directory)]
            if epoch is not None:
                command += ["--epoch", str(epoch), "--part", f"{part}/{parts}"]
            # Standard error goes into a file: a full pipe would stop the program.
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=words)
            try:
                for line in process.stdout:
                    row = json.loads(line)
                    topics = [(topic, share) for topic, share in row["topics"]]
                    yield row["epoch"], row["document"], row.get("name"), row["tokens"], topics
                status = process.wait()
            finally:
                # Spark may need the first rows alone.
                process.kill()
                process.wait()
                process.stdout.close()
            if status:
                words.seek(0)
                last = words.read().decode(errors="replace").strip().splitlines()[-1:]
                raise NodeEnded("document-topics", status, last[0] if last else f"exited with status {status}")

    return task


def write_config(config, text, directory):
    """Writes the configuration to a directory of this executor; returns the options that name it."""
    path = os.path.join(directory, os.path.basename(config))
    with open(path, "wb") as file:
        file.write(text)
    return ["--config", path, "--base", os.path.dirname(config)]


def node_task(config, text, roles, program, ports):
    """Returns the function of a task, which Spark sends to the executors."""

    def task(_):
        context = BarrierTaskContext.get()
        role, index = roles[context.partitionId()]
        host = context.getTaskInfos()[context.partitionId()].address.rsplit(":", 1)[0]
        name = f"{role} {index} on {host}"
        with contextlib.ExitStack() as held:
            report = {}
            try:
                found = find(program)
                reserved = held.enter_context(reserve(host, ports))
                report["address"] = f"{host}:{reserved.getsockname()[1]}"
            except StartError as error:
                report["error"] = [name, *error.args]
            # Errors are raised only after the exchange: an executor whose task is killed while it waits for others
            # exits too, with the data that other jobs cache there.
            reports = [json.loads(text) for text in context.allGather(json.dumps(report))]
            for error in (report["error"] for report in reports if "error" in report):
                raise NodeEnded(*error)
            # A directory that Spark deletes if this process is killed.
            directory = held.enter_context(tempfile.TemporaryDirectory(dir=SparkFiles.getRootDirectory()))
            nodes = os.path.join(directory, "nodes")
            with open(nodes, "w", encoding="utf-8") as file:
                for node, (one, (kind, _)) in enumerate(zip(reports, roles)):
                    file.write(f"{node} {one['address']} {kind}\n")
            if sys.platform != "linux":
                # Other systems do not let the node listen on a reserved port; the port is free for a moment.
                reserved.close()
            options = write_config(config, text, directory)
            command = [found, "cluster", "node", *options, "--role", role, "--index", str(index)]
            words = run_node(command + ["--nodes", nodes, "--end-with-input"], name)
        return [{"node": f"{role} {index}", "host": host, "words": words}]

    return task


def find(program):
    """Returns the path of the program on this executor."""
    name, sent = program
    found = SparkFiles.get(name) if sent else shutil.which(name)
    if found is None or not os.access(found, os.X_OK):
        raise StartError(USAGE, f"{name} is not an executable file there: install it, or send it with --cluster")
    return found


def reserve(host, ports):
    """Returns a socket that reserves a port for the node. It does not listen, so that the node can."""
    first, last = ports or (0, 0)
    for port in range(first, last + 1):
        try:
            family, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            reserved = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            failed = error
            continue
        try:
            reserved.bind(place)
            # Set after binding: if it were set before, two tasks could get the same port; without it, the node could
            # not bind it.
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            return reserved
        except OSError as error:
            reserved.close()
            failed = error
    raise StartError(1, f"no port to listen on: {failed}: give other --ports")


def run_node(command, name):
    """Runs a node to its end, forwards its output, and returns the last lines."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace"
    )
    words = collections.deque(maxlen=LAST_WORDS)
    try:
        for line in process.stderr:
            words.append(line.rstrip("\n"))
            print(f"{name}: {words[-1]}", file=sys.stderr, flush=True)
        status = process.wait()
    finally:
        # The node exits when its standard input closes, also if Spark kills this process.
        process.stdin.close()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stderr.close()
    if status:
        if status == AGAIN:
            time.sleep(GRACE_SECONDS)
        raise NodeEnded(name, status, words[-1] if words else f"exited with status {status}")
    return list(words)


# The command line.


def parse_ports(text):
    first, dash, last = text.partition("-")
    try:
        ports = (int(first), int(last if dash else first))
    except ValueError:
        ports = (0, 0)
    if not 1 <= ports[0] <= ports[1] <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r}: give the first and the last port, as in 7000-7099")
    return ports


def positive(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number above 0")
    return int(text)


def add_program(parser):
    """Adds the options that both scripts have."""
    parser.add_argument("--cluster", metavar="FILE", help="the program lda on this machine, which is sent to the executors")
    parser.add_argument(
        "--installed", default="lda", metavar="PATH", help="the program lda on the executors, if --cluster is not given [lda]"
    )
    parser.add_argument("--spark", metavar="URL", help="URL of the Spark master, if spark-submit does not set it")


def session(master):
    builder = SparkSession.builder.appName("lda")
    return (builder.master(master) if master else builder).getOrCreate()


def main():
    about, _, rest = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        description=about, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config", required=True, metavar="FILE", help="configuration of the run, as for lda cluster node")
    add_program(parser)
    parser.add_argument("--ports", type=parse_ports, metavar="FIRST-LAST", help="ports that nodes may listen on [any]")
    parser.add_argument("--attempts", type=positive, default=4, metavar="N", help="maximum number of attempts [4]")
    parser.add_argument(
        "--wait", type=float, default=60, metavar="SECONDS", help="maximum time until enough executors are available [60]"
    )
    args = parser.parse_args()
    try:
        # An invalid configuration is reported before Spark starts.
        read_config(args.config)
        spark = session(args.spark)
        options = {"attempts": args.attempts, "ports": args.ports, "wait": args.wait}
        nodes = launch(spark, args.config, args.cluster, args.installed, **options)
        for words in nodes[0]["words"][-1:]:
            note(f"{nodes[0]['node']}: {words}")
        note("done: " + ", ".join(f"{node['node']} on {node['host']}" for node in nodes))
        spark.stop()
    except LaunchError as error:
        note(f"error: {error}")
        return error.status
    except (Py4JError, PySparkException) as error:
        note(f"error: Spark: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
