// A loaded object as the dynamic loader describes it, and the file that it was loaded from. Two
// objects with equal build ids and extents are from one file, at any address and under any name.
// Without build ids, two objects are from one file if their paths, program headers and tables of
// functions (.eh_frame_hdr) are equal. All of this is mapped memory: reading it needs no system
// call, which a seccomp filter of the program might forbid.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime_hooks/ledger/format/layout.hpp"

struct dl_phdr_info;

namespace cuwarden::ledger {

// A loaded object (the program or a shared library), as dl_iterate_phdr describes it.
struct ModuleDescription {
  std::uint64_t base = 0;  // load base; 0 for a program that is not position-independent
  // Range of addresses [start, end) in which the object's segments lie.
  std::uint64_t start = 0, end = 0;
  std::uint8_t build_id[sizeof(Module::build_id)] = {};  // the linker's id of the object's file
  std::uint32_t build_id_bytes = 0;  // number of bytes of `build_id` in use; 0: there is no id
  // Path of the object's file as the loader knows it; empty for the program itself. The text is in
  // the loader's memory. It is valid as long as the object stays loaded.
  std::string_view path;

  // Fills this description from the loader's description of a loaded object. Returns false if no
  // part of the object is mapped. May be called inside dl_iterate_phdr's callback.
  bool read(const dl_phdr_info&) noexcept;

  // Returns a hash of the object's load base, build id and path. The hash differs for another
  // object that is later loaded at the same addresses.
  std::uint64_t identity() const noexcept;
  // Returns a hash of the file from which the object was loaded. The hash is equal for all objects
  // from one file, or from files with one build id and equal extents. `dl_phdr_info`: the loader's
  // description that read() was given.
  std::uint64_t file(const dl_phdr_info&) const noexcept;
};

}  // namespace cuwarden::ledger
