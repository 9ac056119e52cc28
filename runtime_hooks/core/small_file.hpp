// Files of /proc and the numbers in them, without stdio, malloc or a descriptor that stays open.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace cuwarden {

// A file or a folder; closed with the object.
class Descriptor {
 public:
  Descriptor(int folder, const char* path, int flags) noexcept
      : descriptor_(openat(folder, path, flags | O_CLOEXEC)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  explicit operator bool() const noexcept { return descriptor_ >= 0; }
  int number() const noexcept { return descriptor_; }

  // As read(2), begun again after a signal.
  ssize_t read_some(std::span<char> into) const noexcept {
    ssize_t got = -1;
    do {
      got = read(descriptor_, into.data(), into.size());
    } while (got < 0 && errno == EINTR);
    return got;
  }

 private:
  int descriptor_;
};

// The file's first bytes; empty where it cannot be read.
inline std::string_view read_small_file(int folder, const char* path,
                                        std::span<char> into) noexcept {
  const Descriptor file(folder, path, O_RDONLY);
  std::size_t length = 0;
  while (file && length < into.size()) {
    const ssize_t got = file.read_some(into.subspan(length));
    if (got < 0) return {};
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  return {into.data(), length};
}

// The decimal number that the text begins with, blanks aside, and takes it off. Null where there is
// none, where it does not fit, or where neither a blank nor a line's end follows: it may be cut.
inline std::optional<std::uint64_t> take_number(std::string_view& text) noexcept {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  std::uint64_t value = 0;
  std::size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, static_cast<std::uint64_t>(text[digits] - '0'), &value))
      return std::nullopt;
  }
  const char next = digits < text.size() ? text[digits] : '\0';
  if (digits == 0 || (next != ' ' && next != '\t' && next != '\n')) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

}  // namespace cuwarden
