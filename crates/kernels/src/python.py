# The Python kernel. It is executed in a namespace of its own, in which it finds `channel`, the connection to the
# host, and `space`, the namespace of `__main__`, which is the user's. It imports only what an interpreter has
# loaded anyway or what is built in, so that it starts at once; what costs more is imported by who needs it.
import _ast
import _json
import _signal
import _thread
import os
import sys

AWAIT = _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
IS_COROUTINE = 0x80
# What `from __future__ import …` may leave set for the cells that follow.
FUTURES = 0x1FE0000

# Larger results are not sent; the host would take twice as much for a lie.
SHOWN_MAX_BYTES = 8 << 20
# More results than this in one cell are counted only.
SHOWN_MAX_COUNT = 500

owner = os.getpid()
stdout, stderr = os.dup(1), os.dup(2)
quote = _json.encode_basestring_ascii


def ignore(*_):
    pass


is_interrupted = False
# The thread that runs cells is in the middle of a frame, which must not be broken off.
is_sending = False
is_late = False


def interrupt(*_):
    # The host asks a second time, in case the first came just before a call that it should have broken off. The
    # cell's own cleaning up is not disturbed by that.
    global is_interrupted, is_late
    if is_sending:
        is_late = True
    elif not is_interrupted:
        is_interrupted = True
        raise KeyboardInterrupt


# The channel: words from the host, frames to it.


held = b""


def words():
    global held
    while b"\0" not in held:
        receive()
    length, _, held = held.partition(b"\0")
    length = int(length)
    parts = [held]
    count = len(held)
    while count < length:
        held = b""
        receive()
        parts.append(held)
        count += len(held)
    held = b"".join(parts)
    message, held = held[:length], held[length:]
    return message[:-1].decode("utf-8", "surrogateescape").split("\0")


def receive():
    global held
    part = channel.recv(65536)
    if not part:
        # The host is gone, or has no more use for this.
        os._exit(0)
    held += part


turn = _thread.allocate_lock()
runner = _thread.get_ident()


def send(kind, body):
    # A child that was forked by a cell has no say.
    if os.getpid() != owner:
        return
    global is_sending, is_late
    body = body.encode("utf-8", "replace")
    is_runner = _thread.get_ident() == runner
    is_sending = is_sending or is_runner
    try:
        with turn:
            channel.sendall(b"%s %d\n%s" % (kind, len(body), body))
    finally:
        if is_runner:
            is_sending = False
    if is_runner and is_late:
        is_late = False
        interrupt()


def write_all(descriptor, data):
    while data:
        data = data[os.write(descriptor, data) :]


def flush():
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()
        except Exception:
            pass


def forked():
    # What the child writes is the cell's, what it answers is nobody's.
    try:
        channel.close()
    except Exception:
        pass


os.register_at_fork(before=flush, after_in_child=forked)


# What a value looks like.


METHODS = {
    "_repr_html_": "text/html",
    "_repr_markdown_": "text/markdown",
    "_repr_svg_": "image/svg+xml",
    "_repr_png_": "image/png",
    "_repr_jpeg_": "image/jpeg",
    "_repr_latex_": "text/latex",
    "_repr_json_": "application/json",
    "_repr_javascript_": "application/javascript",
}


def as_text(mime, value):
    if isinstance(value, tuple) and len(value) == 2:
        # The second part is metadata.
        value = value[0]
    if isinstance(value, (bytes, bytearray)):
        import binascii

        return binascii.b2a_base64(value, newline=False).decode("ascii")
    if isinstance(value, str):
        return value
    if mime.endswith("json"):
        import json

        return json.dumps(value)
    return str(value)


def forms(value):
    data = {}
    kind = type(value)
    # A class has the methods of its instances, and is none of them.
    if not isinstance(value, type):
        bundle = getattr(kind, "_repr_mimebundle_", None)
        if bundle is not None:
            try:
                made = bundle(value)
            except Exception:
                made = None
            if isinstance(made, tuple):
                made = made[0]
            if isinstance(made, dict):
                for mime, form in made.items():
                    if form is not None:
                        data[str(mime)] = as_text(str(mime), form)
        for name, mime in METHODS.items():
            method = getattr(kind, name, None)
            if method is None or mime in data:
                continue
            try:
                form = method(value)
                if form is not None:
                    data[mime] = as_text(mime, form)
            except Exception:
                # The other forms are still worth something.
                pass
        if is_figure(value) and "image/png" not in data:
            data["image/png"] = picture(value)
            shown_figures.append(value)
    if "text/plain" not in data:
        data["text/plain"] = repr(value)
    return data


shown_count = 0


def show(kind, data):
    global shown_count
    shown_count += 1
    if shown_count > SHOWN_MAX_COUNT:
        if shown_count == SHOWN_MAX_COUNT + 1:
            sys.stderr.write(f"[only the first {SHOWN_MAX_COUNT} results of a cell are shown]\n")
        return
    flush()
    body = encode(data)
    if len(body) > SHOWN_MAX_BYTES:
        note = f"<a result of {len(body)} bytes is not shown: the most is {SHOWN_MAX_BYTES}>"
        plain = data.get("text/plain", "")
        body = encode({"text/plain": plain if len(plain) <= 1 << 20 else plain[: 1 << 20] + "\n" + note})
    send(kind, body)


def encode(data):
    return "{" + ",".join(f"{quote(mime)}:{quote(text)}" for mime, text in data.items()) + "}"


def display(*values, **_):
    """Shows each value in every form that it offers."""
    for value in values:
        show(b"display", forms(value))


# Figures of matplotlib, if it is imported: it gets a canvas that shows them as pictures.


BACKEND = "_cofferdam_figures"
shown_figures = []


def is_figure(value):
    figure = sys.modules.get("matplotlib.figure")
    return figure is not None and isinstance(value, figure.Figure)


def picture(figure):
    import binascii
    import io

    file = io.BytesIO()
    if figure.canvas is None or not hasattr(figure.canvas, "print_png"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        FigureCanvasAgg(figure)
    figure.canvas.print_figure(file, format="png", dpi=figure.dpi, bbox_inches="tight")
    return binascii.b2a_base64(file.getvalue(), newline=False).decode("ascii")


def show_figures(*_, **__):
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    if BACKEND not in sys.modules or helpers is None:
        return
    try:
        for manager in helpers.Gcf.get_all_fig_managers():
            figure = manager.canvas.figure
            if not any(figure is shown for shown in shown_figures):
                show(b"display", {"image/png": picture(figure), "text/plain": repr(figure)})
    finally:
        shown_figures.clear()
        helpers.Gcf.destroy_all()


class Finder:
    """Looks at the import of matplotlib, and makes the module that it draws with."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == BACKEND:
            from importlib.machinery import ModuleSpec

            return ModuleSpec(name, Canvas)
        if name != "matplotlib":
            return None
        sys.meta_path.remove(Finder)
        sys.meta_path.append(Finder)
        if os.environ.get("MPLBACKEND"):
            return None
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                module.rcParams["backend"] = "module://" + BACKEND

            spec.loader.exec_module = exec_module
        return spec


class Canvas:
    """Fills in the module that matplotlib draws with."""

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        from matplotlib.backend_bases import FigureManagerBase
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        module.FigureCanvas = FigureCanvasAgg
        module.FigureManager = FigureManagerBase
        module.show = show_figures


# Cells.


loop = None


def run_async(coroutine):
    global loop
    import asyncio

    if loop is None or loop.is_closed():
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
    task = loop.create_task(coroutine)
    try:
        return loop.run_until_complete(task)
    except KeyboardInterrupt:
        # One that has ended by it already would never stop the loop again.
        if not task.done():
            task.cancel()
            try:
                loop.run_until_complete(task)
            except (KeyboardInterrupt, asyncio.CancelledError):
                pass
        raise


def wait_with_loop():
    """Lets tasks that cells have left behind go on until the host has something to say."""
    if loop is None or loop.is_closed() or held:
        return
    import asyncio

    if asyncio.all_tasks(loop):
        waiting = loop.create_future()

        def readable():
            if not waiting.done():
                waiting.set_result(None)

        loop.add_reader(channel.fileno(), readable)
        try:
            loop.run_until_complete(waiting)
        finally:
            loop.remove_reader(channel.fileno())


flags = AWAIT


def compiled(program, name, kind):
    global flags
    code = compile(program, name, kind, flags, True)
    flags |= code.co_flags & FUTURES
    return code


async def run_parts(parts):
    value = None
    for code in parts:
        value = eval(code, space)
        if code.co_flags & IS_COROUTINE:
            value = await value
    return value


def execute(code, name):
    tree = compile(code, name, "exec", flags | _ast.PyCF_ONLY_AST, True)
    last = None
    if tree.body and isinstance(tree.body[-1], _ast.Expr):
        last = _ast.Expression(tree.body.pop().value)
    parts = []
    if tree.body:
        parts.append(compiled(tree, name, "exec"))
    if last is not None:
        parts.append(compiled(last, name, "eval"))
    value = None
    if any(part.co_flags & IS_COROUTINE for part in parts):
        value = run_async(run_parts(parts))
    else:
        for part in parts:
            value = eval(part, space)
    if last is not None and value is not None and not code.rstrip().endswith(";"):
        space["_"] = value
        show(b"result", forms(value))


def error_of(error, name):
    import traceback

    trace = error.__traceback__
    # What lies below the cell is the kernel's own.
    while trace is not None and trace.tb_frame.f_code.co_filename != name:
        trace = trace.tb_next
    # And so is what lies on top of it: `display`, or the handler of a signal.
    last = at = trace
    while at is not None:
        if at.tb_frame.f_code.co_filename != "<kernel>":
            last = at
        at = at.tb_next
    if last is not None:
        last.tb_next = None
    try:
        lines = "".join(traceback.format_exception(type(error), error, trace)).splitlines()
    except Exception:
        lines = []
    try:
        value = str(error)
    except Exception:
        value = "<its text could not be made>"
    if len(lines) > 500:
        lines = lines[:250] + ["…"] + lines[-250:]
    kind = type(error)
    known = kind.__module__ in ("builtins", "__main__")
    return (kind.__name__ if known else f"{kind.__module__}.{kind.__qualname__}"), value[: 1 << 20], lines


def remember(name, code):
    """Lets tracebacks show the lines of a cell."""
    lines = [line + "\n" for line in code.splitlines()]
    sources[name] = (len(code), None, lines, name)
    linecache = sys.modules.get("linecache")
    if linecache is not None:
        linecache.cache.update(sources)
        sources.clear()


sources = {}


def run(marker, count, variables, code):
    global shown_count, is_interrupted, is_late
    shown_count, is_interrupted, is_late = 0, False, False
    for name, value in variables:
        os.environ[name] = value
    name = f"<cell {count}>"
    remember(name, code)
    error = None
    interrupted = "false"
    try:
        try:
            _signal.signal(_signal.SIGINT, interrupt)
            try:
                execute(code, name)
            finally:
                show_figures()
        finally:
            _signal.signal(_signal.SIGINT, ignore)
    except SystemExit:
        raise
    except BaseException as caught:
        interrupted = "true" if isinstance(caught, KeyboardInterrupt) else "false"
        import linecache

        linecache.cache.update(sources)
        sources.clear()
        error = error_of(caught, name)
    if os.getpid() != owner:
        flush()
        os._exit(1 if error else 0)
    flush()
    for descriptor in (stdout, stderr):
        write_all(descriptor, marker)
    if error is None:
        send(b"end", f'{{"interrupted":{interrupted}}}')
    else:
        name, value, lines = error
        traceback = ",".join(map(quote, lines))
        body = f'"error":{{"name":{quote(name)},"value":{quote(value)},"traceback":[{traceback}]}}'
        send(b"end", f'{{"interrupted":{interrupted},{body}}}')


def main():
    import builtins

    space.pop("_boot", None)
    builtins.display = display
    sys.argv[:] = [""]
    sys.meta_path.insert(0, Finder)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.reconfigure(line_buffering=True)
        except Exception:
            pass
    _signal.signal(_signal.SIGINT, ignore)
    version = ".".join(map(str, sys.version_info[:3]))
    send(b"ready", f'{{"version":{quote(version)}}}')
    while True:
        wait_with_loop()
        message = words()
        if message[0] != "run":
            continue
        marker, count, variables = message[1].encode(), message[2], int(message[4])
        pairs = message[5 : 5 + 2 * variables]
        run(marker, count, list(zip(pairs[::2], pairs[1::2])), message[5 + 2 * variables])


main()
