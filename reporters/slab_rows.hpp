// Parts of rows that several tables about slabs have: of the end, of incidents, of the worst
// moment.
#pragma once

#include <cstdint>

#include "reporters/call_frames.hpp"
#include "reporters/json_stream.hpp"
#include "reporters/slabs.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

void write_class(std::uint64_t class_bytes, const SlabClass&, JsonStream&);
void write_holder(const ledger::Reader&, GroupId, const SlabHolder&, const CallFrames&,
                  JsonStream&);

}  // namespace cuwarden
