// The ELF objects of this process, read from memory: symbols without dlsym, which an interposer of
// dlsym must not need, and which would change the caller's dlerror().
#pragma once

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <string_view>

namespace cuwarden::shim {

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

  // As loaded; empty for the main program.
  std::string_view path() const { return path_; }
  // DT_SONAME, or the last part of the path.
  std::string_view soname() const;

  // The address of an exported function in its default version; null where there is none.
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

// Whether `soname` is `stem` or a version of it: "libcuda.so.1" for "libcuda.so".
bool is_library(std::string_view soname, std::string_view stem);

}  // namespace cuwarden::shim
