// A small reader of ELF files: the build id, and the nearest function from .symtab or .dynsym for
// files without debug information. Files are read in pieces, never mapped, so that one that is
// truncated meanwhile cannot kill the process; every offset and count is checked.
#pragma once

#include <elf.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reporters/symbols/symbol_budget.hpp"
#include "runtime_hooks/core/files/open_file.hpp"

namespace cuwarden {

class ElfFile {
 public:
  // Null when it cannot be read or is no 64-bit little-endian ELF file.
  static std::optional<ElfFile> open(const char* path) noexcept;

  const Elf64_Ehdr& header() const { return header_; }
  const std::vector<Elf64_Phdr>& segments() const { return segments_; }
  std::vector<std::uint8_t> build_id() const;
  bool has_debug_information() const;  // so that functions can be told their lines

  // For each address, in the file's own terms and sorted: the mangled name of the function whose
  // extent covers it, or of the nearest one before it when that one has no extent; else empty.
  // The rest is left out when the budget has no more time for names.
  std::vector<std::string> functions_at(std::span<const std::uint64_t> sorted,
                                        const SymbolBudget& budget = {}) const;

  // True if the read-only data contains `text`; without a section table, if the file does.
  bool constants_contain(std::string_view text) const;

  // Up to `bytes` bytes at `offset` of the file; fewer at its end.
  std::size_t read(std::uint64_t offset, void* into, std::size_t bytes) const;
  // The zero-terminated text at `offset`, at most 16 KiB of it.
  std::string text(std::uint64_t offset) const;

 private:
  ElfFile() = default;
  std::vector<std::uint8_t> build_id_in(std::uint64_t offset, std::uint64_t bytes) const;
  template <class Visit>
  bool each_symbol(const SymbolBudget&, const Visit& visit) const;

  Descriptor descriptor_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Shdr> sections_;
};

}  // namespace cuwarden
