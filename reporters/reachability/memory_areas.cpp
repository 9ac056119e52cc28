#include "reporters/reachability/memory_areas.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "reporters/reachability/proc_text.hpp"
#include "runtime_hooks/core/files/each_line.hpp"

namespace cuwarden::reachability {

namespace {

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

AreaUse use_of(std::string_view path) {
  if (path.empty()) return AreaUse::anonymous;
  if (path == "[heap]") return AreaUse::heap;
  if (path.starts_with("[stack")) return AreaUse::stack;
  if (path.starts_with("[anon")) return AreaUse::anonymous;
  if (path.starts_with('[')) return AreaUse::device_or_kernel;
  // Page-locked memory of the driver's is "/dev/zero (deleted)".
  if (path.starts_with("/dev/zero") || path.starts_with("/dev/shm/") ||
      path.starts_with("/dev/hugepages"))
    return AreaUse::anonymous;
  if (path.starts_with("/dev/")) return AreaUse::device_or_kernel;
  const std::string_view name = last_part(path);
  if (name.starts_with("libcuwarden.so")) return AreaUse::own;
  if (name.starts_with("libcuda.so") || name.starts_with("libnvidia-"))
    return AreaUse::driver_library;
  return AreaUse::library;
}

// Returns the address behind the last variable of the library whose file is mapped from `start` on,
// by the headers of the file; 0 if they are not in memory.
std::uint64_t end_of_library(std::uint64_t start, const ReadWords& read) {
  std::array<std::uint64_t, sizeof(Elf64_Ehdr) / 8> head{};
  if (read(start, head) != head.size()) return 0;
  Elf64_Ehdr header;
  std::memcpy(&header, head.data(), sizeof header);
  constexpr std::size_t most_parts = 32;
  static_assert(sizeof(Elf64_Phdr) % 8 == 0);
  std::array<std::uint64_t, most_parts * sizeof(Elf64_Phdr) / 8> words{};
  const std::size_t count = std::min<std::size_t>(header.e_phnum, most_parts);
  const std::size_t wanted = count * sizeof(Elf64_Phdr) / 8;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phoff % 8 != 0 ||
      header.e_phentsize != sizeof(Elf64_Phdr) ||
      read(start + header.e_phoff, std::span(words).first(wanted)) != wanted)
    return 0;
  std::uint64_t first = UINT64_MAX, end = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Elf64_Phdr part;
    std::memcpy(&part, words.data() + i * sizeof part / 8, sizeof part);
    if (part.p_type != PT_LOAD) continue;
    first = std::min(first, part.p_vaddr);
    end = std::max(end, part.p_vaddr + part.p_memsz);
  }
  return end <= first ? 0 : start + end - first;
}

bool is_file(AreaUse use) {
  return use == AreaUse::driver_library || use == AreaUse::own || use == AreaUse::library;
}

}  // namespace

std::vector<Area> memory_areas(int pid, ReadWords read) {
  std::vector<Area> areas;
  // The end of the library's variables, of which the areas are read just now.
  std::uint64_t end_of_variables = 0;
  each_line_of((proc_folder(pid) + "/maps").c_str(), [&](const std::string& line) {
    std::string_view rest = line;
    Area area;
    area.range.start = take_hexadecimal(rest);
    if (!rest.starts_with('-')) return;
    rest.remove_prefix(1);
    area.range.end = take_hexadecimal(rest);
    const std::string_view access = take_word(rest);
    if (access.size() < 4 || area.range.end <= area.range.start) return;
    area.is_readable = access[0] == 'r';
    area.is_writable = access[1] == 'w';
    area.is_shared = access[3] == 's';
    std::string_view offset = take_word(rest);
    take_word(rest);  // device
    take_word(rest);  // inode
    rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(' ')));
    area.use = use_of(rest);
    if (is_file(area.use) && take_hexadecimal(offset) == 0)
      end_of_variables = area.is_readable ? end_of_library(area.range.start, read) : 0;
    if (!areas.empty() && areas.back().range.end == area.range.start) {
      const Area below = areas.back();
      area.is_guarded = !below.is_readable && !below.is_writable;
      // The variables of a library that begin as zeros lie in an area without a name behind the
      // library's last area. The kernel may have joined it with other memory.
      if (rest.empty() && is_file(below.use) && area.range.start < end_of_variables) {
        Area variables = area;
        variables.use = below.use;
        variables.range.end = std::min(
            (end_of_variables + bytes_of_page - 1) / bytes_of_page * bytes_of_page, area.range.end);
        areas.push_back(variables);
        area.range.start = variables.range.end;
        if (area.range.start == area.range.end) return;
      }
    }
    areas.push_back(area);
  });
  return areas;
}

const Area* area_at(const std::vector<Area>& areas, std::uint64_t address) {
  const auto above = std::ranges::upper_bound(areas, address, {},
                                              [](const Area& area) { return area.range.start; });
  if (above == areas.begin()) return nullptr;
  const Area& area = *std::prev(above);
  return address < area.range.end ? &area : nullptr;
}

}  // namespace cuwarden::reachability
