#include "reporters/symbols/elf_symbols.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace cuwarden {
namespace {

constexpr std::size_t longest_name = 16 * 1024;

}  // namespace

std::optional<ElfFile> ElfFile::open(const char* path) noexcept try {
  ElfFile file;
  file.descriptor_ = open_to_read(path);
  if (!file.descriptor_) return std::nullopt;

  Elf64_Ehdr& header = file.header_;
  if (file.read(0, &header, sizeof header) != sizeof header) return std::nullopt;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return std::nullopt;
  }
  if (header.e_phentsize == sizeof(Elf64_Phdr)) {
    file.segments_.resize(header.e_phnum);
    const std::size_t bytes = file.segments_.size() * sizeof(Elf64_Phdr);
    file.segments_.resize(file.read(header.e_phoff, file.segments_.data(), bytes) /
                          sizeof(Elf64_Phdr));
  }
  if (header.e_shentsize == sizeof(Elf64_Shdr)) {
    file.sections_.resize(header.e_shnum);
    const std::size_t bytes = file.sections_.size() * sizeof(Elf64_Shdr);
    file.sections_.resize(file.read(header.e_shoff, file.sections_.data(), bytes) /
                          sizeof(Elf64_Shdr));
  }
  return file;
} catch (...) {
  return std::nullopt;
}

std::size_t ElfFile::read(std::uint64_t offset, void* into, std::size_t bytes) const {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t count = pread(descriptor_.number(), static_cast<char*>(into) + done, bytes - done,
                                static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

std::string ElfFile::text(std::uint64_t offset) const {
  std::string result;
  char piece[256];
  while (result.size() < longest_name) {
    const std::size_t count = read(offset + result.size(), piece, sizeof piece);
    const std::size_t length = strnlen(piece, count);
    result.append(piece, length);
    if (length < count || count == 0) break;
  }
  return result;
}

std::vector<std::uint8_t> ElfFile::build_id_in(std::uint64_t offset, std::uint64_t bytes) const {
  if (bytes > 64 * 1024) return {};
  std::vector<char> notes(bytes);
  notes.resize(read(offset, notes.data(), notes.size()));
  std::size_t at = 0;
  while (at + sizeof(Elf64_Nhdr) <= notes.size()) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof note);
    const std::size_t name = at + sizeof note;
    const std::size_t content = name + ((std::size_t{note.n_namesz} + 3) & ~std::size_t{3});
    const std::size_t end = content + note.n_descsz;
    if (end > notes.size()) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes.data() + name, "GNU", 4) == 0) {
      const auto* data = reinterpret_cast<const std::uint8_t*>(notes.data());
      return {data + content, data + end};
    }
    at = (end + 3) & ~std::size_t{3};
  }
  return {};
}

std::vector<std::uint8_t> ElfFile::build_id() const {
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type != PT_NOTE) continue;
    if (auto found = build_id_in(segment.p_offset, segment.p_filesz); !found.empty()) return found;
  }
  // The note is found by sections, because the segments of a file with debug information only may
  // lead nowhere.
  for (const Elf64_Shdr& section : sections_) {
    if (section.sh_type != SHT_NOTE) continue;
    if (auto found = build_id_in(section.sh_offset, section.sh_size); !found.empty()) return found;
  }
  return {};
}

bool ElfFile::has_debug_information() const {
  if (header_.e_shstrndx >= sections_.size()) return false;
  const std::uint64_t names = sections_[header_.e_shstrndx].sh_offset;
  return std::ranges::any_of(sections_, [&](const Elf64_Shdr& section) {
    const std::string name = text(names + section.sh_name);
    return section.sh_type != SHT_NOBITS && (name == ".debug_info" || name == ".zdebug_info");
  });
}

// Calls visit(symbol, offset of its name in the file). Reads .symtab if there is one, because it
// has all symbols of .dynsym and more. Returns false if the time was up before the end.
template <class Visit>
bool ElfFile::each_symbol(const SymbolBudget& budget, const Visit& visit) const {
  const Elf64_Shdr* table = nullptr;
  for (const Elf64_Shdr& section : sections_) {
    if (section.sh_type == SHT_SYMTAB) table = &section;
    if (section.sh_type == SHT_DYNSYM && table == nullptr) table = &section;
  }
  if (table == nullptr || table->sh_link >= sections_.size()) return true;
  const Elf64_Shdr& names = sections_[table->sh_link];

  std::vector<Elf64_Sym> symbols(4096);
  std::uint64_t at = 0;
  while (at + sizeof(Elf64_Sym) <= table->sh_size) {
    if (!budget.has_time_for_names()) return false;
    const std::uint64_t left = (table->sh_size - at) / sizeof(Elf64_Sym);
    const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(left, 4096));
    const std::size_t count =
        read(table->sh_offset + at, symbols.data(), wanted * sizeof(Elf64_Sym)) / sizeof(Elf64_Sym);
    for (std::size_t i = 0; i < count; ++i) {
      if (symbols[i].st_name >= names.sh_size) continue;
      visit(symbols[i], names.sh_offset + symbols[i].st_name);
    }
    if (count < wanted) break;
    at += count * sizeof(Elf64_Sym);
  }
  return true;
}

std::vector<std::string> ElfFile::functions_at(std::span<const std::uint64_t> sorted,
                                               const SymbolBudget& budget) const {
  struct Nearest {
    std::uint64_t value = 0, extent = 0;
    bool sized = false;
    std::uint64_t name = 0;
    bool global = false, found = false;
  };
  // Each symbol is stored only at the first of the addresses that follow it. A pass over the
  // addresses then carries the nearest symbol on. So the table is read once, and not kept.
  std::vector<Nearest> nearest(sorted.size());
  const bool complete = each_symbol(budget, [&](const Elf64_Sym& symbol, std::uint64_t name) {
    const auto type = ELF64_ST_TYPE(symbol.st_info);
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF) return;
    const auto slot = static_cast<std::size_t>(
        std::lower_bound(sorted.begin(), sorted.end(), symbol.st_value) - sorted.begin());
    if (slot == sorted.size()) return;
    // Assembly often states no extent. The function is then taken to reach to the end of its
    // section.
    std::uint64_t extent = symbol.st_size;
    if (extent == 0 && symbol.st_shndx < sections_.size()) {
      const Elf64_Shdr& section = sections_[symbol.st_shndx];
      extent = section.sh_addr + section.sh_size - symbol.st_value;
    }
    const bool global = ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL;
    Nearest& best = nearest[slot];
    // If an address has several names, one with an extent is preferred, and among these a
    // global one.
    const int rank = (symbol.st_size != 0 ? 2 : 0) + (global ? 1 : 0);
    const int best_rank = (best.sized ? 2 : 0) + (best.global ? 1 : 0);
    const bool better = !best.found || symbol.st_value > best.value ||
                        (symbol.st_value == best.value && rank > best_rank);
    if (better)
      best = {.value = symbol.st_value,
              .extent = extent,
              .sized = symbol.st_size != 0,
              .name = name,
              .global = global,
              .found = true};
  });
  if (!complete) return {};  // half a table could name the wrong function

  std::vector<std::string> functions(sorted.size());
  Nearest carried;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (!budget.has_time_for_names()) {
      functions.resize(i);
      break;
    }
    if (nearest[i].found) carried = nearest[i];
    if (!carried.found) continue;
    if (sorted[i] - carried.value < carried.extent) {
      functions[i] = text(carried.name);
    }
  }
  return functions;
}

bool ElfFile::constants_contain(std::string_view text) const {
  std::vector<char> piece(1u << 20);
  const auto search = [&](std::uint64_t offset, std::uint64_t bytes) {
    while (bytes >= text.size()) {
      const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, piece.size()));
      const std::size_t count = read(offset, piece.data(), wanted);
      if (count < text.size()) return false;
      if (std::string_view(piece.data(), count).find(text) != std::string_view::npos) return true;
      // The text may begin in one piece and end in the next.
      const std::size_t step = count - text.size() + 1;
      offset += step;
      bytes -= step;
    }
    return false;
  };
  if (sections_.empty()) return search(0, UINT64_MAX / 2);
  const std::uint64_t names =
      header_.e_shstrndx < sections_.size() ? sections_[header_.e_shstrndx].sh_offset : 0;
  for (const Elf64_Shdr& section : sections_) {
    if (section.sh_type != SHT_PROGBITS ||
        !this->text(names + section.sh_name).starts_with(".rodata")) {
      continue;
    }
    if (search(section.sh_offset, section.sh_size)) return true;
  }
  return false;
}

}  // namespace cuwarden
