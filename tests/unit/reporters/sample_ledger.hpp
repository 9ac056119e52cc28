// A ledger with one of everything, whose stacks lie in the running test program itself.
#pragma once

#include "tests/unit/reporters/fake_ledger.hpp"

namespace cuwarden::test {

// Fills what a plausible process leaves: a growing device leak (6 × 1 MiB), a pinned leak, a group
// that a context released, an unmapped VMM handle, readings, a timeline.
void fill_sample(FakeLedger&);

}  // namespace cuwarden::test
