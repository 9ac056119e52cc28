// Allocators that free what they keep and ask again when they are refused.
#pragma once

#include "runtime_hooks/ledger/writer.hpp"

namespace cuwarden::families {

// Whether one of those asked, as far as its stack and the names of libraries tell.
bool asked_by_caching_allocator(const ledger::Writer&, GroupId) noexcept;

}  // namespace cuwarden::families
