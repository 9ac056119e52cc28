#include "runtime_hooks/ledger/write/stacks/module_description.hpp"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "runtime_hooks/core/hash.hpp"
#include "runtime_hooks/core/memory/mapping.hpp"

namespace cuwarden::ledger {
namespace {

// Most bytes that are read of a table of functions, enough for some 8,000 functions.
constexpr std::uint64_t most_table_bytes = 64 << 10;

// The notes of a loaded segment: (name size, value size, type), name, value, each padded to 4.
void read_build_id(const std::byte* notes, std::uint64_t bytes, std::uint8_t* into,
                   std::uint32_t capacity, std::uint32_t& length) {
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    const std::uint64_t name_bytes = round_up(note.n_namesz, 4);
    const std::uint64_t value_bytes = round_up(note.n_descsz, 4);
    const std::uint64_t whole = sizeof note + name_bytes + value_bytes;
    if (whole > bytes) return;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes + sizeof note, "GNU", 4) == 0) {
      length = std::min<std::uint32_t>(note.n_descsz, capacity);
      std::memcpy(into, notes + sizeof note + name_bytes, length);
      return;
    }
    notes += whole;
    bytes -= whole;
  }
}

const std::byte* mapped_at(std::uint64_t address) noexcept {
  // The loader's headers say that this memory is mapped.
  return reinterpret_cast<const std::byte*>(address);
}

}  // namespace

bool ModuleDescription::read(const dl_phdr_info& info) noexcept {
  base = info.dlpi_addr;
  path = info.dlpi_name == nullptr ? "" : info.dlpi_name;
  std::uint64_t low = UINT64_MAX, high = 0;
  for (std::size_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    const std::uint64_t at = info.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD) {
      low = std::min<std::uint64_t>(low, at / page_bytes * page_bytes);
      high = std::max<std::uint64_t>(high, at + segment.p_memsz);
    } else if (segment.p_type == PT_NOTE && build_id_bytes == 0) {
      read_build_id(mapped_at(at), segment.p_memsz, build_id, sizeof build_id, build_id_bytes);
    }
  }
  start = low;
  end = high;
  return low < high;
}

std::uint64_t ModuleDescription::file(const dl_phdr_info& info) const noexcept {
  std::uint64_t hash = hash_pair(end - start, start - base);
  hash = hash_bytes(hash_pair(hash, build_id_bytes), build_id, build_id_bytes);
  if (build_id_bytes != 0) return hash;
  hash = hash_bytes(hash, path.data(), path.size());
  for (std::size_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    hash = hash_bytes(hash, &segment, sizeof segment);
    if (segment.p_type == PT_GNU_EH_FRAME) {
      hash = hash_bytes(hash, mapped_at(info.dlpi_addr + segment.p_vaddr),
                        std::min<std::uint64_t>(segment.p_memsz, most_table_bytes));
    }
  }
  return hash;
}

std::uint64_t ModuleDescription::identity() const noexcept {
  const std::uint64_t hash = hash_bytes(hash_pair(base, build_id_bytes), build_id, sizeof build_id);
  return hash_bytes(hash, path.data(), path.size());
}

}  // namespace cuwarden::ledger
