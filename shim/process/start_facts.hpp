// The report's facts about how a process was started.
#pragma once

#include "runtime_hooks/ledger/write/writer.hpp"
#include "shim/support/settings.hpp"

namespace cuwarden::shim {

// Writes to the ledger: the settings in force, the environment variables that CUDA and job
// schedulers use, and the driver's version. May throw std::bad_alloc.
void note_start(ledger::Writer&, const Settings&);

}  // namespace cuwarden::shim
