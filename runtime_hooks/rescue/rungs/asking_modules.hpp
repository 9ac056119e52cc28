// The libraries on the call stack of a request for memory.
#pragma once

#include <string_view>

#include "runtime_hooks/ledger/write/stacks/stack_table.hpp"

namespace cuwarden::rescue {

// Returns true if the call stack leads through a known caching allocator, such as that of PyTorch.
// If a request of such an allocator is refused, it empties its own cache and asks again.
// `StackTable`: the ledger's call stacks. `StackId`: the requester's stack; 0: unknown, so the
// result is false.
bool asked_by_caching_allocator(const ledger::StackTable&, StackId) noexcept;

// Returns true if no frame of the call stack is in one of the modules. `StackTable`: the ledger's
// call stacks; `StackId`: the one to look through. `modules`: a comma-separated list, of which each
// entry is a part of a library's path; empty: no modules. Returns false if the library of a frame
// is not known. Returns false, too, if `StackId` is 0.
bool has_none_of(const ledger::StackTable&, StackId, std::string_view modules) noexcept;

}  // namespace cuwarden::rescue
