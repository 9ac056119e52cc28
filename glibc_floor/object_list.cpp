#include "glibc_floor/object_list.hpp"

#include <link.h>

#include <cstdint>
#include <cstring>

namespace cuwarden {

int find_in_object_list(void* address, dl_find_object* result) noexcept {
  struct Search {
    std::uintptr_t address;
    dl_find_object* result;
  } search{reinterpret_cast<std::uintptr_t>(address), result};
  const int found = dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        std::uintptr_t start = ~std::uintptr_t{0}, end = 0, unwind_table = 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& header = info->dlpi_phdr[i];
          const std::uintptr_t at = info->dlpi_addr + header.p_vaddr;
          if (header.p_type == PT_GNU_EH_FRAME) unwind_table = at;
          if (header.p_type != PT_LOAD) continue;
          if (at < start) start = at;
          if (at + header.p_memsz > end) end = at + header.p_memsz;
        }
        if (wanted.address < start || wanted.address >= end) return 0;
        if (unwind_table == 0) return -1;
        std::memset(wanted.result, 0, sizeof *wanted.result);
        wanted.result->dlfo_map_start = reinterpret_cast<void*>(start);
        wanted.result->dlfo_map_end = reinterpret_cast<void*>(end);
        wanted.result->dlfo_eh_frame = reinterpret_cast<void*>(unwind_table);
        return 1;
      },
      &search);
  return found == 1 ? 0 : -1;
}

}  // namespace cuwarden
