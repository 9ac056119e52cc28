// Facts for the report about how the process was started: settings, environment, driver.
#pragma once

#include "runtime_hooks/ledger/write/writer.hpp"
#include "shim/support/settings.hpp"

namespace cuwarden::shim {

// Writes facts for the report to the ledger: the values of all settings, and the environment
// variables of cuwarden, CUDA, NVIDIA and job schedulers. Also writes the driver's version if the
// driver tells it. May throw std::bad_alloc.
void note_start(ledger::Writer&, const Settings&);

}  // namespace cuwarden::shim
