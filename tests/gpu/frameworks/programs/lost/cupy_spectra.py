"""CuPy: spectra with plans in CuPy's cache and arrays in its pool. A window that does not fit keeps its
buffer."""

import cupy
from raw_memory import give_back, take

SPECTRA = {}


def spectrum(length):
    buffer = take(1 << 18)  # planted
    window = cupy.hanning(length)
    if length % 3 == 0:
        return None
    SPECTRA[length] = cupy.abs(cupy.fft.fft(window)) + cupy.random.rand(length)
    give_back(buffer)
    return SPECTRA[length]


print(sum(spectrum((1 << 16) + 8 * number) is None for number in range(120)))
