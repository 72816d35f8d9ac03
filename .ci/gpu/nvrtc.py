"""nvrtc.py update|check FOLDER PTX FILE.cu ...: compiles kernels with NVRTC, CUDA's compiler as a library, into one file of PTX.

FOLDER has libnvrtc. All files are one program, so that helpers of two files may not have the same name, unless they come from a header that
is included once. The headers are those beside the files: NVRTC has none of its own.

NVRTC 12.1 orders some things by their addresses, so that it compiles a kernel to one of a few texts, by chance. "update" writes the most
frequent text of each kernel. "check" compiles until each kernel of the file has come, and fails if one does not.
"""

import collections
import ctypes
import glob
import os
import re
import subprocess
import sys

OPTIONS = ["--gpu-architecture=compute_80", "--std=c++17"]
UPDATES = 5  # compilations of "update"
CHECKS = 12  # at most, of "check"


def compile_once(folder, out, files):
    for builtins in glob.glob(os.path.join(folder, "libnvrtc-builtins.so*")):
        ctypes.CDLL(builtins, mode=ctypes.RTLD_GLOBAL)
    lib = ctypes.CDLL(glob.glob(os.path.join(folder, "libnvrtc.so*"))[0])

    def call(name, *arguments):
        code = getattr(lib, name)(*arguments)
        if code != 0 and name != "nvrtcCompileProgram":
            sys.exit(f"{name}: {code}")
        return code

    def text(size, get):
        n = ctypes.c_size_t()
        call(size, program, ctypes.byref(n))
        buffer = ctypes.create_string_buffer(n.value)
        call(get, program, buffer)
        return buffer.value.decode()

    beside = {os.path.join(os.path.dirname(f), h) for f in files for h in os.listdir(os.path.dirname(f) or ".")}
    included = [f for f in sorted(beside) if f.endswith((".cu", ".h", ".cuh"))]
    names = [os.path.basename(f).encode() for f in included]
    sources = [open(f, "rb").read() for f in included]
    whole = "".join(f'#include "{os.path.basename(f)}"\n' for f in files).encode()
    program = ctypes.c_void_p()
    strings = ctypes.c_char_p * len(names)
    call("nvrtcCreateProgram", ctypes.byref(program), whole, b"kernels.cu", len(names), strings(*sources), strings(*names))
    options = [o.encode() for o in OPTIONS]
    failed = call("nvrtcCompileProgram", program, len(options), (ctypes.c_char_p * len(options))(*options))
    log = text("nvrtcGetProgramLogSize", "nvrtcGetProgramLog")
    if log:
        print(log, file=sys.stderr)
    if failed:
        sys.exit("NVRTC did not compile the kernels, see above")
    with open(out, "w", encoding="utf-8") as f:
        f.write(text("nvrtcGetPTXSize", "nvrtcGetPTX"))


def kernels(ptx):
    """The parts of PTX by their kernels' names, in order. What is in front of the first is "". The comment at the beginning is left out: it
    names a build of the compiler."""
    ptx = re.sub(r"\A(//.*\n|\n)+", "", ptx)
    parts, name = {"": ""}, ""
    for line in ptx.splitlines(keepends=True):
        entry = re.match(r"\s*// \.globl\s+(\w+)", line)
        if entry:
            name = entry[1]
        parts[name] = parts.get(name, "") + line
    return parts


def compilations(n, folder, ptx, files):
    """The parts of n compilations. Each is a process, as addresses are a process's, and two run at once."""
    running = collections.deque()
    for i in range(n + 2):
        if i < n:
            out = f"{ptx}.{os.getpid()}.{i}"
            running.append((out, subprocess.Popen([sys.executable, __file__, "once", folder, out, *files])))
        if len(running) == 2 or i >= n and running:
            out, process = running.popleft()
            try:
                if process.wait() != 0:
                    sys.exit(1)
                with open(out, encoding="utf-8") as f:
                    yield kernels(f.read())
            finally:
                if os.path.exists(out):
                    os.remove(out)
                if sys.exc_info()[0] is not None:
                    stop(running)
    stop(running)


def stop(running):
    for out, process in running:
        process.kill()
        process.wait()
        if os.path.exists(out):
            os.remove(out)


def update(folder, ptx, files):
    texts = list(compilations(UPDATES, folder, ptx, files))
    with open(ptx, "w", encoding="utf-8") as f:
        for name in texts[0]:
            f.write(collections.Counter(t[name] for t in texts).most_common(1)[0][0])
    print(f"{ptx}: {len(texts[0]) - 1} kernels")


def check(folder, ptx, files):
    with open(ptx, encoding="utf-8") as f:
        want = kernels(f.read())
    missing, n = set(want), 0
    seen = collections.defaultdict(set)
    for last in compilations(CHECKS, folder, ptx, files):
        n += 1
        if list(last) != list(want):
            sys.exit(f"{ptx} has other kernels than their files: run .ci/gpu.sh -update and commit it")
        missing = {name for name in missing if last[name] != want[name]}
        for name in missing:
            seen[name].add(last[name])
        if not missing or n >= 4 and any(len(seen[name]) == 1 for name in missing):
            break
    if missing:
        names = ", ".join(sorted(name or "declarations" for name in missing))
        sys.exit(f"{ptx} is not what the kernels compile to ({names}): run .ci/gpu.sh -update and commit it")
    print(f"        {len(want) - 1} kernels are what {n} compilations gave")


if __name__ == "__main__":
    {"once": compile_once, "update": update, "check": check}[sys.argv[1]](sys.argv[2], sys.argv[3], sorted(sys.argv[4:]))
