// The hooked functions of CUDA (the rows of hooks.def) as numbers and names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/cuda_api.hpp"

namespace cuwarden::driver {

// The index of each hooked function of CUDA in the list of hooks, hooks.def, from 0. The rows of
// the ledger's hooks table have equal numbers. `count` is the number of hooks.
enum class Row : std::uint16_t {
#define HOOKED(result, name, parameters, arguments) name,
#define RUNTIME HOOKED
#include "runtime_hooks/driver/hooks.def"
  count  // number of hooks
};
inline constexpr std::size_t row_count = static_cast<std::size_t>(Row::count);  // number of hooks

// The names of the hooked functions, such as "cuMemAlloc_v2", indexed by Row.
inline constexpr std::array<std::string_view, row_count> row_names = {
#define HOOKED(result, name, parameters, arguments) #name,
#define RUNTIME HOOKED
#include "runtime_hooks/driver/hooks.def"
};

// Returns the number by which the ledger knows the hooked function: its index in the list of hooks,
// from 0.
constexpr HookId hook_id(Row row) { return HookId{static_cast<std::uint16_t>(row)}; }

}  // namespace cuwarden::driver
