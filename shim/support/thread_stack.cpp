#include "shim/support/thread_stack.hpp"

#include <pthread.h>

#include <cstddef>

#include "shim/support/real_libc.hpp"

namespace cuwarden::shim {

bool find_thread_stack(std::uint64_t& low, std::uint64_t& high) noexcept {
  const RealLibc& libc = real_libc();
  if (libc.pthread_getattr_np == nullptr || libc.pthread_attr_getstack == nullptr ||
      libc.pthread_attr_destroy == nullptr)
    return false;
  const auto self = reinterpret_cast<pthread_t>(__builtin_thread_pointer());
  pthread_attr_t attributes;
  if (libc.pthread_getattr_np(self, &attributes) != 0) return false;
  void* begin = nullptr;
  std::size_t bytes = 0;
  const bool known = libc.pthread_attr_getstack(&attributes, &begin, &bytes) == 0;
  libc.pthread_attr_destroy(&attributes);
  low = reinterpret_cast<std::uint64_t>(begin);
  high = low + bytes;
  return known;
}

}  // namespace cuwarden::shim
