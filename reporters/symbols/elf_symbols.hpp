// Reads ELF files: the build id, and names of functions from the tables .symtab or .dynsym, for
// files without debug information. Files are read in pieces and never mapped, so that a file that
// is cut short meanwhile cannot kill the process. Every offset and count is checked.
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

// An open 64-bit ELF file (program or library), with its headers; gives its build id and the names
// of its functions.
class ElfFile {
 public:
  // Opens the file; null if it cannot be read or is no 64-bit little-endian ELF file.
  static std::optional<ElfFile> open(const char* path) noexcept;

  // Returns the ELF header of the file.
  const Elf64_Ehdr& header() const { return header_; }
  // Returns the program headers; empty if none could be read.
  const std::vector<Elf64_Phdr>& segments() const { return segments_; }
  // Returns the bytes of the file's ELF build id; empty if the file has none.
  std::vector<std::uint8_t> build_id() const;
  // True if the file has a section .debug_info or .zdebug_info, and so can give source lines.
  bool has_debug_information() const;

  // Returns the mangled name of the function at each address, in the order of `sorted`; an empty
  // name if no function is known there. `sorted`: addresses as in the file's symbol table,
  // ascending. A function whose size the table does not state counts as reaching to the end of its
  // section. If the budget's time runs out, the result is shorter than `sorted`, or empty.
  std::vector<std::string> functions_at(std::span<const std::uint64_t> sorted,
                                        const SymbolBudget& budget = {}) const;

  // True if the file's read-only data (sections .rodata*) contains `text`. If the file has no
  // section headers that can be read, the whole file is searched.
  bool constants_contain(std::string_view text) const;

  // Reads up to `bytes` bytes of the file, from `offset` on, into `into`. Returns the number of
  // bytes read, which is less than `bytes` at the end of the file or after an error.
  std::size_t read(std::uint64_t offset, void* into, std::size_t bytes) const;
  // Returns the text in the file that begins at `offset` and ends before a zero byte; about 16 KiB
  // of it at most.
  std::string text(std::uint64_t offset) const;

 private:
  ElfFile() = default;
  // Searches the ELF notes in `bytes` bytes at `offset` of the file for a build id, and returns it.
  // Empty if there is none, or if `bytes` is more than 64 KiB.
  std::vector<std::uint8_t> build_id_in(std::uint64_t offset, std::uint64_t bytes) const;
  // Calls visit(symbol, position in the file of the symbol's name) for each symbol of .symtab, or
  // of .dynsym if there is no .symtab. Returns false if the budget's time ran out before the end.
  template <class Visit>
  bool each_symbol(const SymbolBudget&, const Visit& visit) const;

  Descriptor descriptor_;             // descriptor of the open ELF file; never empty
  Elf64_Ehdr header_{};               // ELF header of the file
  std::vector<Elf64_Phdr> segments_;  // program headers; empty: none that can be read
  std::vector<Elf64_Shdr> sections_;  // section headers; empty: none that can be read
};

}  // namespace cuwarden
