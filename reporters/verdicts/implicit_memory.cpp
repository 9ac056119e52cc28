// The verdict about memory that the driver takes without being asked for it.
#include "reporters/verdicts/predicates.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden::verdicts {
namespace {

using ledger::Asked;
using ledger::Fact;

model::Figure unless_0(std::uint64_t bytes) {
  return bytes == 0 ? std::nullopt : model::Figure(bytes);
}

// Returns advice about a call that needs memory for itself; null if the call requests memory.
const char* advice_for_call(const ledger::IncidentView& incident) {
  switch (incident.asked) {
    case Asked::launch:
      return incident.result != out_of_memory
                 ? "the kernel calls malloc, and the first such launch allocates the device heap "
                   "(cudaLimitMallocHeapSize): set a smaller heap, or launch such a kernel before "
                   "the data is allocated"
                 : "the launch itself needs memory (local memory for as many threads as the device "
                   "can hold, or the kernel's code): leave more free, or use smaller arrays per "
                   "thread";
    case Asked::module:
      return "the code did not fit any more: load it before the data is allocated";
    case Asked::stream:
    case Asked::limit:
      return "the driver keeps memory for streams, heap and stacks: create them before the data, "
             "or use fewer and smaller ones";
    case Asked::copy:
      return "copies and fills on the device need the context's local memory, which the driver "
             "gives back when it refuses a launch or a limit: leave more free";
    case Asked::texture:
      return "the driver keeps memory for texture and surface objects: destroy those that are not "
             "used any more, or create them before the data";
    case Asked::memory:
    case Asked::graph:
    case Asked::context:
      break;
  }
  return nullptr;
}

}  // namespace

std::optional<Finding<ImplicitProof>> implicit_memory(const Shortage& shortage) {
  const char* const of_call = advice_for_call(shortage.incident());
  const std::uint64_t bytes = shortage.implicit(), contexts = shortage.held_by(Holder::context);
  if (of_call == nullptr && !(shortage.lacks_memory() && shortage.is_the_most(bytes)))
    return std::nullopt;
  const auto item = [&](Holder holder) { return unless_0(shortage.held_by(holder)); };
  return Finding<ImplicitProof>{
      {.given_back_bytes = shortage.fact(Fact::given_back_bytes),
       .context_bytes = item(Holder::context),
       .modules_bytes = item(Holder::modules),
       .local_memory_bytes = item(Holder::local_memory),
       .heap_bytes = item(Holder::heap),
       .streams_bytes = item(Holder::streams),
       .graphs_bytes = item(Holder::graphs),
       .free_bytes = shortage.free_bytes(),
       .requested_bytes = shortage.requested_bytes()},
      of_call != nullptr ? of_call
      : bytes == contexts
          ? "the contexts themselves take " + human_bytes(bytes) +
                " of the device: split the request" + alternative_of_spilling(shortage)
      : shortage.held_by(Holder::graphs) > bytes / 2
          ? human_bytes(shortage.held_by(Holder::graphs)) +
                " are executable graphs: destroy those that are not launched any more, or update "
                "one (cudaGraphExecUpdate) instead of instantiating another"
          : human_bytes(bytes) +
                " are contexts, code, local memory of kernels and the device's heap: "
                "use smaller arrays per thread, or lower the limits"};
}

}  // namespace cuwarden::verdicts
