// The sort that our copy of libbacktrace uses in place of its own (which the build makes a weak
// symbol). Its own is a quicksort that takes quadratic time where many elements are equal: 40,000
// units of debug information with the same range of addresses took ten seconds, at a process's end.
// A heap sort always takes n log n, and no memory.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace {

using Compare = int (*)(const void*, const void*);

struct Elements {
  char* base;
  std::size_t bytes;  // size of one element
  Compare compare;

  char* at(std::size_t index) const { return base + index * bytes; }
  bool is_less(std::size_t left, std::size_t right) const {
    return compare(at(left), at(right)) < 0;
  }
  // Swaps two different elements, many bytes at a time: an element is not larger than a few
  // pointers.
  void swap(std::size_t left, std::size_t right) const {
    std::array<char, 32> kept;
    for (std::size_t done = 0, part = 0; done < bytes; done += part) {
      part = std::min(bytes - done, kept.size());
      std::memcpy(kept.data(), at(left) + done, part);
      std::memcpy(at(left) + done, at(right) + done, part);
      std::memcpy(at(right) + done, kept.data(), part);
    }
  }
  // Makes a heap of [parent, end), whose both halves are heaps.
  void sift_down(std::size_t parent, std::size_t end) const {
    for (std::size_t child = 2 * parent + 1; child < end; child = 2 * parent + 1) {
      if (child + 1 < end && is_less(child, child + 1)) ++child;
      if (!is_less(parent, child)) return;
      swap(parent, child);
      parent = child;
    }
  }
};

}  // namespace

extern "C" void backtrace_qsort(void* base, std::size_t count, std::size_t bytes, Compare compare) {
  const Elements elements{static_cast<char*>(base), bytes, compare};
  for (std::size_t parent = count / 2; parent-- > 0;) elements.sift_down(parent, count);
  for (std::size_t end = count; end-- > 1;) {
    elements.swap(0, end);
    elements.sift_down(0, end);
  }
}
