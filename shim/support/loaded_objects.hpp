// The ELF objects (the program and its libraries) that are loaded into this process. Their symbols
// are looked up in memory, without dlsym: the shim hooks dlsym itself, and dlsym would change the
// program's dlerror().
#pragma once

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cuwarden::shim {

// A loaded ELF object: a library or the main program, as dl_iterate_phdr describes it. A
// default-constructed LoadedObject means "no object", and converts to false. Points into the
// object's memory, so it is valid only as long as the object stays loaded.
class LoadedObject {
 public:
  // Makes a LoadedObject that means "no object" and converts to false.
  LoadedObject() = default;
  // Reads the object's dynamic section in memory. `info`: argument of a callback of
  // dl_iterate_phdr; not kept.
  explicit LoadedObject(const dl_phdr_info& info);

  // False if this means "no object", or if the object has no dynamic symbol table.
  explicit operator bool() const { return dynamic_ != nullptr; }
  // Returns the load bias: the number that is added to an address in the ELF file to get the
  // address in memory.
  std::uintptr_t base() const { return base_; }
  // True if the address lies between the object's lowest and its highest mapped address.
  bool contains(std::uintptr_t address) const { return address >= start_ && address < end_; }
  // Returns the lowest address in memory of the object's segments.
  std::uintptr_t start() const { return start_; }
  // Returns the address in memory behind the last byte of the object's segments.
  std::uintptr_t end() const { return end_; }

  // True if the object is the shim (the shared object that cuwarden preloads, with this code).
  bool is_shim() const;

  // Returns the path under which the object was loaded; empty for the main program.
  std::string_view path() const { return path_; }
  // Returns the object's DT_SONAME, such as libcuda.so.1; the last part of path() if it has none.
  std::string_view soname() const;

  // Returns the address of the function that the object exports under this name, in its default
  // symbol version; null if there is none. Indirect functions (IFUNC) are not found.
  void* find(std::string_view symbol) const;

  // A symbol that the object exports: its address in memory, null if there is none; and its size.
  struct Exported {
    void* address = nullptr;
    std::size_t bytes = 0;
  };
  // Returns the function or variable that the object exports under this name, in its default symbol
  // version.
  Exported find_any(std::string_view symbol) const;

  // Calls visit(name) for the name of each symbol that the object uses from other objects: those of
  // its relocations that it does not define. Some names are visited several times. Stops once a
  // call returns true. Returns true if a call did.
  template <class Visit>
  bool any_undefined(Visit visit) const {
    for (const auto& table : {calls_, others_})
      for (const Elf64_Rela& each : table) {
        const Elf64_Sym& symbol = symbols_[ELF64_R_SYM(each.r_info)];
        if (symbol.st_name != 0 && symbol.st_shndx == SHN_UNDEF &&
            visit(std::string_view(strings_ + symbol.st_name)))
          return true;
      }
    return false;
  }

  // Calls visit(name) for the name of each library that the object was linked with (DT_NEEDED),
  // until a call returns true. Returns true if one did.
  template <class Visit>
  bool any_needed(Visit visit) const {
    for (const Elf64_Dyn* entry = dynamic_; entry != nullptr && entry->d_tag != DT_NULL; ++entry)
      if (entry->d_tag == DT_NEEDED && visit(std::string_view(strings_ + entry->d_un.d_val)))
        return true;
    return false;
  }

 private:
  // Returns the exported function or variable of this name, in its default version; null if there
  // is none.
  const Elf64_Sym* symbol(std::string_view name) const;
  // Returns the exported function or variable of this name by the object's table DT_GNU_HASH, which
  // must not be null; null if there is none.
  const Elf64_Sym* find_by_gnu_hash(std::string_view) const;
  // Returns the exported function or variable of this name by the object's table DT_HASH, which
  // must not be null; null if there is none.
  const Elf64_Sym* find_by_sysv_hash(std::string_view) const;
  // True if entry `index` of the object's dynamic symbol table is an exported function or variable
  // of this name, in its default version.
  bool matches(std::uint32_t index, std::string_view) const;

  std::uintptr_t base_ = 0;  // load bias: address in memory less address in the ELF file
  // Lowest address of the object's segments, and the address behind their last byte.
  std::uintptr_t start_ = 0, end_ = 0;
  // Path under which the object was loaded; empty for the main program.
  std::string_view path_;
  // The object's dynamic section in memory; null if the object has no dynamic symbol table.
  const Elf64_Dyn* dynamic_ = nullptr;
  // Names of the object's symbols and libraries (DT_STRTAB); null if it has none.
  const char* strings_ = nullptr;
  // The object's dynamic symbol table (DT_SYMTAB); null if it has none.
  const Elf64_Sym* symbols_ = nullptr;
  // Hash table of the symbols (DT_GNU_HASH); null if the object has none.
  const std::uint32_t* gnu_hash_ = nullptr;
  // Older hash table of the symbols (DT_HASH); null if the object has none.
  const std::uint32_t* sysv_hash_ = nullptr;
  // Version of each symbol (DT_VERSYM); null if the object has no versions.
  const std::uint16_t* versions_ = nullptr;
  // Relocations of the object's procedure linkage table (DT_JMPREL); empty if it has none.
  std::span<const Elf64_Rela> calls_;
  // Relocations of the object's table DT_RELA that name a symbol; empty if there are none.
  std::span<const Elf64_Rela> others_;
};

namespace detail {
// Function that is called for one loaded object. `void*`: the argument of visit_loaded_objects().
// Returns true if no further object is to be visited.
using VisitObject = bool (*)(const LoadedObject&, void*);
// Calls VisitObject(object, argument) for each loaded object of the shim's linker namespace, in
// load order, until a call returns true. Returns true if one did. The `void*` is the `argument` of
// all calls. The loader's list of objects is locked during the call.
bool visit_loaded_objects(VisitObject, void*);
}  // namespace detail

// Calls visit(object) for each loaded object of the shim's linker namespace, in load order, until a
// call returns true. Returns true if one did. The loader's list of objects is locked during the
// call, so `visit` must not call dlopen, dlsym or dlclose. The calling thread's signals are held
// back meanwhile (HeldSignals), unless a seccomp filter confines the thread.
template <class Visit>
bool any_loaded_object(Visit visit) {
  return detail::visit_loaded_objects(
      [](const LoadedObject& object, void* argument) {
        return static_cast<bool>((*static_cast<Visit*>(argument))(object));
      },
      &visit);
}

// Calls work() with the loader's list of objects locked, so that no object is unmapped before
// work() returns. `work` may use any_loaded_object(). It must not call dlopen, dlsym or dlclose.
template <class Work>
void with_loaded_objects_held(Work work) {
  any_loaded_object([&](const LoadedObject&) {
    work();
    return true;
  });
}

// Returns the number of objects that the loader has loaded since the process began. A change tells
// that there may be a new object.
std::uint64_t loads_so_far();
// Returns the number of objects that the loader has unloaded since the process began. A change
// tells that a dlclose has unmapped a library.
std::uint64_t unloaded_objects();

// Makes each fork() wait until no thread walks over the loaded objects (LoaderWalks). To be called
// once, by the shim's constructor: handlers of the program that run before a fork then run before
// this wait.
void keep_walks_and_forks_apart();

// Stores the number of objects that are loaded now, for any_startup_object_behind_shim(). To be
// called by the shim's constructor, before the program runs. The objects loaded by then are the
// first in load order, and the loader searches them before all others.
void note_startup_objects();

// Calls visit(object) for each object that was loaded before the program ran and that the loader
// searches after the shim, in the loader's order, until a call returns true. Returns true if one
// did. Without the shim, a call of a function would reach the first of these objects that exports
// the function.
template <class Visit>
bool any_startup_object_behind_shim(Visit visit);

// Returns the loaded object whose range of mapped addresses contains `address`; a LoadedObject that
// converts to false if there is none.
LoadedObject object_at(std::uintptr_t address);

// Returns the loaded object whose soname or path is `name`, such as libcuda.so.1: the library to
// which the loader has resolved a DT_NEEDED entry of that name. Returns a LoadedObject that
// converts to false if there is none.
LoadedObject object_named(std::string_view name);

// Calls visit(other) for each library that `object` needs (DT_NEEDED), directly or through another
// library, until a call returns true. Returns true if one did. The order is breadth first, as in
// the loader's own search. The shim is left out, and the needs of at most 1,024 objects (`object`
// and 1,023 libraries) are followed.
template <class Visit>
bool any_object_needed_by(const LoadedObject& object, Visit visit);

// Calls visit(other) for each object that needs `object` (DT_NEEDED), directly or through another
// one, until a call returns true. Returns true if one did. Visits 64 objects at most, in no order.
template <class Visit>
bool any_object_that_needs(const LoadedObject& object, Visit visit);

// True if `soname` is `stem`, or `stem` followed by a dot and a version. Example: soname
// "libcuda.so.1" and stem "libcuda.so".
bool is_library(std::string_view soname, std::string_view stem);

namespace detail {
// Returns the number of objects that were loaded before the program ran, as note_startup_objects()
// counted them; SIZE_MAX if the shim's constructor has not run yet.
std::size_t startup_object_count();
// Returns the object's index, from 0, among the objects that are loaded now, in load order. If the
// object is not loaded, returns the number of loaded objects.
std::size_t position_of(const LoadedObject&);
// Returns the loaded object with this index, from 0, in load order. If fewer objects are loaded,
// returns one that converts to false.
LoadedObject object_in_position(std::size_t position);
}  // namespace detail

template <class Visit>
bool any_startup_object_behind_shim(Visit visit) {
  const std::size_t limit = detail::startup_object_count();
  std::size_t index = 0;
  bool behind = false;
  bool found = false;
  any_loaded_object([&](const LoadedObject& object) {
    if (index++ >= limit) return true;
    if (behind) return found = static_cast<bool>(visit(object));
    behind = object.is_shim();
    return false;
  });
  return found;
}

template <class Visit>
bool any_object_needed_by(const LoadedObject& object, Visit visit) {
  // Most objects whose needed libraries are followed, `object` included. Libraries beyond them are
  // visited, perhaps more than once, but what they need is not looked at.
  constexpr std::size_t reach = 1024;
  // Indexes, in load order, of the objects whose needed libraries are looked at. The array takes
  // 2 KiB of the stack, which may be small.
  std::uint16_t queue[reach];
  std::size_t queued = 0;
  queue[queued++] = static_cast<std::uint16_t>(detail::position_of(object));
  for (std::size_t i = 0; i < queued; ++i) {
    const LoadedObject present = i == 0 ? object : detail::object_in_position(queue[i]);
    const bool done = present.any_needed([&](std::string_view name) {
      const LoadedObject next = object_named(name);
      if (!next || next.is_shim()) return false;
      const std::size_t position = detail::position_of(next);
      for (std::size_t j = 0; j < queued; ++j)
        if (queue[j] == position) return false;
      if (visit(next)) return true;
      if (queued < reach && position <= UINT16_MAX)
        queue[queued++] = static_cast<std::uint16_t>(position);
      return false;
    });
    if (done) return true;
  }
  return false;
}

template <class Visit>
bool any_object_that_needs(const LoadedObject& object, Visit visit) {
  // Most objects in `met`: `object`, and 64 objects that need it. `met` takes 3 KiB of the stack.
  constexpr std::size_t reach = 65;
  struct {
    std::uintptr_t start;
    std::string_view soname, path;
  } met[reach];
  std::size_t count = 0;
  const auto meet = [&](const LoadedObject& other) {
    met[count++] = {other.start(), other.soname(), other.path()};
  };
  meet(object);
  bool done = false;
  for (std::size_t before = 0; !done && before != count && count < reach;) {
    before = count;
    any_loaded_object([&](const LoadedObject& other) {
      for (std::size_t i = 0; i < count; ++i)
        if (met[i].start == other.start()) return false;
      const bool needs_one = other.any_needed([&](std::string_view name) {
        for (std::size_t i = 0; i < count; ++i)
          if (met[i].soname == name || met[i].path == name) return true;
        return false;
      });
      if (!needs_one) return false;
      meet(other);
      done = static_cast<bool>(visit(other));
      return done || count == reach;
    });
  }
  return done;
}

}  // namespace cuwarden::shim
