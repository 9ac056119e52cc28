// Which libraries a request comes through, as far as its stack tells.
#pragma once

#include <string_view>

#include "runtime_hooks/ledger/writer.hpp"

namespace cuwarden::families {

// Whether one of the allocators asked that free what they keep and ask again when they are refused.
bool asked_by_caching_allocator(const ledger::Writer&, GroupId) noexcept;

// Whether a stack, which is there from its first frame on, has none of the modules that are named
// by a part of their path, in a comma-separated list. False where it does not tell.
bool has_none_of(const ledger::Writer&, StackId, std::string_view modules) noexcept;

}  // namespace cuwarden::families
