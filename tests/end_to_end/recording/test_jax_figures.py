"""Figures and live arrays that JAX gives when cuwarden asks it inside an unmodified program."""

import re

import shimmed
from asked_frameworks import MIB, figures, report_of, run


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def profile(samples):
    """Returns a profile in pprof's format of (count, bytes, [(function, line, file), ...])."""
    strings, functions, parts = [""], {}, []

    def index(text):
        if text not in strings:
            strings.append(text)
        return strings.index(text)

    locations = {}
    for count, size, lines in samples:
        ids = []
        for function, line, file in lines:
            of = functions.setdefault((function, file), len(functions) + 1)
            ids.append(locations.setdefault((of, line), len(locations) + 1))
        parts.append(
            field(2, field(1, b"".join(map(varint, ids))) + field(2, varint(count) + varint(size)))
        )
    code = field(3, field(1, index("kind")) + field(2, index("executable")))
    parts.append(field(2, field(2, varint(1) + varint(1 << 30)) + code))
    for (of, line), identity in locations.items():
        parts.append(field(4, field(1, identity) + field(4, field(1, of) + field(2, line))))
    for (function, file), identity in functions.items():
        names = field(2, index(function)) + field(4, index(file))
        parts.append(field(5, field(1, identity) + names))
    return b"".join(parts + [field(6, text.encode()) for text in strings])


def test_jax_gives_its_figures_and_its_arrays_by_line_before_it_frees_them(workspace):
    text = profile(
        [
            (3, 3 * MIB, [("full", 70, "/v/site-packages/jax/numpy.py"), ("encode", 12, "/u/net.py")]),
            (1, 9 * MIB, [("full", 70, "/v/site-packages/jax/numpy.py"), ("start", 300, "/u/net.py")]),
            (2, 2 * MIB, [("full", 70, "/v/site-packages/jax/numpy.py"), ("encode", 12, "/u/net.py")]),
        ]
    )
    done = run(
        workspace,
        f"""
        import jax
        jax.start()
        jax.device.stats.update(pool_bytes=64 << 20, bytes_in_use=14 << 20, peak_bytes_in_use=20 << 20,
                                largest_free_block_bytes=32 << 20)
        jax.profiler.text = {text!r}
        """,
    )
    assert done.returncode == 0, done.stderr
    report = report_of(workspace)
    (row,) = figures(report, "JAX")
    assert row["reserved_bytes"] == 64 * MIB
    assert row["allocated_bytes"] == 14 * MIB
    assert row["peak_allocated_bytes"] == 20 * MIB
    assert row["largest_free_bytes"] == 32 * MIB
    sites = {row["where"]: (row["count"], row["bytes"]) for row in report["framework_sites"]}
    assert sites == {
        "/u/net.py:12 in encode": (5, 5 * MIB),
        "/u/net.py:300 in start": (1, 9 * MIB),
    }
    text = shimmed.cuwarden(workspace, "report", report.path).stdout
    assert re.search(r"LIVE TENSORS: 14\.0 MiB in 6 blocks", text), text
    assert "at net.py:300 in start" in text
