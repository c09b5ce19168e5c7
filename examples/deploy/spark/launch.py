#!/usr/bin/env python3
"""A run of `lda cluster` on the executors of Spark: all nodes start together, as tasks of a barrier stage.

    lda cluster cut docword.nips.txt.gz --shards 8 --out /shared/nips     # or cut.py, from a table of Spark
    spark-submit --master spark://host:7077 launch.py --config /shared/run.toml --cluster target/release/lda

run.toml says what is trained, as for `lda cluster node`. It has no addresses: each task takes a port of its executor, all
tell each other by the barrier, and nodes get the list (`--nodes`). Executors see run.toml and what it names under the
same paths, as on a file system that all share. The program is built with `--features grpc`; it is sent to the
executors (--cluster), or is there already (--installed). With [grpc.tls] in run.toml nodes know each other by
certificates, which have the executor's host as Spark has it; where {role} and {index} will run is not known before,
so give each host its own certificate under one path.

There are 1 + servers + workers tasks, all at the same time: as many cores have to be free (times spark.task.cpus),
and dynamic allocation is off, which Spark demands of barrier stages. What a node says is in the standard error of its
executor.

When a task fails Spark ends all of its stage, and does not begin it again, as it has results. Here it is begun again,
up to --attempts times, where a node was killed, lost its executor, or says by its status (75) that it may go well;
the run goes on from what all workers have kept ([snapshots]) and ends with the same bits. What would go wrong again
ends the job, with the node's own words. No node outlives its task. `patience` in run.toml is best left out: a node
that is gone comes again with all others.

In a notebook, where a session is there:

    import launch
    launch.launch(spark, "/shared/run.toml", cluster="target/release/lda")

The model is the file that run.toml says. `convert model.lda --out topics.csv` makes a table for `spark.read.csv`.

Exit status: 0 done, 1 failed, 2 wrong usage, 75 it has failed as often as it may: start it again. Tested
with Spark 4.3 and Python 3.11.
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
from pyspark.sql import SparkSession

USAGE = 2
# Another attempt may go well.
AGAIN = 75
# Before the words of a node in a failed task, by which the driver finds them among those of Spark.
MARK = "LDA-NODE-ENDED "
# Lines of a node that are handed on.
LAST_WORDS = 20
# Who ends with status 75 has mostly been told of another node's end: what that one has to say comes first.
GRACE_SECONDS = 3
# For a node to end whose task does.
END_SECONDS = 10
# For the tasks of an attempt to end.
LEAVE_SECONDS = 60


class LaunchError(Exception):
    """Why there is no model, and the status that says what to do."""

    def __init__(self, words, status=1):
        super().__init__(words)
        self.status = status


class NodeEnded(Exception):
    """A node that has ended before its time; Spark takes the text to the driver."""

    def __init__(self, node, status, words):
        super().__init__(MARK + json.dumps({"node": node, "status": status, "words": words}))


class Trouble(Exception):
    """Why a node cannot be started: a status, and words."""


# On the driver.


def launch(spark, config, cluster=None, installed="lda", attempts=4, ports=None, wait=60.0):
    """Runs a job on the executors of a session, and returns what each node has to say: a list of
    {"node", "host", "words"}, the master first.

    `cluster` is the program here, which is sent to the executors; without it they have it at `installed`. `ports` are
    two numbers, the first and the last that nodes may listen at; without them the system gives any. `wait` is how
    many seconds executors may take to come. Raises LaunchError.
    """
    context = spark.sparkContext
    config = os.path.abspath(config)
    roles = read_roles(config)
    program = send(context, cluster, installed)
    if __name__ != "__main__":
        # Functions of a module are sent by name.
        context.addPyFile(os.path.abspath(__file__))
    task = node_task(config, roles, program, ports)
    for attempt in range(1, attempts + 1):
        # Executors may have been lost, and come again.
        wait_for_slots(spark, roles, wait, USAGE if attempt == 1 else AGAIN)
        try:
            return run_stage(context, task, len(roles), f"lda {os.path.basename(config)} {attempt}")
        except Py4JJavaError as error:
            words, status = judge(error)
        if status != AGAIN:
            raise LaunchError(words, status)
        note(f"attempt {attempt} of {attempts} has failed: {words}")
    raise LaunchError(f"failed {attempts} times, the last time: {words}", AGAIN)


def read_roles(config):
    """What each task is: the master, the servers, the workers."""
    try:
        import tomllib
    except ImportError:
        raise LaunchError("Python is older than 3.11: set PYSPARK_PYTHON to another", USAGE) from None
    try:
        with open(config, "rb") as file:
            training = tomllib.load(file).get("training", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LaunchError(f"{config}: {error}", USAGE) from None
    if not isinstance(training, dict):
        raise LaunchError(f"{config}: training is {training}: write a table, [training]", USAGE)
    roles = [("master", 0)]
    for role in ("server", "worker"):
        # As many as cluster has where nothing is said.
        count = training.get(f"{role}s", 1)
        if type(count) is not int or count < 1:
            raise LaunchError(f"{config}: {role}s is {count}: give a number from 1", USAGE)
        roles += [(role, index) for index in range(count)]
    return roles


def send(context, cluster, installed):
    """The program as executors find it, and whether it is sent to them."""
    if cluster is None:
        return installed, False
    if not (os.path.isfile(cluster) and os.access(cluster, os.X_OK)):
        raise LaunchError(f"{cluster} is no program: give --cluster the path of lda", USAGE)
    context.addFile(os.path.abspath(cluster))
    return os.path.basename(cluster), True


def wait_for_slots(spark, roles, seconds, status):
    """Waits until so many tasks can run at the same time: Spark itself would say so only after minutes."""
    context = spark.sparkContext
    if spark.conf.get("spark.dynamicAllocation.enabled", "false").lower() == "true":
        raise LaunchError(
            "spark.dynamicAllocation.enabled is true: barrier stages want executors that stay, set it to false", USAGE
        )
    scheduler = context._jsc.sc()
    profile = scheduler.resourceProfileManager().defaultResourceProfile()
    until = time.monotonic() + seconds
    while (slots := scheduler.maxNumConcurrentTasks(profile)) < len(roles):
        if time.monotonic() > until:
            servers = sum(role == "server" for role, _ in roles)
            raise LaunchError(
                f"{len(roles)} tasks have to run at the same time, for a master, {servers} servers and "
                f"{len(roles) - servers - 1} workers, and the executors take {slots}: give Spark more executors or "
                "cores, or the run fewer workers",
                status,
            )
        time.sleep(0.5)


def run_stage(context, task, tasks, name):
    """One attempt."""
    group = f"{name} {time.time_ns()}"
    context.setJobGroup(group, name)
    try:
        return context.parallelize(range(tasks), tasks).barrier().mapPartitions(task).collect()
    except Py4JJavaError:
        wait_for_end(context, group)
        raise
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)


def wait_for_end(context, group):
    """Until no task of a failed attempt runs, so that its nodes do not meet those of the next."""
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [stage for job in jobs if job for stage in job.stageIds]
    until = time.monotonic() + LEAVE_SECONDS
    while time.monotonic() < until:
        active = [info.numActiveTasks for info in map(tracker.getStageInfo, stages) if info]
        if not any(active):
            return
        time.sleep(0.2)


def judge(error):
    """What has gone wrong, and the status that says whether another attempt may go well."""
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
    # A task without a node's words has lost its executor. What is not of a task is of the job, and as it is.
    return words, AGAIN if "barrier task" in text or "ResultStage" in text else 1


def note(words):
    print(words, file=sys.stderr, flush=True)


# On the executors.


def node_task(config, roles, program, ports):
    """What a task does; only this is sent to the executors."""

    def task(_):
        context = BarrierTaskContext.get()
        role, index = roles[context.partitionId()]
        host = context.getTaskInfos()[context.partitionId()].address.rsplit(":", 1)[0]
        name = f"{role} {index} on {host}"
        with contextlib.ExitStack() as held:
            said = {}
            try:
                found = find(program)
                if not os.path.isfile(config):
                    raise Trouble(USAGE, f"{config} is not there: put it where all executors see it")
                reserved = held.enter_context(reserve(host, ports))
                said["address"] = f"{host}:{reserved.getsockname()[1]}"
            except Trouble as trouble:
                said["trouble"] = [name, *trouble.args]
            # What is wrong is told here: an executor whose task is ended while it waits for others ends too, and with
            # it all that others keep there.
            said = [json.loads(text) for text in context.allGather(json.dumps(said))]
            for trouble in (one["trouble"] for one in said if "trouble" in one):
                raise NodeEnded(*trouble)
            # Where Spark clears up, if this process is not let.
            directory = held.enter_context(tempfile.TemporaryDirectory(dir=SparkFiles.getRootDirectory()))
            nodes = os.path.join(directory, "nodes")
            with open(nodes, "w", encoding="utf-8") as file:
                for node, (one, (kind, _)) in enumerate(zip(said, roles)):
                    file.write(f"{node} {one['address']} {kind}\n")
            if sys.platform != "linux":
                # Elsewhere the node could not listen there, and for a moment others could.
                reserved.close()
            command = [found, "cluster", "node", "--config", config, "--role", role, "--index", str(index)]
            words = run_node(command + ["--nodes", nodes, "--end-with-input"], name)
        return [{"node": f"{role} {index}", "host": host, "words": words}]

    return task


def find(program):
    """Where the program is on this executor."""
    name, sent = program
    found = SparkFiles.get(name) if sent else shutil.which(name)
    if found is None or not os.access(found, os.X_OK):
        raise Trouble(USAGE, f"{name} is no program there: install it, or send it by --cluster")
    return found


def reserve(host, ports):
    """A socket that keeps a port for the node: it does not listen, so that the node may, and no other is given it."""
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
            # Only now: before, two tasks could have the same port, and without it the node could not.
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            return reserved
        except OSError as error:
            reserved.close()
            failed = error
    raise Trouble(1, f"no port to listen at: {failed}: give other --ports")


def run_node(command, name):
    """Runs a node to its end, hands on what it says, and returns its last words."""
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
        # It ends with its input, as it does when Spark kills this process.
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
        raise NodeEnded(name, status, words[-1] if words else f"ended with status {status}")
    return list(words)


# The command line.


def parse_ports(text):
    first, dash, last = text.partition("-")
    try:
        ports = (int(first), int(last if dash else first))
    except ValueError:
        ports = (0, 0)
    if not 1 <= ports[0] <= ports[1] <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r}: give the first and the last, as 7000-7099")
    return ports


def positive(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: give a number from 1")
    return int(text)


def add_program(parser):
    """Options of whatever runs the program on executors."""
    parser.add_argument("--cluster", metavar="FILE", help="the program here, which is sent to the executors")
    parser.add_argument(
        "--installed", default="lda", metavar="PATH", help="the program where executors have it [lda]"
    )
    parser.add_argument("--spark", metavar="URL", help="the master of Spark, where spark-submit does not say it")


def session(master):
    builder = SparkSession.builder.appName("lda")
    return (builder.master(master) if master else builder).getOrCreate()


def main():
    about, _, rest = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        description=about, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config", required=True, metavar="FILE", help="what is trained, as of lda cluster node")
    add_program(parser)
    parser.add_argument("--ports", type=parse_ports, metavar="FIRST-LAST", help="that nodes may listen at [any]")
    parser.add_argument("--attempts", type=positive, default=4, metavar="N", help="how often it is begun [4]")
    parser.add_argument(
        "--wait", type=float, default=60, metavar="SECONDS", help="how long executors may take to come [60]"
    )
    args = parser.parse_args()
    try:
        # What is wrong here is said before Spark starts.
        read_roles(args.config)
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
    except Py4JError as error:
        note(f"error: Spark: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
