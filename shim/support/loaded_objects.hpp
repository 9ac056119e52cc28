// The ELF objects of this process, read from memory: symbols without dlsym, which an interposer of
// dlsym must not need, and which would change the caller's dlerror().
#pragma once

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cuwarden::shim {

// A loaded library or program, as dl_iterate_phdr describes it. Converts to false if there is none.
class LoadedObject {
 public:
  // Nothing is copied: valid as long as the object stays loaded.
  LoadedObject() = default;
  explicit LoadedObject(const dl_phdr_info& info);

  explicit operator bool() const { return dynamic_ != nullptr; }
  std::uintptr_t base() const { return base_; }
  bool contains(std::uintptr_t address) const { return address >= start_ && address < end_; }
  std::uintptr_t start() const { return start_; }
  std::uintptr_t end() const { return end_; }

  // True if the object is the shim itself.
  bool is_shim() const;

  // Returns the path under which the object was loaded; empty for the main program.
  std::string_view path() const { return path_; }
  // Returns DT_SONAME; the last part of the path if the object has none.
  std::string_view soname() const;

  // Returns the address of an exported function in its default version; null if the object exports
  // none of this name.
  void* find(std::string_view symbol) const;

  // Calls visit(name) for each DT_NEEDED entry until it returns true; returns whether it did.
  template <class Visit>
  bool any_needed(Visit visit) const {
    for (const Elf64_Dyn* entry = dynamic_; entry != nullptr && entry->d_tag != DT_NULL; ++entry)
      if (entry->d_tag == DT_NEEDED && visit(std::string_view(strings_ + entry->d_un.d_val)))
        return true;
    return false;
  }

 private:
  const Elf64_Sym* find_by_gnu_hash(std::string_view) const;
  const Elf64_Sym* find_by_sysv_hash(std::string_view) const;
  bool matches(std::uint32_t index, std::string_view) const;

  std::uintptr_t base_ = 0, start_ = 0, end_ = 0;
  std::string_view path_;
  const Elf64_Dyn* dynamic_ = nullptr;
  const char* strings_ = nullptr;
  const Elf64_Sym* symbols_ = nullptr;
  const std::uint32_t* gnu_hash_ = nullptr;
  const std::uint32_t* sysv_hash_ = nullptr;
  const std::uint16_t* versions_ = nullptr;
};

namespace detail {
using VisitObject = bool (*)(const LoadedObject&, void*);
bool visit_loaded_objects(VisitObject, void*);
}  // namespace detail

// Calls visit(object) for each object of the main namespace, in load order, until it returns true;
// returns whether it did. The loader's list is locked meanwhile: `visit` must not call dl*.
template <class Visit>
bool any_loaded_object(Visit visit) {
  return detail::visit_loaded_objects(
      [](const LoadedObject& object, void* argument) {
        return static_cast<bool>((*static_cast<Visit*>(argument))(object));
      },
      &visit);
}

// Holds the loader's list still while `work` runs, so that no object that it looks at is unmapped.
// `work` may use any_loaded_object; it must not call dlopen or dlclose.
template <class Work>
void with_loaded_objects_held(Work work) {
  any_loaded_object([&](const LoadedObject&) {
    work();
    return true;
  });
}

// Returns the number of objects that the loader has unloaded since the process began.
std::uint64_t unloaded_objects();

// Stores the list of loaded objects; to be called before the program runs. In that order they are
// the global scope of every lookup.
void note_startup_objects();

// Calls visit(object) for each object of note_startup_objects() behind the shim, in order, until it
// returns true; returns whether it did. Without the shim, a call would reach the first of them that
// exports the function.
template <class Visit>
bool any_startup_object_behind_shim(Visit visit);

// Returns the object that contains this address; a false one if there is none.
LoadedObject object_at(std::uintptr_t address);

// Returns the object that a DT_NEEDED entry of this name was resolved to; a false one if there is
// none.
LoadedObject object_named(std::string_view name);

// Calls visit(object) for each object that `object` needs, directly or indirectly, breadth first as
// the loader searches them, until it returns true; returns whether it did.
template <class Visit>
bool any_object_needed_by(const LoadedObject& object, Visit visit);

// True if `soname` is `stem` or a version of it: "libcuda.so.1" for "libcuda.so".
bool is_library(std::string_view soname, std::string_view stem);

namespace detail {
std::size_t startup_object_count();
}

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
  constexpr std::size_t reach = 96;  // objects; bounds the memory on the stack (10 KiB)
  LoadedObject queue[reach];
  std::size_t queued = 0;
  queue[queued++] = object;
  for (std::size_t i = 0; i < queued; ++i) {
    const bool done = queue[i].any_needed([&](std::string_view name) {
      const LoadedObject next = object_named(name);
      if (!next || next.is_shim()) return false;
      for (std::size_t j = 0; j < queued; ++j)
        if (queue[j].base() == next.base()) return false;
      if (visit(next)) return true;
      if (queued < reach) queue[queued++] = next;
      return false;
    });
    if (done) return true;
  }
  return false;
}

}  // namespace cuwarden::shim
