// Texts of single figures of `cuwarden top`, which its live view and its print-out share.
#pragma once

#include <cstdint>
#include <string>

#include "reporters/model/values.hpp"
#include "tools/cuwarden/top/top_json.hpp"

namespace cuwarden {

// Returns a number of bytes as text, such as "1.5 GiB". Null counts as 0.
std::string bytes_text(const model::Figure& bytes);
// Returns a count as text, such as "71,932". Null counts as 0.
std::string count_text(const model::Figure& count);
// Returns a growth, given in bytes a minute, with a sign, such as "+1.5 MiB/min"; "0" if it is 0,
// and "-" if it is null.
std::string growth_text(const model::SignedFigure& bytes_per_minute);
// Returns a growth, given in bytes a minute, without a sign, such as "1.5 MiB/min".
std::string per_minute_text(std::uint64_t bytes_per_minute);
// Returns a rate, given per minute, as a number per second, such as "12.5"; "0.0" if it is
// negative, and "-" if it is null.
std::string rate_text(const model::SignedFigure& per_minute);
// Returns words for a kind of memory on a device as in the text report (memory_name()), such as
// "device memory (GPU 0)". Blocks that frameworks hand out have a name of their own, since `top`
// also shows the memory that they lie in. `kind`: as in reports. `device`: CUDA ordinal; null for
// host memory.
std::string memory_text(const std::string& kind, const model::MaybeId& device);
// Returns the file name of the process's program, without its folder. Bytes that could control the
// terminal are question marks (printable()). Empty if the program is unknown.
std::string program_text(const ProcessRow&);
// Returns the time for which the process has run, as text such as "5 min 3 s".
std::string age_text(const ProcessRow&);
// Returns a mark with a space behind it for a call stack whose memory keeps growing, such as
// "[grows 1.2 MiB/min] "; empty for others.
std::string growing_mark(const StackRow&);
// Returns a line about a refused request that waits for memory. The line has the call, the bytes
// and the device, or the kind of host memory. It also has the rung (attempt) that is under way, the
// time for which this rung has run so far, and the line of code. The process is not named.
std::string waiting_text(const WaitingRow&);

}  // namespace cuwarden
