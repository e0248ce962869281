"""A process hears every signal that tells it to stop."""

from __future__ import annotations

import signal
import subprocess
import sys

BEGIN = """
import os, signal, threading, time
from embedding.kernel.processes import stop_on_signals
"""


def end_of(code: str, number: int | None = None) -> int:
    """How a process ends that runs this code, told `number` once it says a line."""
    with subprocess.Popen(
        [sys.executable, "-c", BEGIN + code], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            if number is not None:
                process.stdout.readline()
                process.send_signal(number)
            return process.wait(300)
        finally:
            process.kill()


def test_signals_that_meet_an_event_in_use_do_not_block_the_process():
    code = """
stop = stop_on_signals()
with stop._cond:
    for _ in range(3):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.05)
assert stop.wait(30)
"""
    assert end_of(code) == 0


def test_a_signal_that_does_not_wake_the_main_thread_is_heard():
    """Another thread takes it, as the kernel may choose: the main thread's lock stays asleep."""
    code = """
stop = stop_on_signals()
def tell():
    time.sleep(0.5)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    # Alive to the end, so that nothing else wakes the main thread.
    time.sleep(120)
threading.Thread(target=tell, daemon=True).start()
stop.wait()
"""
    assert end_of(code) == 0


def test_interrupts_of_the_terminal_are_heard_where_they_are_meant():
    """And elsewhere left to whoever started the process."""
    code = """
stop = stop_on_signals(terminal={terminal})
print("ready", flush=True)
assert stop.wait({wait}) is {terminal}
"""
    assert end_of(code.format(terminal=True, wait="None"), signal.SIGINT) == 0
    assert end_of(code.format(terminal=False, wait="1"), signal.SIGINT) == 0
