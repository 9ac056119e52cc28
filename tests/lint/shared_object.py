"""Checks the products' imports, exports and sections. They are copied into containers that were not
prepared for them, and libcuwarden.so is preloaded into programs that may see its hooks and nothing else.

usage: shared_object.py needs PRODUCT
       shared_object.py bound_imports LIBRARY
       shared_object.py calls_nothing ARCHIVE
       shared_object.py glibc_floor PRODUCT...
       shared_object.py stripped PRODUCT DEBUG_FILE with_lines|without_lines
       shared_object.py heap LIBRARY
       shared_object.py static_tls LIBRARY
       shared_object.py exports LIBRARY HOOKS_DEF COMPILER [ARGUMENT...]
"""

import re
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

# Libraries of glibc. Since version 2.34, most of them are part of libc.so.6.
GLIBC = {
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
}
TLS_BUDGET = 256  # bytes
GLIBC_FLOOR = (2, 28)
BOUND_RELOCATIONS = {"R_X86_64_JUMP_SLOT", "R_X86_64_GLOB_DAT", "R_X86_64_64"}

# Functions that are exported beside the rows of hooks.def: those that look functions up or end a process,
# those that cuwarden.h and the Python module call, and those that PyTorch and NVTX call.
OTHER_EXPORTS = {
    "InitializeInjectionNvtx2",
    "dlsym",
    "dlvsym",
    "dlopen",
    "dlmopen",
    "dlclose",
    "exit",
    "_exit",
    "_Exit",
    "quick_exit",
    "abort",
    "__assert_fail",
    "__libc_start_main",
    "prctl",
    "syscall",
    "cuwarden_1_ask_frameworks",
    "cuwarden_1_framework_figures",
    "cuwarden_1_framework_site",
    "cuwarden_1_named_step",
    "cuwarden_1_register_reclaimer",
    "cuwarden_1_step",
    "cuwarden_1_unregister_reclaimer",
    "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE",
    "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
}


# Functions of libc that allocate from the program's heap; the shim may not call them. A report may be
# written in a signal handler that interrupted the program's malloc, whose lock would then be waited for.
# The shim's own free() would also take their blocks for its own.
ALLOCATES = set(
    """strdup strndup wcsdup realpath canonicalize_file_name getline getdelim __getdelim asprintf
    vasprintf __asprintf_chk __vasprintf_chk fopen fopen64 fdopen freopen freopen64 tmpfile tmpfile64
    open_memstream fmemopen popen opendir fdopendir scandir scandir64 glob glob64 ftw nftw
    get_current_dir_name setenv putenv unsetenv getaddrinfo gethostbyname getpwnam getpwuid getgrnam
    qsort qsort_r regcomp wordexp strerror_l perror syslog atexit backtrace_symbols dlopen dlerror
    localtime mktime tzset tempnam setlocale newlocale __newlocale duplocale __duplocale iconv_open
    bindtextdomain gettext dgettext dcgettext localtime_r malloc_usable_size posix_memalign
    memalign valloc pvalloc reallocarray""".split()
)
# Functions that take the loader's lock, or change the program's dlerror().
ASKS_THE_LOADER = {"dladdr", "dladdr1", "dlinfo", "dlopen", "dlclose", "dlerror"}
# Functions that the static libraries inside the shim refer to, but that the shim's code never reaches.
NEVER_CALLED = {
    "setlocale": "libstdc++: names of a locale that is not the classic one",
    "__newlocale": "libstdc++: named locales",
    "__duplocale": "libstdc++: named locales",
    "iconv_open": "libstdc++: codecvt of encodings",
    "bindtextdomain": "libstdc++: message catalogues",
    "gettext": "libstdc++: texts of exceptions in a named locale",
    "dgettext": "libstdc++: message catalogues",
    "localtime_r": "spdlog: only for a pattern that shows the time",
}


def output_of(*command, text=None):
    return subprocess.run(
        command, input=text, capture_output=True, text=True, check=True
    ).stdout


def needs(library):
    dynamic = output_of("readelf", "-dW", library)
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic))
    for name in sorted(needed - GLIBC):
        yield f"needs {name}"
    if not needed:
        yield "needs nothing at all: is this the product?"
    # The product may be copied anywhere, so a folder relative to it may belong to any user.
    for path in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.+)\]", dynamic):
        yield f"looks for libraries in {path}"
    if "TEXTREL" in dynamic:
        yield "has text relocations"


def bound_imports(library):
    """Checks that all relocations of imports are of types that shim/interpose/own_imports.cpp binds."""
    dynamic = output_of("readelf", "-W", "--dyn-syms", library)
    functions = set(re.findall(r" FUNC +GLOBAL +DEFAULT +UND +(\w+)@GLIBC_", dynamic))
    if not functions:
        yield "imports no function of glibc: is this the library?"
    relocations = re.findall(
        r"^[0-9a-f]{16} +[0-9a-f]+ (R_X86_64_\w+) +(?:[0-9a-f]+ (\w+)@)?",
        output_of("readelf", "-rW", library),
        re.MULTILINE,
    )
    for kind, name in relocations:
        if name in functions and kind not in BOUND_RELOCATIONS:
            yield f"{name} is bound by {kind}, which the shim does not rewrite"
    if not relocations or relocations[-1][0] != "R_X86_64_IRELATIVE":
        yield "the resolver that binds the imports does not run last"


def calls_nothing(archive):
    """Checks that the archive refers to no symbol beside the loader's data."""
    symbols = output_of("nm", archive)
    used = set(re.findall(r"^ +[Uw] (\w+)$", symbols, re.MULTILINE))
    if not used:
        yield "refers to nothing: is this the archive?"
    for name in sorted(used - {"_DYNAMIC", "_GLOBAL_OFFSET_TABLE_", "__libc_stack_end", "_r_debug"}):
        yield f"refers to {name}"


def glibc_floor(*products):
    for product in products:
        symbols = output_of("readelf", "-W", "--dyn-syms", product)
        versions = re.findall(r"UND (\S+?)@+GLIBC_(\d+)\.(\d+)", symbols)
        if not versions:
            yield f"{product}: no versioned symbol of glibc: is this the product?"
        for name, major, minor in sorted(set(versions)):
            if (int(major), int(minor)) > GLIBC_FLOOR:
                yield f"{product}: {name} is of glibc {major}.{minor}, newer than {GLIBC_FLOOR}"
        for name in sorted(set(re.findall(r"UND (\S+@+(?:GLIBCXX|CXXABI|GCC)_\S+)", symbols))):
            yield f"{product}: {name} is not glibc's"


def build_id(file):
    return re.findall(r"Build ID: (\w+)", output_of("readelf", "-nW", file))


def stripped(product, debug_file, lines):
    """Checks that the product keeps function names only, and that a debugger finds the rest beside it."""
    sections = output_of("readelf", "-SW", product)
    for name in sorted(set(re.findall(r"\.z?debug_\w+", sections))):
        yield f"{name} is in the product"
    for name in (".symtab", ".eh_frame", ".gnu_debuglink"):
        if f" {name} " not in sections:
            yield f"{name} is not in the product"
    if not build_id(product) or build_id(product) != build_id(debug_file):
        yield f"build ids: {build_id(product)} and {build_id(debug_file)}"
    with tempfile.TemporaryDirectory() as folder:
        link = Path(folder) / "link"
        subprocess.run(
            ["objcopy", f"--dump-section=.gnu_debuglink={link}", product, f"{folder}/copy"],
            check=True,
        )
        content = link.read_bytes()
    name = content.partition(b"\0")[0].decode()
    if name != Path(debug_file).name:
        yield f"points to {name}"
    if content[-4:] != zlib.crc32(Path(debug_file).read_bytes()).to_bytes(4, "little"):
        yield "points to another debug file: the checksum differs"
    if lines == "with_lines" and " .debug_line " not in output_of("readelf", "-SW", debug_file):
        yield "no lines are in the debug file"


def heap(library):
    symbols = output_of("nm", "-D", "--undefined-only", library)
    used = {line.split()[-1].split("@")[0] for line in symbols.splitlines()}
    if not used & {"mmap", "mmap64"}:
        yield "does not even use mmap: is this the library?"
    for name in sorted(used & ALLOCATES - set(NEVER_CALLED)):
        yield f"{name} allocates from the host's heap"
    for name in sorted(used & {"malloc", "free", "calloc", "realloc", "aligned_alloc"}):
        yield f"{name} is the host's, not the private heap's"
    for name in sorted(used & ASKS_THE_LOADER):
        yield f"{name} asks the loader"
    for name in sorted(set(NEVER_CALLED) - used):
        yield f"{name} is no longer referred to: take it off the list"


def static_tls(library):
    """Checks the size of static TLS: it comes out of every thread's stack, or out of a small reserve."""
    headers = output_of("readelf", "-lW", library)
    found = re.search(r"^\s*TLS\s+\S+ \S+ \S+ \S+ (0x[0-9a-f]+)", headers, re.MULTILINE)
    if not found:
        yield "has no thread-local storage: is this the library?"
    elif int(found[1], 16) > TLS_BUDGET:
        yield f"takes {int(found[1], 16)} bytes of every thread, more than {TLS_BUDGET}"


def hook_names(hooks_def, compiler):
    """Returns the names in hooks.def for this toolkit's headers, expanded by the preprocessor."""
    marks = "\n".join(
        f"#define {macro}(result, name, parameters, arguments) EXPORTED_ROW name;"
        for macro in ("HOOK", "COUNT", "LAUNCH", "QUERY", "SUBMIT", "WAIT", "SHIM", "RUNTIME")
    )
    text = f'#include <cuda.h>\n{marks}\n#include "{hooks_def}"\n'
    # Without the definition, macros of cuda.h rename functions; hooks.def names each version itself.
    expanded = output_of(
        *compiler, "-D__CUDA_API_VERSION_INTERNAL", "-x", "c++", "-std=c++20", "-E", "-P", "-",
        text=text,
    )  # fmt: skip
    return re.findall(r"EXPORTED_ROW (\w+)\s*;", expanded)


def exports(library, hooks_def, *compiler):
    rows = hook_names(hooks_def, compiler)
    if not rows:
        yield "hooks.def has no rows"
    for name in sorted({name for name in rows if rows.count(name) > 1}):
        yield f"{name} has two rows"
    defined = output_of("nm", "-D", "--defined-only", library)
    shown = {line.split()[-1].split("@")[0] for line in defined.splitlines()}
    expected = set(rows) | OTHER_EXPORTS
    for name in sorted(expected - shown):
        yield f"{name} is not exported"
    for name in sorted(shown - expected):
        yield f"{name} is exported, and is no hook"


def main():
    check, *arguments = sys.argv[1:]
    checks = {
        "needs": needs,
        "bound_imports": bound_imports,
        "calls_nothing": calls_nothing,
        "glibc_floor": glibc_floor,
        "stripped": stripped,
        "heap": heap,
        "static_tls": static_tls,
        "exports": exports,
    }
    complaints = list(checks[check](*arguments))
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
