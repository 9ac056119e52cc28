// CallCanary::is_over() is called only when a thread enters a hooked call while it seems to be
// inside another one. That is rare, so system calls are cheap enough here.
#include "runtime_hooks/hooks/call/call_canary.hpp"

#include <signal.h>

#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/files/open_file.hpp"
#include "runtime_hooks/core/memory/readable.hpp"
#include "runtime_hooks/core/uncancelled.hpp"

namespace cuwarden::hooks {
namespace {

bool is_readable(const CallCanary* canary) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(canary);
  for (std::size_t i = 0; i < sizeof(CallCanary) / sizeof *words; ++i)
    if (!cuwarden::is_readable(words + i)) return false;
  return true;
}

bool on_signal_stack() {
  stack_t stack{};
  return sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_ONSTACK) != 0;
}

struct Range {
  std::uintptr_t start = 0, end = 0;
  bool main_stack = false;  // true for the stack of the process's first thread
};

// Reads the ranges of /proc/self/maps letter by letter, without stdio or malloc.
class Maps {
 public:
  bool next(Range& range) {
    range = {};
    char letter = 0;
    if (!hex(range.start, '-') || !hex(range.end, ' ')) return false;
    char last[8] = {};
    while (get(letter) && letter != '\n') {
      for (int i = 0; i + 1 < 7; ++i) last[i] = last[i + 1];
      last[6] = letter;
    }
    range.main_stack = __builtin_strcmp(last, "[stack]") == 0;
    return true;
  }

 private:
  bool get(char& letter) {
    if (at_ == length_) {
      length_ = file_ ? file_.read_some(text_) : 0;
      at_ = 0;
      if (length_ <= 0) return length_ = 0, false;
    }
    letter = text_[at_++];
    return true;
  }
  bool hex(std::uintptr_t& value, char end) {
    for (char letter = 0; get(letter);) {
      if (letter == end) return true;
      const int digit = letter >= 'a' ? letter - 'a' + 10 : letter - '0';
      value = value * 16 + static_cast<std::uintptr_t>(digit);
    }
    return false;
  }

  const Descriptor file_ = open_to_read("/proc/self/maps");
  ssize_t at_ = 0, length_ = 0;
  char text_[1024];
};

// Returns true if both addresses lie on the calling thread's own stack. The first thread's stack is
// named in /proc/self/maps; in another thread's stack, the thread's control block lies above both
// addresses in the same mapping.
bool on_own_stack(std::uintptr_t newer, std::uintptr_t older) {
  const auto thread = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  Maps maps;
  for (Range range; maps.next(range);) {
    if (newer < range.start || newer >= range.end) continue;
    if (older >= range.end) return false;
    return range.main_stack || (thread < range.end && older < thread);
  }
  return false;
}

}  // namespace

// AddressSanitizer is off, since the memory of a dead canary may be anything's by now. The function
// reads the canary's members itself, because a function that it calls may be instrumented.
__attribute__((no_sanitize("address"))) bool CallCanary::is_over(const CallCanary* canary,
                                                                 const void* frame) noexcept {
  const ErrnoGuard keep;
  const Uncancelled whole;
  if (is_probing_forbidden()) return false;
  if (!is_readable(canary) || canary->seal_ != seal_of(canary, canary->frame_)) return true;
  const auto then = reinterpret_cast<std::uintptr_t>(canary->frame_);
  const auto now = reinterpret_cast<std::uintptr_t>(frame);
  return now >= then && !on_signal_stack() && on_own_stack(then, now);
}

}  // namespace cuwarden::hooks
