// Replaces functions of libc for the shim alone, or for the simulated driver alone. A wrapper of
// such a function would not be called by the shim, which calls libc's own functions, and would be
// called by the program, too. So the library's global offset table is changed.
#pragma once

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

// Redirects calls that a library makes of the imported function `name` to `replacement`. `file`:
// name of the library's file, without folders. Returns false if no such library is loaded; ends the
// process if the library has no such import.
inline bool replace_import(std::string_view file, std::string_view name, void* replacement) {
  for (const link_map* object = _r_debug.r_map; object != nullptr; object = object->l_next) {
    const std::string_view path = object->l_name;
    if (path.substr(path.rfind('/') + 1) != file) continue;
    const auto entry = [&](Elf64_Sxword tag) {
      const Elf64_Dyn* at = object->l_ld;
      while (at->d_tag != tag && at->d_tag != DT_NULL) ++at;
      return at->d_un.d_ptr;
    };
    const auto* const symbols = reinterpret_cast<const Elf64_Sym*>(entry(DT_SYMTAB));
    const auto* const names = reinterpret_cast<const char*>(entry(DT_STRTAB));
    const auto* relocation = reinterpret_cast<const Elf64_Rela*>(entry(DT_JMPREL));
    const auto* const end = relocation + entry(DT_PLTRELSZ) / sizeof(Elf64_Rela);
    for (; relocation != end; ++relocation) {
      if (names + symbols[ELF64_R_SYM(relocation->r_info)].st_name != name) continue;
      const std::uintptr_t slot = object->l_addr + relocation->r_offset;
      const auto page_bytes = static_cast<std::uintptr_t>(getpagesize());
      // The table is read-only once the shim is relocated.
      void* const page = reinterpret_cast<void*>(slot & ~(page_bytes - 1));
      if (mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) std::abort();
      *reinterpret_cast<void**>(slot) = replacement;
      return true;
    }
    std::fprintf(stderr, "%.*s does not import %.*s\n", static_cast<int>(file.size()), file.data(),
                 static_cast<int>(name.size()), name.data());
    std::abort();
  }
  return false;
}

// Redirects the shim's calls of the imported function `name` to `replacement`. Returns false if no
// shim is loaded; ends the process if the shim has no such import.
inline bool replace_import_of_shim(std::string_view name, void* replacement) {
  return replace_import("libcuwarden.so", name, replacement);
}

// Redirects the simulated driver's calls of the imported function `name` to `replacement`. Returns
// false if no driver is loaded; ends the process if the driver has no such import, as a real one.
inline bool replace_import_of_driver(std::string_view name, void* replacement) {
  return replace_import("libcuda.so.1", name, replacement);
}
