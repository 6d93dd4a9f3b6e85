# Waits for one program and becomes `python3 -c` of it: started ahead, in a sandbox that serves only once.
# One frame of it stays below the program's own; nothing else of it can be seen from there.
def _boot(space):
    import os, sys

    def take(count):
        parts = []
        while count:
            part = os.read(0, min(count, 65536))
            if not part:
                os._exit(0)
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    own = sys._getframe(1).f_code
    # The program may give these names another meaning.
    exiting, anything, is_a, has = SystemExit, BaseException, issubclass, hasattr
    unreadable, execute = (SyntaxError, ValueError), os.execv

    class Around:
        def __enter__(self):
            pass

        def __exit__(self, kind, value, trace):
            if kind is None:
                return
            if is_a(kind, unreadable) and trace.tb_next is None:
                # Not a frame of it has run. It tells what is wrong with it best itself.
                execute(sys.executable, command)
            if is_a(kind, exiting) or not has(sys, "excepthook"):
                return
            hook = sys.excepthook

            def show(kind, value, trace):
                sys.excepthook = hook
                while trace is not None and trace.tb_frame.f_code is own:
                    trace = trace.tb_next
                value.__traceback__ = sys.last_traceback = trace
                try:
                    hook(kind, value, trace)
                except exiting:
                    raise
                except anything as error:
                    error.__traceback__ = error.__traceback__.tb_next
                    sys.stderr.write("Error in sys.excepthook:\n")
                    sys.__excepthook__(error.__class__, error, error.__traceback__)
                    sys.stderr.write("\nOriginal exception was:\n")
                    sys.__excepthook__(kind, value, trace)

            sys.excepthook = show

    # The first time costs more than the next, here as anywhere. Not with `compile`: it makes the classes of all syntax
    # trees first, in case that it was given one, which takes a fifth as long as the interpreter's whole start.
    exec("for name in 'ab': print(name, end='')", {"print": lambda *_, end: None})
    os.write(1, b"\0")
    words = [os.fsdecode(word) for word in take(int.from_bytes(take(4), "little")).split(b"\0")]
    has_input, count, code = words[0], int(words[1]), words[2]
    if has_input == "0":
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
    os.environ.clear()
    for word in words[3 + count :]:
        name, value = word.split("=", 1)
        os.environ[name] = value
    sys.argv[1:] = words[3 : 3 + count]
    command = ["python3", "-c", code, *sys.argv[1:]]
    # What -c does besides has changed with 3.13.
    if not (3, 8) <= sys.version_info < (3, 13):
        execute(sys.executable, command)
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = command
    return Around(), code


_boot = _boot(globals())
with _boot[0]:
    exec(globals().pop("_boot")[1])
