# The kernel's code, and that compiled if it was not: read from what another interpreter has compiled, where that is of
# the same version, and otherwise made of its text. A compiler leaves half an interpreter's memory behind.
def _load(source, compiled):
    import sys, marshal

    magic = getattr(sys.modules.get("_frozen_importlib_external"), "MAGIC_NUMBER", None)
    if magic and compiled.startswith(magic):
        return marshal.loads(compiled[len(magic) :]), b""
    code = compile(source, "<kernel>", "exec", dont_inherit=True)
    return code, magic + marshal.dumps(code) if magic else b""


