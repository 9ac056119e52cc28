"""All ways in which one Python function can call another, for tests with random trees of calls."""

import ctypes
import sys

libc = ctypes.CDLL("libc.so.6")
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def frames(depth=1):
    """Returns the frames that the interpreter itself reports, innermost first, from the caller's frame on."""
    frame, found = sys._getframe(depth), []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found


def name_of(code):
    """Returns the qualified name of a function; before Python 3.11 the plain one."""
    return getattr(code, "co_qualname", code.co_name)


def text_of_frames(depth=1):
    """Returns a line for each frame that frames() returns: function, its first line, index of the
    instruction.

    The innermost frame has "-" for the instruction, since it executes more of them before its frames are
    read.
    """
    lines = []
    for index, frame in enumerate(frames(depth + 1)):
        code = frame.f_code
        reached = "-" if index == 0 else frame.f_lasti // 2
        lines.append(f"{name_of(code)} {code.co_firstlineno} {reached}\n")
    return "".join(lines)


def through_c(function):
    """Calls the function from C code: as the comparison of the C library's qsort()."""
    once = []

    def called(left, right):
        if not once:
            once.append(1)
            function()
        return 0

    libc.qsort((ctypes.c_int * 2)(1, 2), ctypes.c_size_t(2), ctypes.c_size_t(4), compare(called))


class Way:
    def __init__(self, next):
        self.next = next

    def method(self):
        return self.next()

    @property
    def value(self):
        return self.next()

    def __len__(self):
        self.next()
        return 0

    def __call__(self):
        return self.next()

    def __lt__(self, other):
        self.next()
        return False

    def __iter__(self):
        yield self.next()

    def __enter__(self):
        self.next()
        return self

    def __exit__(self, *_):
        pass


def plain(next):
    return next()


def caught(next):
    try:
        raise KeyError
    except KeyError:
        return next()
    finally:
        pass


def last(next):
    try:
        return None
    finally:
        next()


def delegated(next):
    def inner():
        yield next()

    yield from inner()


def entered(next):
    with Way(next):
        pass


async def awaited(next):
    next()


def coroutine(next):
    try:
        awaited(next).send(None)
    except StopIteration:
        pass


WAYS = [
    plain,
    caught,
    last,
    entered,
    coroutine,
    lambda next: Way(next).method(),
    lambda next: Way(next).value,
    lambda next: len(Way(next)),
    lambda next: Way(next)(),
    lambda next: sorted([Way(next), Way(lambda: None)]),
    lambda next: list(Way(next)),
    lambda next: list(delegated(next)),
    lambda next: [next() for _ in range(1)],
    lambda next: list(map(lambda _: next(), [1])),
    lambda next: max([1], key=lambda _: next() or 0),
    lambda next: exec("next()", {"next": next}),
    lambda next: eval("next()", {"next": next}),
    through_c,
]


def tree(random, depth, leaf):
    """Returns a function that calls `leaf` through a chain of `depth` calls.

    `random` chooses the way of each call from WAYS. Some ways call the function twice, or not at all.
    """
    if depth == 0:
        return leaf
    way, below = random.choice(WAYS), tree(random, depth - 1, leaf)
    return lambda: way(below)
