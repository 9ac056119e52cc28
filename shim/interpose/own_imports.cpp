// Rewrites the shim's own global offset table. An IFUNC resolver does it: the loader runs resolvers
// after the shim's other relocations, and before the table becomes read-only.
//
// The loader has bound each import already, perhaps to an interceptor. So nothing in this file
// calls a function of another object, and the file is compiled without calls that the compiler
// makes up (memcpy, strlen, the stack protector).
#include "shim/interpose/own_imports.hpp"

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>

extern "C" void* __libc_stack_end;  // defined by the loader; no header declares it

namespace cuwarden::shim {
namespace {

// A symbol's version: its library, its name, and the hash of the name.
struct Version {
  const char* library = nullptr;
  const char* name = nullptr;
  std::uint32_t hash = 0;
};

bool equal(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

std::uint32_t gnu_hash_of(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

// Tables of an object, found through its dynamic section.
class Tables {
 public:
  Tables() = default;
  Tables(std::uintptr_t base, const Elf64_Dyn* dynamic) : base_(base), dynamic_(dynamic) {}

  explicit operator bool() const { return dynamic_ != nullptr; }
  std::uintptr_t base() const { return base_; }

  // Returns the number in the entry with this tag; 0 if there is no such entry.
  std::uint64_t number(Elf64_Sxword tag) const {
    for (const Elf64_Dyn* entry = dynamic_; entry->d_tag != DT_NULL; ++entry)
      if (entry->d_tag == tag) return entry->d_un.d_val;
    return 0;
  }

  // Returns the table in the entry with this tag; null if there is no such entry. The loader has
  // already made most of these addresses absolute.
  template <class Entry>
  const Entry* table(Elf64_Sxword tag) const {
    const std::uint64_t value = number(tag);
    if (value == 0) return nullptr;
    return reinterpret_cast<const Entry*>(value < base_ ? base_ + value : value);
  }

  const char* soname() const {
    const std::uint64_t at = number(DT_SONAME);
    return at == 0 ? "" : table<char>(DT_STRTAB) + at;
  }

 private:
  std::uintptr_t base_ = 0;
  const Elf64_Dyn* dynamic_ = nullptr;
};

template <class Entry, class From>
const Entry* behind(const From* entry, std::size_t bytes) {
  return reinterpret_cast<const Entry*>(reinterpret_cast<const char*>(entry) + bytes);
}

// Functions of one library, which can be found by name and version.
class Exports {
 public:
  explicit Exports(const Tables& library)
      : base_(library.base()),
        strings_(library.table<char>(DT_STRTAB)),
        symbols_(library.table<Elf64_Sym>(DT_SYMTAB)),
        hash_(library.table<std::uint32_t>(DT_GNU_HASH)),
        versions_(library.table<std::uint16_t>(DT_VERSYM)),
        definitions_(library.table<Elf64_Verdef>(DT_VERDEF)) {}

  // Returns null if the library has no such function.
  void* find(const char* name, const Version& version) const {
    if (hash_ == nullptr || versions_ == nullptr || definitions_ == nullptr) return nullptr;
    const std::uint32_t bucket_count = hash_[0], first_hashed = hash_[1], filter_words = hash_[2];
    if (bucket_count == 0) return nullptr;
    const std::uint32_t* const buckets = hash_ + 4 + std::size_t{filter_words} * 2;
    const std::uint32_t* const chain = buckets + bucket_count;
    const std::uint32_t hash = gnu_hash_of(name);
    std::uint32_t index = buckets[hash % bucket_count];
    if (index < first_hashed) return nullptr;
    for (;; ++index) {
      const std::uint32_t entry = chain[index - first_hashed];
      if ((entry | 1) == (hash | 1))
        if (void* const function = function_at(index, name, version)) return function;
      if ((entry & 1) != 0) return nullptr;
    }
  }

 private:
  void* function_at(std::uint32_t index, const char* name, const Version& version) const {
    const Elf64_Sym& symbol = symbols_[index];
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC) ||
        !equal(strings_ + symbol.st_name, name) || !is_of(versions_[index], version))
      return nullptr;
    void* const address = reinterpret_cast<void*>(base_ + symbol.st_value);
    // libc chooses among several forms of the function. The library was relocated before the shim.
    return type == STT_FUNC ? address : reinterpret_cast<void* (*)()>(address)();
  }

  bool is_of(std::uint16_t number, const Version& version) const {
    constexpr std::uint16_t hidden = 0x8000;  // not the default version of its name
    for (const Elf64_Verdef* definition = definitions_;;
         definition = behind<Elf64_Verdef>(definition, definition->vd_next)) {
      if (definition->vd_ndx == (number & ~hidden) && definition->vd_hash == version.hash) {
        const auto* const own = behind<Elf64_Verdaux>(definition, definition->vd_aux);
        return equal(strings_ + own->vda_name, version.name);
      }
      if (definition->vd_next == 0) return false;
    }
  }

  std::uintptr_t base_;
  const char* strings_;
  const Elf64_Sym* symbols_;
  const std::uint32_t* hash_;
  const std::uint16_t* versions_;
  const Elf64_Verdef* definitions_;
};

class Imports {
 public:
  // `objects`: the loader's list.
  Imports(const Tables& shim, const link_map* objects)
      : shim_(shim),
        objects_(objects),
        strings_(shim.table<char>(DT_STRTAB)),
        symbols_(shim.table<Elf64_Sym>(DT_SYMTAB)),
        versions_(shim.table<std::uint16_t>(DT_VERSYM)),
        needed_(shim.table<Elf64_Verneed>(DT_VERNEED)) {}

  void bind() const {
    if (versions_ == nullptr || needed_ == nullptr) return;
    bind_all(shim_.table<Elf64_Rela>(DT_RELA), shim_.number(DT_RELASZ));
    bind_all(shim_.table<Elf64_Rela>(DT_JMPREL), shim_.number(DT_PLTRELSZ));
  }

 private:
  void bind_all(const Elf64_Rela* relocations, std::uint64_t bytes) const {
    for (std::size_t i = 0; i < bytes / sizeof(Elf64_Rela); ++i) bind_one(relocations[i]);
  }

  // Data symbols stay as the loader bound them: the program's copy of environ or stderr is the
  // valid one.
  void bind_one(const Elf64_Rela& relocation) const {
    const std::uint64_t type = ELF64_R_TYPE(relocation.r_info);
    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && type != R_X86_64_64) return;
    const std::size_t index = ELF64_R_SYM(relocation.r_info);
    const Elf64_Sym& symbol = symbols_[index];
    if (symbol.st_shndx != SHN_UNDEF) return;
    const Version version = version_of(versions_[index]);
    if (version.library == nullptr) return;
    void* const function = function_of(strings_ + symbol.st_name, version);
    if (function == nullptr) return;
    const std::uint64_t addend =
        type == R_X86_64_64 ? static_cast<std::uint64_t>(relocation.r_addend) : 0;
    *reinterpret_cast<std::uint64_t*>(shim_.base() + relocation.r_offset) =
        reinterpret_cast<std::uint64_t>(function) + addend;
  }

  Version version_of(std::uint16_t number) const {
    for (const Elf64_Verneed* file = needed_;; file = behind<Elf64_Verneed>(file, file->vn_next)) {
      const auto* entry = behind<Elf64_Vernaux>(file, file->vn_aux);
      for (unsigned i = 0; i < file->vn_cnt;
           ++i, entry = behind<Elf64_Vernaux>(entry, entry->vna_next))
        if (entry->vna_other == number)
          return {strings_ + file->vn_file, strings_ + entry->vna_name, entry->vna_hash};
      if (file->vn_next == 0) return {};
    }
  }

  void* function_of(const char* name, const Version& version) const {
    for (const link_map* object = objects_; object != nullptr; object = object->l_next) {
      const Tables tables(object->l_addr, object->l_ld);
      if (tables && equal(tables.soname(), version.library))
        return Exports(tables).find(name, version);
    }
    return nullptr;
  }

  Tables shim_;
  const link_map* objects_;
  const char* strings_;
  const Elf64_Sym* symbols_;
  const std::uint16_t* versions_;
  const Elf64_Verneed* needed_;
};

// Returns the main program's dynamic section; null if it is not found. The kernel put arguments,
// environment and auxiliary vector on the stack, and the vector has the address of the program's
// headers.
const Elf64_Dyn* dynamic_of_program() {
  if (__libc_stack_end == nullptr) return nullptr;
  const auto* word = static_cast<const std::uint64_t*>(__libc_stack_end);
  word += *word + 2;          // number of arguments, the arguments, a null
  while (*word != 0) ++word;  // the environment
  const Elf64_Phdr* headers = nullptr;
  std::uint64_t count = 0;
  for (const auto* entry = reinterpret_cast<const Elf64_auxv_t*>(word + 1);
       entry->a_type != AT_NULL; ++entry) {
    if (entry->a_type == AT_PHDR) headers = reinterpret_cast<const Elf64_Phdr*>(entry->a_un.a_val);
    if (entry->a_type == AT_PHNUM) count = entry->a_un.a_val;
  }
  if (headers == nullptr) return nullptr;
  std::uintptr_t base = 0;
  const Elf64_Phdr* dynamic = nullptr;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (headers[i].p_type == PT_PHDR)
      base = reinterpret_cast<std::uintptr_t>(headers) - headers[i].p_vaddr;
    if (headers[i].p_type == PT_DYNAMIC) dynamic = &headers[i];
  }
  return dynamic == nullptr ? nullptr : reinterpret_cast<const Elf64_Dyn*>(base + dynamic->p_vaddr);
}

// Returns the loader's list of objects. A program that refers to _r_debug may have a copy of it,
// which is still empty while the shim is relocated. The program's DT_DEBUG entry has the address of
// the loader's own list.
const link_map* first_object() {
  if (_r_debug.r_map != nullptr) return _r_debug.r_map;
  const Elf64_Dyn* const dynamic = dynamic_of_program();
  if (dynamic == nullptr) return nullptr;
  const auto* const known = reinterpret_cast<const r_debug*>(Tables(0, dynamic).number(DT_DEBUG));
  return known == nullptr ? nullptr : known->r_map;
}

bool yes() { return true; }
bool no() { return false; }

}  // namespace

extern "C" {

[[gnu::used, gnu::visibility("hidden")]] bool (*cuwarden_bind_imports())() {
  const link_map* const objects = first_object();
  for (const link_map* object = objects; object != nullptr; object = object->l_next) {
    if (object->l_ld != _DYNAMIC) continue;
    Imports(Tables(object->l_addr, object->l_ld), objects).bind();
    return yes;
  }
  return no;
}

[[gnu::ifunc("cuwarden_bind_imports"), gnu::visibility("hidden")]] bool cuwarden_imports_bound();

}  // extern "C"

bool imports_are_libcs_own() { return cuwarden_imports_bound(); }

}  // namespace cuwarden::shim
