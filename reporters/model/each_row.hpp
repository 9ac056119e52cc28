// Functions that go through the rows of a table of a ledger file.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Calls visit(view) for each readable row of one table of a ledger file. `region`: the table.
// `get`: the function of ledger::Reader that reads a row of this table. Unused and damaged rows are
// left out.
template <class Get, class Visit>
void each_row(const ledger::Reader& reader, ledger::RegionId region, Get get, const Visit& visit) {
  const std::uint64_t rows = reader.rows(region);
  for (std::uint64_t row = region == ledger::RegionId::hooks ? 0 : 1; row < rows; ++row) {
    if (const auto view = (reader.*get)(row)) visit(*view);
  }
}

// Returns the ledger's row about the CUDA device with this ordinal; none if the ledger has no row.
inline std::optional<ledger::DeviceView> device_row(const ledger::Reader& reader,
                                                    DeviceOrdinal ordinal) {
  std::optional<ledger::DeviceView> found;
  each_row(reader, ledger::RegionId::devices, &ledger::Reader::device,
           [&](const ledger::DeviceView& device) {
             if (device.ordinal == ordinal) found = device;
           });
  return found;
}

}  // namespace cuwarden
