#!/usr/bin/env python3
"""Writes the seeds of the corpus: valid messages and values, and some that are nearly so.

Run it after a change of a format: fuzz/make_seeds.py. Files that fuzzing added stay; the replay test says when
the seeds no longer decode. What has to be signed comes from `cargo run -p cofferdam-proof --example seeds`.
"""

import io
import struct
import tarfile
import zipfile
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"


def u32(*values):
    return b"".join(struct.pack("<I", v & 0xFFFFFFFF) for v in values)


def u64(*values):
    return b"".join(struct.pack("<Q", v) for v in values)


def text(value):
    value = value.encode() if isinstance(value, str) else value
    return u32(len(value) + 1) + value + b"\0"


def start(kind, argv, env, rows=0, columns=0):
    strings = b"".join(map(text, argv + env))
    return u32(1, 7, kind, rows, columns, 1) + text("/workspace") + u32(len(argv), len(env)) + strings


ECHO = start(0, ["/bin/echo", "", "ü\n"], ["A=1=2", "PATH=/usr/bin:/bin"])
INIT_REQUEST = {
    "start": ECHO,
    "start-stdin": start(1, ["cat"], []),
    "start-terminal": start(2, ["bash", "-i"], ["TERM=xterm"], 24, 80),
    "start-no-name": start(0, ["x"], ["novalue"]),
    "start-no-argv": start(0, [], ["A=1"]),
    "start-too-many": u32(1, 7, 0, 0, 0, 0) + text("/") + u32(0xFFFFFFFF, 2),
    "start-cut": ECHO[:-3],
    "start-trailing": ECHO + b"x",
    "start-not-utf8": start(0, [b"\xff\xfe"], []),
    "signal": u32(2, 7, 15),
    "signal-negative": u32(2, 7, -1),
    "socket": u32(3, 1, 2),
    "open": u32(4, 1, 0o101, 0o644, 1) + text("/workspace/a/b"),
    "open-truth-is-2": u32(4, 1, 0, 0, 2) + text("/"),
    "open-inner-nul": u32(4, 1, 0, 0, 0) + u32(4) + b"a\0b\0",
    "open-no-nul": u32(4, 1, 0, 0, 0) + u32(3) + b"abc",
    "open-long": u32(4, 1, 0, 0, 0) + u32(0xFFFFFFFF) + b"abc",
    "make-folder": u32(5, 1) + text("/workspace/new"),
    "stop": u32(6),
    "probe": u32(7, 1),
    "start-from": u32(8),
    "group-tasks": u32(9, 0, 1),
    "group-folder": u32(9, 1, 0),
    "group-unknown": u32(9, 2, 0),
    "list": u32(10, 1, 1000, 1) + text("/workspace"),
    "set-mode": u32(13, 1, 0o750) + text("workspace/a"),
    "link": u32(14, 1) + text("workspace/a") + text("../b"),
    "watch": u32(15, 1),
    "watch-trailing": u32(15, 1, 2),
    "open-each": u32(16, 1, 0o101) + text("workspace/a") + u32(0o600) + text("b") + u32(0o755) + text("é"),
    "open-each-none": u32(16, 1, 0) + text("workspace"),
    "open-each-cut": u32(16, 1, 0) + text("workspace") + u32(0) + text("b") + u32(0, 9) + b"b\0",
    "unknown": u32(99),
    "empty": b"",
}

FILE = u32(0o100644) + u64(12) + u32(1, 0)
LISTING = {
    "two": u32(0o040755) + u64(40) + u32(2, 1) + text("folder") + FILE + text("é.txt"),
    "not-utf8": FILE + text(b"\xff\xfe"),
    "dot-dot": FILE + text(".."),
    "truth-is-2": FILE[:-4] + u32(2) + text(".."),
    "longest-name": FILE + text("n" * 255),
    "too-long-name": FILE + text("n" * 256),
    "cut": FILE + text("name")[:-2],
    "inner-nul": FILE + u32(4) + b"a\0b\0",
    "no-name": FILE + u32(0),
    "empty": b"",
}

INIT_EVENT = {
    "ready": u32(101) + u64(0x3FFFFFFFFFF),
    "failed": u32(102, 17, 13) + u64(1),
    "failed-stage": u32(102, 0xFFFFFFFF, 13) + u64(1),
    "started": u32(103, 7) + u64(0x1234),
    "not-started": u32(104, 7, 33, 2) + u64(0),
    "exited": u32(105, 7, 0x8B),
    "exited-trailing": u32(105, 7, 0) + b"\0",
    "reply": u32(106, 1, 0),
    "reply-cut": u32(106, 1),
    "out-of-memory": u32(107),
    "unknown": u32(108),
    "empty": b"",
}

CREATE = u32(2, 1, 3, 0) + u64(1 << 30, 65536) + u32(0, 0, 0, 1) + u64(0x3FF, 0)
CREATE_SHARED = u32(2, 1, 3, 0) + u64(1 << 30, 65536) + u32(1, 131072, 0, 1) + u64(0x3FF, 0)
LAUNCHER_MESSAGE = {
    "add-image": u32(1, 0, 2) + text("base") + text("usr") + u32(1) + text("/a"),
    "add-image-none": u32(1, 0, 0, 0),
    "add-image-many": u32(1, 0, 17) + text("x") * 16 + u32(0),
    "groups": u32(4, 1),
    "create": CREATE + u32(0xFFFFFFFF) + text("sandbox"),
    "create-shared-disk": CREATE_SHARED + u32(0xFFFFFFFF) + text("sandbox"),
    "create-fail-at": CREATE + u32(5) + text("sandbox"),
    "create-not-utf8": CREATE + u32(5) + text(b"\xff"),
    "create-cut": CREATE,
    "destroy": u32(3, 9),
    "not-created": u32(102, 1, 1, 13),
    "destroyed": u32(103, 1, 0),
    "unusable": u32(104, 17, 1),
    "unusable-stage": u32(104, 9999, 1),
    "empty": b"",
}

HYBRID = """30 20 0:25 / /sys/fs/cgroup ro - tmpfs tmpfs ro
31 30 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
32 30 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
33 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct
34 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
"""
V2 = "40 20 0:30 / /sys/fs/cgroup rw shared:4 master:1 - cgroup2 cgroup2 rw,nsdelegate\n"
CGROUP_LAYOUT = {
    "hybrid": HYBRID + "\0" + "1:cpu:/\n0::/\n",
    "v2": V2 + "\0" + "0::/user.slice/user-1000.slice/session-1.scope\n",
    "v2-own-leaf": V2 + "\0" + "0::/a/cofferdam-host\n",
    "v2-above-the-namespace": V2 + "\0" + "0::/../../other\n",
    "v2-absolute": V2 + "\0" + "0:://etc\n",
    "v2-spaces": V2.replace("/sys/fs/cgroup", "/sys\\040fs/cg") + "\0" + "0::/\n",
    "dashes": "1 2 3 / /a - b - cgroup2 cgroup2 rw\n\0",
    "short-lines": "1\n1 2 3 4\n - \n1 2 3 4 5 - cgroup\n1 2 3 4 5 - cgroup2 x\n\0" + "0::\n0:\n",
    "none": "22 1 0:20 / /proc rw - proc proc rw\n\0" + "0::/\n",
    "empty": "",
}

VALUES = [
    "512m", "256mb", "1g", "2GB", "1t", "512MiB", "65536", "64K", "8191p", "8192p", "1.5g", "0", "-1", "1 g",
    "18446744073709551615", "18446744073709551616", "9223372036854775807", "00000000000000000001k",
    "1", "0.5", "2.25", "0.01", "0.009", "4096", "4096.001", "1.", ".5", "1e3", "٣",
    "500ms", "30s", "5m", "2h", "168h", "169h", "99999999999999999h",
    "/", "/workspace/a", "//a/./b/", "/a/../b", "/proc/self", "/./dev/shm", "/devel", "a/b", "../x", "/a\0b",
    "/" + "n" * 255, "/" + "n" * 256, "/é/" + "é" * 128,
]

CAPTURED_OUTPUT = {
    "text": bytes([255, 3]) + "hello é\n".encode(),
    "binary": bytes([255, 2]) + b"a\xffb\x00\xc3",
    "cut-in-a-code-point": bytes([1, 5]) + b"0123456789abcde" + "é€𝄞".encode(),
    "cut-and-binary": bytes([1, 1]) + b"\xff123456789abcde" + "é".encode(),
    "incomplete-at-the-end": bytes([255, 9]) + b"ab\xe2\x82",
    "surrogate": bytes([255, 9]) + b"\xed\xa0\x80",
    "nothing-is-kept": bytes([0, 4]) + b"dropped",
    "no-bytes": bytes([4, 4]),
    "empty": b"",
}

ARTIFACT_PATH = {
    "file": "result.json",
    "folders": "a b\0é\0-rf.txt",
    "dot": ".", "dot-dot": "..", "dot-dot-below": "a\0..\0b", "dots": "...", "slash": "a/b", "absolute": "/etc/passwd",
    "newline": "a\nb", "escape": b"\x1b[2J", "c1-control": "\x9b", "not-utf8": b"\xff\xfe",
    "long": "n" * 255, "too-long": "n" * 256, "right-to-left": "\u202egpj.exe", "empty": "",
}

# The number of the chunk and whether it is the last, then its bytes.
ARTIFACT_CHUNK = {
    "first": u64(0) + b"\0" + b"plain bytes",
    "last": struct.pack(">Q", 7) + b"\1" + b"the end",
    "empty-last": u64(0) + b"\1",
    "tag-only": u64(1) + b"\0" + bytes(16),
    "large-number": b"\xff" * 8 + b"\1" + b"x" * 100,
    "short": b"abc",
    "empty": b"",
}

# The size of the artifact, then a Range header or the query of a link.
LINK = "expires=4102444800&size=10&by=key-aaaaaaaaaaaaaaaa&signature=" + "0" * 64
ARTIFACT_REQUEST = {
    name: struct.pack(">Q", 10) + text.encode()
    for name, text in {
        "part": "bytes=0-3", "to-the-end": "bytes=3-", "suffix": "bytes=-4", "behind": "bytes=10-",
        "no-suffix": "bytes=-0", "backwards": "bytes=3-1", "several": "bytes=0-1,3-4", "unit": "lines=1-2",
        "huge": "bytes=0-" + "9" * 40, "sign": "bytes=+1-2", "spaces": " bytes = 1 - 2 ",
        "link": LINK, "link-twice": LINK + "&" + LINK, "link-percent": LINK.replace("key-", "%6Bey-"),
        "link-cut": LINK[:-1], "link-no-by": LINK.replace("&by=key-aaaaaaaaaaaaaaaa", ""),
        "link-bad-percent": LINK.replace("key-", "%"), "link-zero": LINK.replace("size=10", "size=010"),
    }.items()
}



def frame(kind, body):
    return f"{kind} {len(body.encode())}\n{body}".encode()


# The size of the pieces, then what an interpreter says.
SHOWN = frame("result", '{"text/plain":"1\\n2","image/png":"iVBORw=="}')
RAISED = frame("end", '{"error":{"name":"E","value":"a\\nb","traceback":["x","y"]}}')
KERNEL_FRAME = {
    "ready": b"\7" + frame("ready", '{"version":"3.11.2"}'),
    "cell": b"\5" + SHOWN + frame("display", "{}") + frame("end", "{}"),
    "raised": b"\x40" + RAISED,
    "interrupted": b"\1" + frame("end", '{"interrupted":true,"exit_code":130}'),
    "cut": b"\3" + RAISED[:-4],
    "trailing": b"\3" + RAISED + b"en",
    "not-json": b"\3" + frame("end", "{"),
    "not-utf8": b"\3end 2\n\xff\xfe",
    "not-text": b"\3" + frame("result", '{"text/plain":1}'),
    "deep": b"\xff" + frame("end", '{"error":' + "[" * 300),
    "unknown-field": b"\3" + frame("end", '{"other":1}'),
    "unknown-kind": b"\3" + frame("other", "{}"),
    "too-long": b"\3result 16777217\n",
    "too-long-number": b"\3end 99999999999999999999999\n",
    "sign": b"\3end +1\n",
    "no-line": b"\xff" + b"e" * 64,
    "empty": b"",
}


def said(kind, channel, content=b""):
    content = content.encode() if isinstance(content, str) else content
    return u32(len(content)) + bytes([kind]) + u32(channel) + content


def reply(result):
    return said(0, 0, '{"Reply":{"number":7,"result":' + result + "}}")


ENTRIES = '{"Ok":{"Entries":[{"name":[97,255],"kind":"f","size":18446744073709551615}]}}'


def changed(watch, what, name, filled):
    return u32(watch) + u32(what) + u32(7) + u32(filled) + name + bytes(filled - len(name))


HELPER_FRAME = {
    "ready": b"\7" + said(0, 0, '"Ready"'),
    "done": b"\1" + reply('{"Ok":"Done"}'),
    "failure": b"\3" + reply('{"Err":{"step":"File","errno":-2}}'),
    "entries": b"\x20" + reply(ENTRIES),
    "stats": b"\x20" + reply('{"Ok":{"Stats":{"cpu_time_us":1,"memory_bytes":null}}}'),
    "stopped": b"\5" + reply('{"Ok":{"Stopped":{"but":[7,"D"]}}}'),
    "ended": b"\5" + said(0, 0, '{"Ended":{"process":1,"end":{"Signaled":9}}}'),
    "accepted": b"\5" + said(0, 0, '{"Accepted":{"listener":1,"channel":2147483648}}'),
    "stream": b"\4" + said(1, 7, "some bytes") + said(4, 7, u32(10)) + said(2, 7) + said(3, 7),
    "watch": b"\5" + reply('{"Ok":{"Watch":-1}}') + reply('{"Ok":{"IsEmpty":true}}'),
    "events": b"\7"
    + said(1, 7, changed(1, 0x40000100, b"folder", 16) + changed(1, 0x40, b"a", 16))
    + said(1, 7, changed(2, 0x80, b"b" * 255, 256) + changed(1, 0x4000, b"", 0)[:9]),
    "events-out": b"\7" + said(1, 7, changed(1, 0x100, b"../up", 16)),
    "events-long": b"\7" + said(1, 7, u32(1) + u32(2) + u32(3) + b"\xff" * 4),
    "credit-short": b"\4" + said(4, 7, b"\1"),
    "unknown-kind": b"\4" + said(5, 7, "x"),
    "too-long": b"\4" + u32((16 << 20) + 1) + b"\1" + u32(7),
    "cut": b"\4" + said(1, 7, "some bytes")[:-3],
    "deep": b"\xff" + said(0, 0, "[" * 300),
    "not-utf8": b"\4" + said(0, 0, b"\xff"),
    "empty": b"",
}


def tar(*entries, form=tarfile.GNU_FORMAT, end=1024):
    """An archive of (name, kind, link, data), without the fill that tarfile writes."""
    out = b""
    for name, kind, link, data in entries:
        info = tarfile.TarInfo(name)
        info.type, info.linkname, info.size, info.mode = kind, link, len(data), 0o755
        out += info.tobuf(form) + data + bytes(-len(data) % 512)
    return out + bytes(end)


def resummed(block):
    """A header with its checksum made right."""
    block = block[:148] + b" " * 8 + block[156:]
    return block[:148] + b"%06o\0 " % sum(block[:512]) + block[156:]


FILE = ("a", tarfile.REGTYPE, "", b"data")
PAX_SIZE = tar(("x", tarfile.REGTYPE, "", b"12 size=512\n"), end=0)
IMAGE_TAR = {
    "empty": b"",
    "end": bytes(1024),
    "all": tar(("d/", tarfile.DIRTYPE, "", b""), ("d/f", tarfile.REGTYPE, "", b"x" * 20),
               ("l", tarfile.SYMTYPE, "/etc/passwd", b""), ("h", tarfile.LNKTYPE, "d/f", b""),
               ("p", tarfile.FIFOTYPE, "", b"")),
    "gnu-long": tar(("n" * 150, tarfile.SYMTYPE, "t" * 150, b"")),
    "pax-long": tar(("n" * 300, tarfile.REGTYPE, "", b"x"), form=tarfile.PAX_FORMAT),
    "whiteout": tar(("d/.wh..wh..opq", tarfile.REGTYPE, "", b""), ("d/.wh.f", tarfile.REGTYPE, "", b"")),
    "dot-dot": tar(("../../a", tarfile.REGTYPE, "", b"x")),
    "no-end": tar(FILE, end=0),
    "cut": tar(FILE)[:700],
    "link-with-bytes": resummed(tar(FILE)[:156] + b"2" + tar(FILE)[157:]),
    "size-base-256": resummed(tar(FILE)[:124] + b"\x80" + bytes(10) + b"\x04" + tar(FILE)[136:]),
    "size-negative": resummed(tar(FILE)[:124] + b"\xff" * 12 + tar(FILE)[136:]),
    "pax-size": resummed(PAX_SIZE[:156] + b"x" + PAX_SIZE[157:]) + tar(FILE),
    "unknown-kind": resummed(tar(FILE)[:156] + b"Z" + tar(FILE)[157:]),
}



def zipped(*entries, method=zipfile.ZIP_DEFLATED, streamed=False):
    """An archive of (name, mode, data); streamed, with sizes behind the bytes."""
    class Unseekable(io.BytesIO):
        def seek(self, *_):
            raise OSError("it only goes on")

        tell = seek

    out = Unseekable() if streamed else io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, mode, data in entries:
            info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr, info.compress_type = 3, mode << 16, method
            archive.writestr(info, data)
    return out.getvalue()


ZIP_ALL = [("d/", 0o040755, b""), ("d/f", 0o100644, b"x" * 2000), ("l", 0o120777, b"d/f"), ("e", 0o100600, b"")]
ZIP = zipped(*ZIP_ALL)
FOLDER_ZIP = {
    "empty": b"",
    "nothing": zipped(),
    "deflated": ZIP,
    "stored": zipped(*ZIP_ALL, method=zipfile.ZIP_STORED),
    "streamed": zipped(*ZIP_ALL[1:], streamed=True),
    "dot-dot": zipped(("../../a", 0o100644, b"x")),
    "cut": ZIP[:-30],
    "no-end": ZIP[:60],
    "renamed-at-the-end": ZIP[:-60] + ZIP[-60:].replace(b"e", b"g", 1),
    "encrypted": ZIP[:6] + b"\1" + ZIP[7:],
    "unknown-method": ZIP[:8] + b"\x0c" + ZIP[9:],
    "before": b"x" + ZIP,
}

SEEDS = {
    "folder_zip": FOLDER_ZIP,
    "image_tar": IMAGE_TAR,
    "helper_frame": HELPER_FRAME,
    "kernel_frame": KERNEL_FRAME,
    "init_request": INIT_REQUEST,
    "listing": LISTING,
    "init_event": INIT_EVENT,
    "launcher_message": LAUNCHER_MESSAGE,
    "cgroup_layout": CGROUP_LAYOUT,
    "values": {f"{i:02}": value for i, value in enumerate(VALUES)},
    "captured_output": CAPTURED_OUTPUT,
    "artifact_path": ARTIFACT_PATH,
    "artifact_chunk": ARTIFACT_CHUNK,
    "artifact_request": ARTIFACT_REQUEST,
}

for target, seeds in SEEDS.items():
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    for name, seed in seeds.items():
        (folder / name).write_bytes(seed.encode() if isinstance(seed, str) else seed)
