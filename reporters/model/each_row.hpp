// Goes through a table of a ledger.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Calls visit(row) for each row of a table that is there.
template <class Get, class Visit>
void each_row(const ledger::Reader& reader, ledger::RegionId region, Get get, const Visit& visit) {
  const std::uint64_t rows = reader.rows(region);
  for (std::uint64_t row = region == ledger::RegionId::hooks ? 0 : 1; row < rows; ++row) {
    if (const auto view = (reader.*get)(row)) visit(*view);
  }
}

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
