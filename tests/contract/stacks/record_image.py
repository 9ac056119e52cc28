"""Records an image of the interpreter's memory, for python_images_test.

    setarch -R python_reading_test record_image.py FILE

FILE is images/cpython-VERSION.txt. Run once for each version of CPython, with PYTHON_LIBRARY and PYTHONHOME
of that version, in a folder whose name may be seen by all. setarch turns off the randomisation of addresses,
so that the image's addresses are free in most processes.
"""

import ctypes
import sys

sys.dont_write_bytecode = True
import call_ways

record = ctypes.CDLL(None).record_image
record.argtypes = [ctypes.c_char_p, ctypes.c_char_p]


def innermost():
    record(sys.argv[1].encode(), call_ways.text_of_frames().encode())


def größer():
    innermost()


def 関数():
    größer()


def generated():
    yield 関数()


class Model:
    def forward(self, depth):
        if depth:
            return self.forward(depth - 1)
        return list(generated())


call_ways.through_c(lambda: Model().forward(2))
