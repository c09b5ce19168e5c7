"""Watching a program from outside: the CPU time and memory of its processes, and halting them."""

import contextlib
import subprocess
import threading
import time

import psutil


class Failed(SystemExit):
    """A program ended badly; says its last words."""


def convert(command):
    """Runs a program to its end, which must be a good one."""
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, errors="replace")
    if ended.returncode:
        raise Failed(last_words(ended.stdout.splitlines(), command, ended.returncode))


def last_words(lines, command, status):
    """One line on why a program ended."""
    said = [line.strip() for line in lines if line.strip()]
    return f"{command[0]} ended with status {status}: {said[-1] if said else 'it said nothing'}"


def processes(root):
    """A process and all that it has started, as far as they are still there."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [root, *root.children(recursive=True)]
    return []


def cpu_of(root):
    """CPU seconds, user and system, of a process and all that it has started."""
    seconds = 0.0
    for process in processes(root):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            seconds += times.user + times.system
            # Those that have ended, where the system keeps count of them.
            seconds += getattr(times, "children_user", 0) + getattr(times, "children_system", 0)
    return seconds


def peak_of(root):
    """Largest resident sets of a process and all that it has started, in bytes, summed up."""
    peak = 0
    for process in processes(root):
        with contextlib.suppress(OSError, psutil.Error):
            peak += high_water(process.pid) or process.memory_info().rss
    return peak


def high_water(pid):
    """Largest resident set of one process, where the system keeps count."""
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
        """CPU seconds so far."""
        return cpu_of(self.root)

    def running(self):
        """Whether it is still there."""
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
        """Halts it, so that it does nothing while its state is judged."""
        everybody = processes(self.root)
        self.peak = max(self.peak, peak_of(self.root))
        for process in everybody:
            with contextlib.suppress(psutil.Error):
                process.suspend()
        try:
            yield
        finally:
            for process in everybody:
                with contextlib.suppress(psutil.Error):
                    process.resume()

    def end(self):
        """Waits for a good end."""
        status = self.process.wait()
        self.reader.join()
        if status:
            raise Failed(last_words(self.lines, self.command, status))

    def kill(self):
        """Ends it, with all that it has started."""
        for process in reversed(processes(self.root)):
            with contextlib.suppress(psutil.Error):
                process.kill()
        self.process.wait()


def wait_for(condition, seconds=0.003):
    """Looks again and again."""
    while not condition():
        time.sleep(seconds)
