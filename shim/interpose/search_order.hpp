// The order in which the loader would search the loaded objects for a function that a module calls
// by name, if the shim were not preloaded. First come the objects of the global scope: those that
// were loaded with the program, then those that a dlopen opened with RTLD_GLOBAL. Then comes the
// module's local scope: the library whose dlopen loaded the module, and the libraries that this
// library needs. After RTLD_DEEPBIND the local scope comes first.
#pragma once

#include <cstddef>

#include "shim/support/loaded_objects.hpp"

namespace cuwarden::shim {

// Stores that the program opens a library with RTLD_GLOBAL or RTLD_DEEPBIND, since the loader does
// not tell that later. `path` and `mode`: the program's arguments of dlopen; `path` is copied, and
// may be null. To be called before libc's dlopen. Does nothing for other modes. Stores 64 paths of
// up to 511 bytes; longer and further paths are dropped.
void note_dlopen(const char* path, int mode) noexcept;

// The part of the search order in which an object is found. startup: loaded with the program.
// made_global: opened by a dlopen with RTLD_GLOBAL, or needed by such a library. local: the library
// whose dlopen loaded the calling module, and libraries that it needs.
enum class Scope { startup, made_global, local };

// Calls visit(object, scope) for each object that the loader searches for the module `caller`, in
// its order, until a call returns true. Returns true if one did. Visits an object again if it is in
// several scopes, and never the shim. `caller`: the module; one that converts to false stands for
// code in no module, which has no local scope. To be called with the loader's list held
// (with_loaded_objects_held). Takes 20 KiB of stack.
template <class Visit>
bool any_object_searched_for(const LoadedObject& caller, Visit visit);

// Calls visit(object, scope) for each object that a lookup by the module `caller` with RTLD_NEXT
// searches (those behind the module in its own scope), in the loader's order, until a call returns
// true. Returns true if one did. Never visits the shim. Visits nothing if `caller` converts to
// false. To be called with the loader's list held (with_loaded_objects_held). Takes 20 KiB of
// stack.
template <class Visit>
bool any_object_searched_behind(const LoadedObject& caller, Visit visit);

// Returns true if the object was loaded with the program, before the program ran.
bool is_startup_object(const LoadedObject&);

namespace detail {
// Functions behind the templates any_object_searched_for() and any_object_searched_behind(). They
// call VisitSearched(object, scope, argument) for each object until a call returns true, and return
// true if one did. The `void*` is the `argument` of all calls.
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
