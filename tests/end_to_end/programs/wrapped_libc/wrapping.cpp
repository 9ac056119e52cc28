// Wraps every function of libc that the shim imports, as programs and preloaded libraries wrap some
// of them: the function behind the wrapper is looked up by dlsym(RTLD_NEXT) at the first call. A
// call that comes from the shim ends the process with status 99 and the function's name.
//
// This file calls dlsym only, since any other function that it called would be wrapped, too.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/syscall.h>

#include <cstdint>

#include "tests/end_to_end/programs/raw_syscall.hpp"

extern "C" const char wrapped_names[];  // each with its zero; an empty one at the end

namespace {

constexpr int most_functions = 1024;
void* known[most_functions];
std::uintptr_t shim_start = 0, shim_end = 0;

long length_of(const char* text) {
  long length = 0;
  while (text[length] != '\0') ++length;
  return length;
}

void say(const char* text) {
  raw_syscall(SYS_write, 2, reinterpret_cast<long>(text), length_of(text));
}

bool ends_with(const char* text, const char* end) {
  const long extra = length_of(text) - length_of(end);
  if (extra < 0) return false;
  for (long i = 0; end[i] != '\0'; ++i)
    if (text[extra + i] != end[i]) return false;
  return true;
}

void find_shim() {
  for (const link_map* object = _r_debug.r_map; object != nullptr; object = object->l_next) {
    if (!ends_with(object->l_name, "/libcuwarden.so")) continue;
    const auto& file = *reinterpret_cast<const Elf64_Ehdr*>(object->l_addr);
    const auto* headers = reinterpret_cast<const Elf64_Phdr*>(object->l_addr + file.e_phoff);
    for (int i = 0; i < file.e_phnum; ++i)
      if (headers[i].p_type == PT_LOAD)
        shim_end = object->l_addr + headers[i].p_vaddr + headers[i].p_memsz;
    shim_start = object->l_addr;
  }
}

const char* name_at(long index) {
  const char* name = wrapped_names;
  for (; index > 0; --index) name += length_of(name) + 1;
  return name;
}

[[noreturn]] void end(const char* what, const char* name) {
  say(what);
  say(name);
  say("\n");
  raw_syscall(SYS_exit_group, 99, 0, 0);
  __builtin_unreachable();
}

}  // namespace

extern "C" [[gnu::visibility("hidden")]] void* next_definition(long index, std::uintptr_t caller) {
  if (shim_end == 0) find_shim();
  if (caller >= shim_start && caller < shim_end) end("the shim called ", name_at(index));
  if (known[index] == nullptr) known[index] = dlsym(RTLD_NEXT, name_at(index));
  if (known[index] == nullptr) end("nothing is behind ", name_at(index));
  return known[index];
}
