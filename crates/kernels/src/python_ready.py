# Compiles the kernel while nobody waits for it, or reads what another one has compiled, and waits until it is told where
# to connect. What follows does so.
def _prepare():
    import os, sys
    import _ast, _json, _signal, _socket, _thread

    def take(count):
        parts = []
        while count:
            part = os.read(0, min(count, 65536))
            if not part:
                os._exit(0)
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    source, compiled = (take(int.from_bytes(take(4), "little")) for _ in range(2))
    code, told = _load(source, compiled)
    # Cells are compiled by way of their trees; the classes of those are made with the first.
    compile("0", "<kernel>", "eval", _ast.PyCF_ONLY_AST)
    os.write(1, b"\0" + len(told).to_bytes(4, "little") + told)
    words = [os.fsdecode(word) for word in take(int.from_bytes(take(4), "little")).split(b"\0")]
    count = int(words[1])
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.environ.clear()
    for word in words[3 + count :]:
        name, value = word.split("=", 1)
        os.environ[name] = value
    sys.argv[1:] = words[3 : 3 + count]
    return source, code


_prepared = _prepare()
del _prepare
