// The bodies of hooks.def's HOOK rows: each takes the call it belongs to, then the function's own
// parameters, and returns what the program gets. They are not noexcept: a thread may be cancelled
// inside the driver, and that unwinds through them.
#pragma once

#include "runtime_hooks/families/hooked_call.hpp"

namespace cuwarden::families {

#define CUWARDEN_WITH_CALL(...) (HookedCall & call __VA_OPT__(, ) __VA_ARGS__)
#define HOOK(result, name, parameters, arguments) result name CUWARDEN_WITH_CALL parameters;
#include "runtime_hooks/driver/hooks.def"
#undef CUWARDEN_WITH_CALL

}  // namespace cuwarden::families
