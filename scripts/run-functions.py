#!/usr/bin/env python3
"""Lists the functions that `cofferdam run` executes, with their sizes, for scripts/build.sh to lay them out together.

usage: scripts/run-functions.py BINARY >scripts/run-functions.txt

BINARY is a build with its names (target/*/release/cofferdam-names). Needs root, for it runs BINARY step by step, and
every process that comes of it until that executes something else. Takes two minutes. Worth doing again when much of
`run` has changed: what the list lacks is still there, only further away.
"""

import bisect
import ctypes
import os
import re
import signal
import subprocess
import sys

RUNS = [["--", "/bin/true"], ["-c", "print(1)"]]

PTRACE_TRACEME, PTRACE_CONT, PTRACE_SINGLESTEP, PTRACE_GETREGS, PTRACE_SETOPTIONS = 0, 7, 9, 12, 0x4200
TRACE_FORK, TRACE_VFORK, TRACE_CLONE, TRACE_EXEC, EXIT_KILL = 0x2, 0x4, 0x8, 0x10, 0x100000
EVENT_EXEC = 4
WALL = 0x40000000
RIP = 16  # its place among the registers

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def symbols(binary):
    """Where each function begins and ends, and what is listed of it."""
    listed = subprocess.run(["nm", "-n", "-S", "--defined-only", binary], check=True, capture_output=True, text=True)
    fields = [line.split() for line in listed.stdout.splitlines()]
    found = [(int(f[0], 16), int(f[1], 16), f[3]) for f in fields if len(f) == 4 and f[2] in "tTwWi"]
    return sorted((start, start + size, f"{lasting(name)} {size:016x}") for start, size, name in found if size)


def trace(argv):
    """Every address that is executed, in the order of the first time, and whether by a child."""
    root = os.fork()
    if root == 0:
        os.dup2(2, 1)
        libc.ptrace(PTRACE_TRACEME, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.execv(argv[0], argv)
    os.waitpid(root, 0)
    libc.ptrace(PTRACE_SETOPTIONS, root, None, TRACE_FORK | TRACE_VFORK | TRACE_CLONE | TRACE_EXEC | EXIT_KILL)
    libc.ptrace(PTRACE_SINGLESTEP, root, None, None)
    registers = (ctypes.c_ulong * 27)()
    ours, theirs, executed = {root}, set(), {}
    begun = False
    while ours:
        pid, status = os.waitpid(-1, WALL)
        if not os.WIFSTOPPED(status):
            ours.discard(pid)
            continue
        event, sent = status >> 16, os.WSTOPSIG(status)
        if event == EVENT_EXEC and pid == root and not begun:
            begun = True
        elif event == EVENT_EXEC:
            # The program in the sandbox: not ours to look at.
            theirs.add(pid)
            ours.discard(pid)
        passed = sent if not event and sent not in (signal.SIGTRAP, signal.SIGSTOP) else 0
        if pid in theirs:
            libc.ptrace(PTRACE_CONT, pid, None, passed)
            continue
        ours.add(pid)
        if libc.ptrace(PTRACE_GETREGS, pid, None, ctypes.addressof(registers)) == 0:
            address = registers[RIP]
            executed[address] = executed.get(address, False) or pid != root
        libc.ptrace(PTRACE_SINGLESTEP, pid, None, passed)
    return executed


def lasting(name):
    """A name without what changes from one build to the next."""
    return re.sub(r"\.llvm\.\d+$", "", re.sub(r"17h[0-9a-f]{16}E", "E", name))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    binary = os.path.abspath(sys.argv[1])
    functions = symbols(binary)
    starts = [start for start, _, _ in functions]
    listed = {}
    for run in RUNS:
        # What children execute comes first: each maps those pages anew, while everybody waits for it.
        near, far = {}, {}
        for address, by_child in trace([binary, "run", *run]).items():
            at = bisect.bisect_right(starts, address) - 1
            if at >= 0 and address < functions[at][1]:
                (near if by_child else far)[functions[at][2]] = True
        listed.update({name: True for name in [*near, *far] if name not in listed})
    print("\n".join(listed))


main()
