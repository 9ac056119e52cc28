// The kernel's boot id, a random number that tells one start of the machine from another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime_hooks/core/files/small_file.hpp"

namespace cuwarden {

// Returns the 16 bytes of the kernel's current boot id; zeros if it cannot be read. Allocates
// nothing.
inline std::array<std::uint8_t, 16> read_boot_id() noexcept {
  std::array<std::uint8_t, 16> id{};
  char text[64];
  std::size_t digits = 0;
  for (const char c : read_small_file("/proc/sys/kernel/random/boot_id", text)) {
    if (digits == 2 * id.size()) break;
    const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (value < 0) continue;  // Dashes separate the digits.
    std::uint8_t& byte = id[digits++ / 2];
    byte = static_cast<std::uint8_t>(byte << 4 | value);
  }
  return id;
}

// The result of comparing a stored boot id with the kernel's current one. `this_one`: they are
// equal. `another`: they differ, so the stored id is from another start or machine. `unknown`: at
// least one of them is unknown.
enum class Boot { unknown, this_one, another };
// Compares the stored boot id `id` (the kernel's random number of one start of the machine) with
// the kernel's current one. Returns Boot::unknown if `id` is all zeros or has a length other than
// 16 bytes, or if the current boot id cannot be read.
inline Boot which_boot(std::span<const std::uint8_t> id) noexcept {
  constexpr std::array<std::uint8_t, 16> none{};
  const std::array<std::uint8_t, 16> now = read_boot_id();
  if (id.size() != now.size() || now == none) return Boot::unknown;
  bool known = false, same = true;
  for (std::size_t i = 0; i < now.size(); ++i) {
    known = known || id[i] != 0;
    same = same && id[i] == now[i];
  }
  return !known ? Boot::unknown : same ? Boot::this_one : Boot::another;
}

}  // namespace cuwarden
