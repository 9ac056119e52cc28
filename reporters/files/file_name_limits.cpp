#include "reporters/files/file_name_limits.hpp"

#include <sys/vfs.h>

#include <algorithm>
#include <cstdint>

#include "reporters/words/printable.hpp"

namespace cuwarden {
namespace {

constexpr bool is_letter(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

// Eight hexadecimal digits (FNV-1a, folded).
std::string checksum(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  constexpr char digits[] = "0123456789abcdef";
  std::string result;
  for (int shift = 28; shift >= 0; shift -= 4)
    result += digits[((hash ^ hash >> 32) >> shift) & 15];
  return result;
}

// File systems that count letters (FAT, NTFS) state more than 255 bytes; some state nothing.
std::size_t usable_limit(const struct statfs& system) {
  const auto stated = static_cast<std::size_t>(std::max<long>(system.f_namelen, 0));
  return stated < 64 ? usual_name_limit : std::min(stated, usual_name_limit);
}

}  // namespace

std::size_t ending_of(std::string_view name) noexcept {
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos) return name.size();
  const std::string_view ending = name.substr(dot + 1);
  const bool hides = dot == 0 && ending != "json";
  return !hides && std::ranges::any_of(ending, is_letter) ? dot : name.size();
}

std::string numbered_name(std::string_view name, unsigned number) {
  if (number == 0) return std::string(name);
  const std::size_t ending = ending_of(name);
  return std::string(name.substr(0, ending)) + "." + std::to_string(number) +
         std::string(name.substr(ending));
}

std::string fitting_name(std::string_view name, std::size_t most) {
  if (name.size() <= most) return std::string(name);
  const std::string mark = "~" + checksum(name);
  std::size_t tail = name.size() - most / 3;
  while (tail < name.size() && !starts_letter(name[tail])) ++tail;
  std::size_t head = most - mark.size() - (name.size() - tail);
  while (head > 0 && !starts_letter(name[head])) --head;
  return std::string(name.substr(0, head)) + mark + std::string(name.substr(tail));
}

std::size_t name_limit(int descriptor) noexcept {
  struct statfs system {};
  return fstatfs(descriptor, &system) == 0 ? usable_limit(system) : usual_name_limit;
}

std::size_t name_limit(std::string path) noexcept {
  struct statfs system {};
  const char* const last_resort = path.starts_with('/') ? "/" : ".";
  while (statfs(path.empty() ? last_resort : path.c_str(), &system) != 0) {
    if (path.empty()) return usual_name_limit;
    const std::size_t slash = path.rfind('/');
    path.resize(slash == path.npos ? 0 : slash);
  }
  return usable_limit(system);
}

}  // namespace cuwarden
