// A small reader of ELF files: the build id, and names of functions from .symtab or .dynsym for
// files without debug information. Files are read in pieces and never mapped, so that a file that
// is truncated meanwhile cannot kill the process. Every offset and count is checked.
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

// An open 64-bit ELF file (program or library): its headers, build id and function symbols.
class ElfFile {
 public:
  // Opens the file; null if it cannot be read or is no 64-bit little-endian ELF file.
  static std::optional<ElfFile> open(const char* path) noexcept;

  // Returns the ELF header of the file.
  const Elf64_Ehdr& header() const { return header_; }
  // Returns the program headers; empty if the file has none that can be read.
  const std::vector<Elf64_Phdr>& segments() const { return segments_; }
  // Returns the bytes of the file's ELF build id; empty if the file has none.
  std::vector<std::uint8_t> build_id() const;
  // True if the file has a section .debug_info or .zdebug_info, and so can give source lines.
  bool has_debug_information() const;

  // Returns for each address the mangled name of the function around it, in the order of `sorted`;
  // an empty name if no function is known. `sorted`: addresses as in the file's symbol table,
  // ascending. A function without a size is taken to reach to the end of its section. If the
  // budget's time runs out, the result is empty or lacks names at its end.
  std::vector<std::string> functions_at(std::span<const std::uint64_t> sorted,
                                        const SymbolBudget& budget = {}) const;

  // True if the file's read-only data (sections .rodata*) contains `text`. If the file has no
  // section headers, the whole file is searched.
  bool constants_contain(std::string_view text) const;

  // Reads up to `bytes` bytes at `offset` of the file into `into`. Returns the number of bytes
  // read, which is less at the end of the file or after an error.
  std::size_t read(std::uint64_t offset, void* into, std::size_t bytes) const;
  // Returns the null-terminated text at `offset` of the file, at most 16 KiB of it.
  std::string text(std::uint64_t offset) const;

 private:
  ElfFile() = default;
  // Returns the build id in the ELF notes in `bytes` bytes at `offset` of the file; empty if there
  // is none, or if `bytes` is more than 64 KiB.
  std::vector<std::uint8_t> build_id_in(std::uint64_t offset, std::uint64_t bytes) const;
  // Calls visit(symbol, offset of the symbol's name in the file) for each symbol of .symtab, or of
  // .dynsym if there is no .symtab. Returns false if the budget's time ran out before the end.
  template <class Visit>
  bool each_symbol(const SymbolBudget&, const Visit& visit) const;

  Descriptor descriptor_;             // the open file
  Elf64_Ehdr header_{};               // ELF header of the file
  std::vector<Elf64_Phdr> segments_;  // program headers; empty: none that can be read
  std::vector<Elf64_Shdr> sections_;  // section headers; empty: none that can be read
};

}  // namespace cuwarden
