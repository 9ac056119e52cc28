// A ledger with leaks, series and devices. Other tables, such as that of incidents, are empty. Its
// stacks lie in the program of sample_program.hpp.
#pragma once

#include "tests/unit/reporters/fake_ledger.hpp"

namespace cuwarden::test {

// Fills the ledger, which must be empty, as a plausible process would. It gets a growing device
// leak (6 × 1 MiB), a pinned leak, a group that a context released, a mapped VMM handle, readings
// and a timeline.
void fill_sample(FakeLedger&);

}  // namespace cuwarden::test
