"""Fixtures, and the rule that all tests are skipped without a GPU or without the shim."""

import ctypes
import os
import re
from pathlib import Path

import pytest

import preloaded


def gpu_count():
    if preloaded.SIMULATED:
        return 1
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int()
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


GPUS = gpu_count()


def pytest_configure(config):
    config.addinivalue_line("markers", "alone: compares with the whole device: nothing beside it")
    config.addinivalue_line("markers", "gpus(n): needs that many")


def pytest_report_header(config):
    return f"build folder: {preloaded.BUILD}, GPUs: {GPUS}"


def pytest_collection_modifyitems(items):
    for item in items:
        needed = item.get_closest_marker("gpus")
        if GPUS == 0:
            item.add_marker(pytest.mark.skip(reason="no GPU"))
        elif not preloaded.SHIM.exists():
            item.add_marker(pytest.mark.skip(reason=f"no {preloaded.SHIM}"))
        elif needed is not None and needed.args[0] > GPUS:
            item.add_marker(pytest.mark.skip(reason=f"needs {needed.args[0]} GPUs"))


@pytest.fixture
def gpus():
    return GPUS


@pytest.fixture
def workspace(request, tmp_path):
    keep = os.environ.get("CUWARDEN_GPU_KEEP")
    if keep is None:
        return preloaded.Workspace(tmp_path)
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", request.node.name).strip("_")
    return preloaded.Workspace(tmp_path, Path(keep) / f"{request.node.path.stem}.{name}")
