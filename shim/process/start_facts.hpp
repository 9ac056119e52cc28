// Facts for the report about how the process was started: settings, environment, driver.
#pragma once

#include "runtime_hooks/ledger/write/writer.hpp"
#include "shim/support/settings.hpp"

namespace cuwarden::shim {

// Writes facts for the report to the ledger: the values of all settings, the environment variables
// of cuwarden, CUDA, NVIDIA and job schedulers, and the driver's version (left out if the driver
// does not tell). May throw std::bad_alloc.
void note_start(ledger::Writer&, const Settings&);

}  // namespace cuwarden::shim
