// The libraries that a request comes through, as far as its call stack tells.
#pragma once

#include <string_view>

#include "runtime_hooks/ledger/write/stacks/stack_table.hpp"

namespace cuwarden::rescue {

// Returns true if the stack leads through an allocator that empties its own cache and asks again
// when it is refused.
bool asked_by_caching_allocator(const ledger::StackTable&, StackId) noexcept;

// Returns true if the stack has none of the modules, a comma-separated list of parts of paths. The
// stack must be whole. False also where a module of the stack is not known.
bool has_none_of(const ledger::StackTable&, StackId, std::string_view modules) noexcept;

}  // namespace cuwarden::rescue
