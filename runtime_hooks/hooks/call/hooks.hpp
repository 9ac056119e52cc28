// The hooks: one function for each HOOK row of hooks.def. Each takes the call that it belongs to
// and the parameters of the hooked function, and returns what the program gets. Hooks are not
// noexcept: a thread may be cancelled inside the driver, and that unwinds through them.
#pragma once

#include "runtime_hooks/hooks/call/hooked_call.hpp"

namespace cuwarden::hooks {

// The parameters of a hook: the running call, and then those of CUDA's function.
#define CUWARDEN_WITH_CALL(...) (::cuwarden::hooks::HookedCall & call __VA_OPT__(, ) __VA_ARGS__)
// Declares the hook of each HOOK row of hooks.def: a function that stands in for CUDA's function
// `name`. It takes an object for the running call and the parameters of CUDA's function, and
// returns the result for the program.
#define HOOK(result, name, parameters, arguments) result name CUWARDEN_WITH_CALL parameters;
#include "runtime_hooks/driver/hooks.def"

// Defines the hook that a row of a kind such as OF_GRAPH makes. The file with the hooks of that
// kind includes hooks.def with the kind defined as this macro. `made_by`: a function of that file,
// which returns the result for the program. Its arguments are the running call, the values in
// `subjects` (a list in parentheses), and a function that calls the driver.
#define CUWARDEN_HOOK_BY(made_by, subjects, result, name, parameters, arguments)                \
  result name CUWARDEN_WITH_CALL parameters {                                                   \
    return made_by(call, CUWARDEN_LISTED subjects, [&] { return call.real().name arguments; }); \
  }
// Takes the parentheses off a list: CUWARDEN_LISTED (a, b) is a, b.
#define CUWARDEN_LISTED(...) __VA_ARGS__

}  // namespace cuwarden::hooks
