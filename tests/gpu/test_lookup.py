"""Libraries that stand in front of CUDA and are opened by dlopen work as without the shim."""

import pytest

import preloaded

PROGRAMS = preloaded.BUILD / "tests/end_to_end/programs"
OPENED = [
    "local:wrapper_asks_next",
    "global:CUDA local:wrapper_asks_next",
    "global:CUDA local:wrapper_asks_default",
    "global:wrapper_asks_next",
]


@pytest.mark.parametrize("opened", OPENED)
@pytest.mark.parametrize("wrapped", ["runtime", "driver"])
def test_a_wrapper_that_is_opened_by_dlopen_works_as_without_the_shim(workspace, wrapped, opened):
    program = PROGRAMS / "opened_wrapper"
    if not program.exists():
        pytest.skip(f"{program} was not built")
    cuda = {"runtime": "libcudart.so.13", "driver": "libcuda.so.1"}[wrapped]
    free = {"runtime": "cudaFree", "driver": "cuMemFree_v2"}[wrapped]

    def path(library):
        how, name = library.split(":")
        return f"{how}:{cuda if name == 'CUDA' else PROGRAMS / f'lib{name}_{wrapped}.so'}"

    command = [program, free, *map(path, opened.split())]
    bare = workspace.run(command, shim=False)
    run = workspace.run(command)
    assert (run.stdout, run.returncode, run.said) == (bare.stdout, bare.returncode, [])
    assert "start: 0\n" in run.stdout
    # In front of the driver, a free through a pointer to the wrapper itself is not seen.
    assert wrapped == "driver" or run.report["coverage"]["complete"] is True
