#include "reporters/slab_rows.hpp"

#include <optional>

namespace cuwarden {

void write_class(std::uint64_t class_bytes, const SlabClass& size_class, JsonStream& json) {
  json.field("class_bytes", class_bytes);
  json.field("slab_count", size_class.slab_count);
  json.field("live_count", size_class.live_count);
  json.field("live_bytes", size_class.live_bytes);
}

void write_holder(const ledger::Reader& reader, GroupId id, const SlabHolder& holder,
                  const CallFrames& frames, JsonStream& json) {
  const auto group = reader.group(id.value);
  // One that was allocated from a new place since the frames were named has none.
  json.field("stack", group && frames.stacks().contains(group->stack.value)
                          ? std::optional(group->stack.value)
                          : std::nullopt);
  json.field("count", holder.count);
  json.field("bytes", holder.bytes);
  json.field("locked_bytes", holder.locked_bytes);
}

}  // namespace cuwarden
