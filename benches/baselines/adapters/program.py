"""Observation of a program: CPU time and memory of its processes, and halting them."""

import contextlib
import subprocess
import threading
import time

import psutil


class Failed(SystemExit):
    """A program failed; the message has its last line."""


def convert(command):
    """Runs a program, which must succeed."""
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, errors="replace")
    if ended.returncode:
        raise Failed(last_words(ended.stdout.splitlines(), command, ended.returncode))


def last_words(lines, command, status):
    """Returns one line about the failure of a program."""
    said = [line.strip() for line in lines if line.strip()]
    return f"{command[0]} exited with status {status}: {said[-1] if said else 'without output'}"


def processes(root):
    """Returns a process and all its descendants that are running."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [root, *root.children(recursive=True)]
    return []


def cpu_of(root):
    """Returns the CPU seconds, user and system, of a process and all its descendants."""
    seconds = 0.0
    for process in processes(root):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            seconds += times.user + times.system
            # Children that have exited, if the system counts them.
            seconds += getattr(times, "children_user", 0) + getattr(times, "children_system", 0)
    return seconds


def peak_of(root):
    """Returns the sum of the peak resident sets of a process and all its descendants, in bytes."""
    peak = 0
    for process in processes(root):
        with contextlib.suppress(OSError, psutil.Error):
            peak += high_water(process.pid) or process.memory_info().rss
    return peak


def high_water(pid):
    """Returns the peak resident set of a process in bytes; None if the system does not report it."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return None


class Program:
    """A running program. A thread reads its output and calls `on_line(program, line)`."""

    def __init__(self, command, on_line, **options):
        self.command = command
        self.lines = []
        self.peak = 0
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, errors="replace",
                                        **options)
        self.root = psutil.Process(self.process.pid)
        self.reader = threading.Thread(target=self._read, args=(on_line,), daemon=True)
        self.reader.start()

    def _read(self, on_line):
        for line in self.process.stdout:
            self.lines = [*self.lines[-20:], line]
            on_line(self, line)

    def cpu(self):
        """Returns the CPU seconds until now."""
        return cpu_of(self.root)

    def running(self):
        """Whether the program is running."""
        return self.process.poll() is None

    def holds(self, path):
        """Whether any of its processes has the file open."""
        for process in processes(self.root):
            with contextlib.suppress(psutil.Error):
                if any(file.path == path for file in process.open_files()):
                    return True
        return False

    @contextlib.contextmanager
    def halted(self):
        """Halts the program while its state is evaluated."""
        halted = processes(self.root)
        self.peak = max(self.peak, peak_of(self.root))
        for process in halted:
            with contextlib.suppress(psutil.Error):
                process.suspend()
        try:
            yield
        finally:
            for process in halted:
                with contextlib.suppress(psutil.Error):
                    process.resume()

    def end(self):
        """Waits for the end, which must be a success."""
        status = self.process.wait()
        self.reader.join()
        if status:
            raise Failed(last_words(self.lines, self.command, status))

    def kill(self):
        """Kills the program and all its descendants."""
        for process in reversed(processes(self.root)):
            with contextlib.suppress(psutil.Error):
                process.kill()
        self.process.wait()


def wait_for(condition, seconds=0.003):
    """Polls until the condition holds."""
    while not condition():
        time.sleep(seconds)
