//! Python programs that look at what a wait could have changed.

use super::{Program, program};

pub(crate) static PROGRAMS: [Program; 51] = [
    program("print", "print(1)"),
    Program { args: &["a", "-v", "", "ü"], ..program("argv", "import sys; print(sys.argv, sys.orig_argv)") },
    program("main", "print(__name__, __doc__, __package__, __spec__, __loader__, '__file__' in globals())"),
    program("names", "print(sorted(globals())); print(locals() is globals())"),
    program("modules", "import sys; print(sorted(sys.modules))"),
    program("path", "import sys; print(sys.path, sys.executable, sys.prefix, sys.flags)"),
    Program {
        env: &[("A", "1"), ("B", "x=y\nz")],
        ..program("environ", "import os; print(dict(os.environ))")
    },
    Program {
        env: &[("CHILD", "seen")],
        ..program("environment of a child", "import os; print(os.system('env | sort'))")
    },
    program("folder", "import os; print(os.getcwd(), os.listdir('.'), oct(os.umask(0)))"),
    program("traceback", "def f(x):\n    return 1 / x\n\n\ntry:\n    f(0)\nfinally:\n    print('done')\n"),
    program("chained", "try:\n    int('x')\nexcept ValueError as e:\n    raise KeyError('k') from e\n"),
    program("caught", "import traceback\ntry:\n    [][1]\nexcept IndexError:\n    traceback.print_exc()\n"),
    program("a syntax error", "print(1)\nif True print(2)\n"),
    program("a syntax error of its own making", "print('once', flush=True)\nexec('if True print(2)')\n"),
    program("an unreadable value", "print('once', flush=True)\nint('x')\n"),
    program("an indentation error", "def f():\nreturn 1\n"),
    program("a group", "raise ExceptionGroup('g', [ValueError(1), TypeError(2)])"),
    program("its own excepthook", "import sys\nsys.excepthook = lambda *a: print('hook', a[0])\n1 / 0\n"),
    program("a broken excepthook", "import sys\ndef h(*a): raise ValueError(3)\nsys.excepthook = h\n1 / 0\n"),
    program("overridden names", "type = hasattr = issubclass = sys = os = exec = None\n1 / 0\n"),
    program("atexit", "import atexit\natexit.register(print, 'first')\natexit.register(print, 'second')\n"),
    program(
        "atexit after an error",
        "import atexit, sys\natexit.register(lambda: print(sys.last_value))\n1 / 0\n",
    ),
    program("exit code", "import sys; sys.exit(7)"),
    program("exit text", "raise SystemExit('said')"),
    program("hard exit", "import os; print('lost', end=''); os._exit(3)"),
    program("killed", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"),
    program("interrupted", "import os, time; os.kill(os.getpid(), 2); time.sleep(9)"),
    program("handlers", "import signal; print([signal.getsignal(n) for n in (1, 2, 13, 15, 17)])"),
    program(
        "multiprocessing",
        "import multiprocessing as m\ndef f(x): return x * x\nwith m.Pool(2) as p: print(p.map(f, range(5)))\n",
    ),
    program(
        "multiprocessing by fork",
        "import multiprocessing as m, sys\nq = m.get_context('fork').Queue()\n\
         p = m.get_context('fork').Process(target=lambda: q.put(sys.argv))\np.start(); print(q.get()); p.join()\n\
         print(p.exitcode)\n",
    ),
    program(
        "threads",
        "import threading, time\nt = threading.Thread(target=lambda: (time.sleep(.05), print('thread')))\nt.start()\n\
         print(threading.current_thread().name, threading.main_thread() is threading.current_thread())\n",
    ),
    program(
        "no input",
        "import os, stat, sys; print(repr(sys.stdin.read()), stat.S_ISCHR(os.fstat(0).st_mode))",
    ),
    Program {
        stdin: Some("one\ntwo\n"),
        ..program("input", "print(input(), input()); print(repr(open(0).read()))")
    },
    Program {
        stdin: Some("for a child"),
        ..program(
            "input of a child",
            "import subprocess; print(subprocess.run(['cat'], capture_output=True))",
        )
    },
    program(
        "descriptors",
        "import os; print(sorted(os.listdir('/proc/self/fd'))[:3], len(os.listdir('/proc/self/fd')))",
    ),
    program("standard streams", "import sys; print(sys.stdin, sys.stdout, sys.stderr, sys.stdout.isatty())"),
    Program {
        file: Some(("/workspace/helper.py", "def help(): return __file__")),
        ..program("an import", "import helper; print(helper.help())")
    },
    Program {
        timeout_ms: Some(300),
        ..program(
            "time-out",
            "import os\nopen('.artifacts/a', 'w').write('kept')\nprint('began', flush=True)\nwhile True: pass\n",
        )
    },
    program("an object's last word", "class A:\n    def __del__(self): print('bye')\na = A()\n"),
    program(
        "the last word of an old object",
        "class A:\n    def __del__(self): print('bye')\na = A(); b = [[] for _ in range(2000)]\n",
    ),
    program(
        "the last word of one that is hidden",
        "import sys\nclass A:\n    __slots__ = ()\n    def __del__(self): sys.__stdout__.write('bye')\n\
         sys.stdout.kept = A()\ndel A\n",
    ),
    program(
        "a function's last word",
        "def f(a=type('A', (), {'__del__': lambda self: print('bye')})()): pass\n",
    ),
    program(
        "a cycle's last word",
        "class A:\n    def __del__(self): print('bye')\na = A(); a.a = a; del a\n",
    ),
    program(
        "a generator's end",
        "def f():\n    try:\n        yield\n    finally:\n        print('end')\ng = [f()]; next(g[0])\n",
    ),
    program("a coroutine that nobody awaits", "async def f(): pass\nkept = f()\n"),
    program(
        "a file that was not closed",
        "import os\nf = open('.artifacts/a', 'w'); f.write('kept')\nif os.fork(): os.wait()\n",
    ),
    program(
        "a weak reference's call",
        "import _weakref\ndef f(): pass\nr = _weakref.ref(f, lambda r: print('gone'))\n",
    ),
    program(
        "a stream of its own",
        "import sys, io\nsys.stdout = io.TextIOWrapper(open(1, 'wb', closefd=False))\nprint(1)",
    ),
    program("a closed stream", "import sys\nprint(1)\nsys.stdout.close()\n"),
    program(
        "a stream that is full",
        "import os, sys\nos.dup2(os.open('/dev/full', os.O_WRONLY), 1)\nprint(1)\n",
    ),
    program("a hook for its end", "import sys\nsys.addaudithook(lambda *a: 'Clear' in a[0] and print(a))\n"),
];
