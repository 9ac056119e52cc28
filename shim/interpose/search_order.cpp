// Derives each module's search order from the load order and the DT_NEEDED entries, because the
// loader's own lists of scopes are private to it.
#include "shim/interpose/search_order.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace cuwarden::shim {
namespace {

// A library that the program opened with RTLD_GLOBAL or RTLD_DEEPBIND.
struct OpenedLibrary {
  static constexpr std::size_t path_limit = 512;  // bytes, with the final zero
  char path[path_limit];
  bool global, deep;
  // Lowest address of the object that was loaded last before the library was opened.
  std::uintptr_t last_before;
  std::atomic<bool> ready;
};
constinit OpenedLibrary opened_libraries[64]{};
constinit std::atomic<std::size_t> used_entries{0};

// True if the loader would have found this object for dlopen(path). A path without a slash is
// searched in folders, and may be a link such as libcudart.so to libcudart.so.13.
bool is_opened_as(const LoadedObject& object, std::string_view path) {
  if (path.find('/') != std::string_view::npos) return object.path() == path;
  return is_library(object.soname(), path) ||
         object.path().substr(object.path().rfind('/') + 1) == path;
}

template <class Visit>
bool any_opened_library(Visit visit) {
  for (const OpenedLibrary& opened : opened_libraries)
    if (opened.ready.load(std::memory_order_acquire) && visit(opened)) return true;
  return false;
}

LoadedObject last_loaded() {
  LoadedObject last;
  any_loaded_object([&](const LoadedObject& object) {
    last = object;
    return false;
  });
  return last;
}

// Returns the library whose dlopen loaded `module`. It is the first in load order that needs the
// module, directly or through other libraries, since an earlier one would have loaded the module
// itself. `module` is not one of the objects loaded at startup.
LoadedObject opened_for(const LoadedObject& module) {
  constexpr std::size_t reach = 96;  // objects; bounds the memory on the stack (11 KiB)
  struct Dependent {
    LoadedObject object;
    std::string_view soname;
  } dependents[reach];
  std::size_t count = 0;
  dependents[count++] = {module, module.soname()};
  const auto is_dependent = [&](const LoadedObject& object) {
    for (std::size_t i = 0; i < count; ++i)
      if (dependents[i].object.start() == object.start()) return true;
    return false;
  };
  const auto needs_dependent = [&](const LoadedObject& object) {
    return object.any_needed([&](std::string_view name) {
      for (std::size_t i = 0; i < count; ++i)
        if (dependents[i].soname == name || dependents[i].object.path() == name) return true;
      return false;
    });
  };
  for (std::size_t before = 0; before != count && count < reach;) {
    before = count;
    std::size_t index = 0;
    any_loaded_object([&](const LoadedObject& object) {
      if (index++ < detail::startup_object_count()) return false;
      if (!is_dependent(object) && needs_dependent(object))
        dependents[count++] = {object, object.soname()};
      return count == reach;
    });
  }
  LoadedObject first;
  any_loaded_object([&](const LoadedObject& object) {
    if (!is_dependent(object)) return false;
    first = object;
    return true;
  });
  return first;
}

// True if the object was loaded when or after the library was opened. The loader binds most
// libraries when it loads them, so libraries that are opened later do not count for them. If the
// object that was last before is gone, the answer is true.
bool is_loaded_with_or_after(const LoadedObject& wanted, const OpenedLibrary& opened) {
  bool behind_wanted = false, before = false;
  any_loaded_object([&](const LoadedObject& object) {
    behind_wanted = behind_wanted || object.start() == wanted.start();
    before = behind_wanted && object.start() == opened.last_before;
    return before;
  });
  return !before;
}

template <class Visit>
bool any_object_of_scope(const LoadedObject& root, Visit visit) {
  return visit(root) || any_object_needed_by(root, visit);
}

// Visits what dlopen has added to the global scope.
template <class Visit>
bool any_object_made_global(const LoadedObject& caller, bool at_startup, Visit visit) {
  return any_opened_library([&](const OpenedLibrary& opened) {
    if (!opened.global) return false;
    if (caller && !at_startup && !is_loaded_with_or_after(caller, opened)) return false;
    LoadedObject library;
    any_loaded_object([&](const LoadedObject& object) {
      if (!is_opened_as(object, opened.path)) return false;
      library = object;
      return true;
    });
    return library && any_object_of_scope(library, visit);
  });
}

bool is_opened_deep(const LoadedObject& root) {
  return any_opened_library(
      [&](const OpenedLibrary& opened) { return opened.deep && is_opened_as(root, opened.path); });
}

}  // namespace

bool is_startup_object(const LoadedObject& wanted) {
  std::size_t index = 0;
  return any_loaded_object([&](const LoadedObject& object) {
           return object.start() == wanted.start() || ++index >= detail::startup_object_count();
         }) &&
         index < detail::startup_object_count();
}

void note_dlopen(const char* path, int mode) noexcept {
  const bool global = (mode & RTLD_GLOBAL) != 0;
  const bool deep = (mode & RTLD_DEEPBIND) != 0;
  if ((!global && !deep) || path == nullptr || path[0] == '\0') return;
  const std::size_t length = std::strlen(path);
  if (length >= OpenedLibrary::path_limit) return;
  const bool known = any_opened_library([&](const OpenedLibrary& opened) {
    return std::strcmp(opened.path, path) == 0 && opened.global == global && opened.deep == deep;
  });
  if (known) return;
  const std::size_t index = used_entries.fetch_add(1, std::memory_order_relaxed);
  if (index >= std::size(opened_libraries)) {
    used_entries.store(std::size(opened_libraries), std::memory_order_relaxed);
    return;
  }
  OpenedLibrary& opened = opened_libraries[index];
  std::memcpy(opened.path, path, length + 1);
  opened.global = global;
  opened.deep = deep;
  opened.last_before = last_loaded().start();
  opened.ready.store(true, std::memory_order_release);
}

bool detail::visit_objects_searched_for(const LoadedObject& caller, VisitSearched visit,
                                        void* argument) {
  const auto visit_in = [&](Scope scope) {
    return [visit, argument, scope](const LoadedObject& object) {
      return !object.is_shim() && visit(object, scope, argument);
    };
  };
  const bool at_startup = caller && is_startup_object(caller);
  const LoadedObject root = caller && !at_startup ? opened_for(caller) : LoadedObject();
  const bool local_first = root && is_opened_deep(root);
  if (local_first && any_object_of_scope(root, visit_in(Scope::local))) return true;
  if (any_startup_object_behind_shim(visit_in(Scope::startup))) return true;
  if (any_object_made_global(caller, at_startup, visit_in(Scope::made_global))) return true;
  return root && !local_first && any_object_of_scope(root, visit_in(Scope::local));
}

bool detail::visit_objects_searched_behind(const LoadedObject& caller, VisitSearched visit,
                                           void* argument) {
  if (!caller) return false;
  const Scope scope = is_startup_object(caller) ? Scope::startup : Scope::local;
  bool behind = false;
  const auto visit_object = [&](const LoadedObject& object) {
    if (behind) return !object.is_shim() && visit(object, scope, argument);
    behind = object.start() == caller.start();
    return false;
  };
  return scope == Scope::startup ? any_startup_object_behind_shim(visit_object)
                                 : any_object_of_scope(opened_for(caller), visit_object);
}

}  // namespace cuwarden::shim
