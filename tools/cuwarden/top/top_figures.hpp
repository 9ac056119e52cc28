// Texts of single figures of `cuwarden top`, which its live view and its print-out share.
#pragma once

#include <cstdint>
#include <string>

#include "reporters/model/values.hpp"
#include "tools/cuwarden/top/top_rows.hpp"

namespace cuwarden {

// Returns a size such as "1.5 GiB"; that of 0 bytes if it is null.
std::string bytes_text(const model::Figure& bytes);
// Returns a count such as "71,932"; "0" if it is null.
std::string count_text(const model::Figure& count);
// Returns a growth that is given in bytes a minute, such as "+1.5 MiB/min", in one unit for all
// rates; "-" if it is null.
std::string growth_text(const model::SignedFigure& bytes_per_minute);
// Returns the same for a growth that is not negative, without a sign.
std::string per_minute_text(std::uint64_t bytes_per_minute);
// Returns a rate that is given per minute as a number per second, such as "12.5"; "-" if it is
// null.
std::string rate_text(const model::SignedFigure& per_minute);
// Returns the kind of memory with its device, such as "device 0"; without one for host memory.
std::string memory_text(const std::string& kind, const model::MaybeId& device);
// Returns the file name of the process's program, printable; empty if it is unknown.
std::string program_text(const ProcessRow&);
// Returns the time for which the process has run, such as "5 min 3 s".
std::string age_text(const ProcessRow&);
// Returns the mark of a stack that keeps growing, such as "[grows 1.2 MiB/min] "; empty for others.
std::string growing_mark(const StackRow&);
// Returns a line about a request that waits for memory: what waits, in which rung, for how long,
// and where in the program. Without the process.
std::string waiting_text(const WaitingRow&);

}  // namespace cuwarden
