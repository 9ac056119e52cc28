// The order in which the loader would search the loaded objects for a function that a module calls
// by name, if the shim were not preloaded. First come the objects of the global scope: those that
// were loaded with the program, then those that a dlopen opened with RTLD_GLOBAL. Then comes the
// module's local scope: the library whose dlopen loaded the module, and the libraries that this
// library needs. After RTLD_DEEPBIND the local scope comes first.
#pragma once

#include <cstddef>

#include "shim/support/loaded_objects.hpp"

namespace cuwarden::shim {

// Stores that the program opens this library with RTLD_GLOBAL or RTLD_DEEPBIND, since the loader
// does not tell that later. To be called before libc's dlopen, with the program's `path` and
// `mode`. Does nothing for other modes. Keeps 64 paths of up to 511 bytes and drops more.
void note_dlopen(const char* path, int mode) noexcept;

// The part of the search order in which an object is found: loaded with the program, opened with
// RTLD_GLOBAL or needed by such a library, or in the module's local scope.
enum class Scope { startup, made_global, local };

// Calls visit(object, scope) for each object that the loader searches for the module `caller`, in
// its order, until a call returns true. Returns true if one did. Visits an object again if it is in
// several scopes, and never the shim. `caller`: the module; one that converts to false stands for
// code in no module, which has no local scope. To be called with the loader's list held
// (with_loaded_objects_held). Takes 20 KiB of stack.
template <class Visit>
bool any_object_searched_for(const LoadedObject& caller, Visit visit);

// Calls visit(object, scope) for each object that a lookup by the module `caller` with RTLD_NEXT
// searches: those behind the module in its own scope. Otherwise as any_object_searched_for().
template <class Visit>
bool any_object_searched_behind(const LoadedObject& caller, Visit visit);

// Returns true if the object was loaded with the program, before the program ran.
bool is_startup_object(const LoadedObject&);

namespace detail {
// Calls visit(object, scope, argument) for each object. The arguments are VisitSearched and the
// `argument` for it.
using VisitSearched = bool (*)(const LoadedObject&, Scope, void*);
bool visit_objects_searched_for(const LoadedObject& caller, VisitSearched, void*);
bool visit_objects_searched_behind(const LoadedObject& caller, VisitSearched, void*);
}  // namespace detail

template <class Visit>
bool any_object_searched_for(const LoadedObject& caller, Visit visit) {
  return detail::visit_objects_searched_for(
      caller,
      [](const LoadedObject& object, Scope scope, void* argument) {
        return static_cast<bool>((*static_cast<Visit*>(argument))(object, scope));
      },
      &visit);
}

template <class Visit>
bool any_object_searched_behind(const LoadedObject& caller, Visit visit) {
  return detail::visit_objects_searched_behind(
      caller,
      [](const LoadedObject& object, Scope scope, void* argument) {
        return static_cast<bool>((*static_cast<Visit*>(argument))(object, scope));
      },
      &visit);
}

}  // namespace cuwarden::shim
