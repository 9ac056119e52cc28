// A loaded object as the dynamic loader describes it, and the file that it was loaded from. The
// file is the same one, wherever and under whichever name it was loaded, where its build id and its
// extent are. A file without a build id is the same one where its path, its program headers and its
// table of functions (.eh_frame_hdr) are: all of that is mapped, so that no system call is needed,
// which a filter of the program's may forbid.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime_hooks/ledger/format/layout.hpp"

struct dl_phdr_info;

namespace cuwarden::ledger {

// A loaded object as the loader describes it.
struct ModuleDescription {
  // Load base (0 for a program that is not position-independent), and the mapped range.
  std::uint64_t base = 0, start = 0, end = 0;
  std::uint8_t build_id[sizeof(Module::build_id)] = {};
  std::uint32_t build_id_bytes = 0;
  std::string_view path;  // path as the loader knows it; empty for the program itself

  // Fills the description. Returns false if no part of the object is mapped. May be called inside
  // dl_iterate_phdr's callback.
  bool read(const dl_phdr_info&) noexcept;

  // Returns a hash that tells the object from others that are loaded at its address at other times.
  std::uint64_t identity() const noexcept;
  // Returns a hash that is equal for equal files. The argument is that of read().
  std::uint64_t file(const dl_phdr_info&) const noexcept;
};

}  // namespace cuwarden::ledger
