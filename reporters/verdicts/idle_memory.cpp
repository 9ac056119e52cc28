// Verdicts about memory that this process holds for no use: without it the request would have
// fitted.
#include <algorithm>

#include "reporters/verdicts/predicates.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden::verdicts {
namespace {

using ledger::Fact;

// A pool's memory comes in chunks, and a chunk goes back only as a whole.
constexpr std::uint64_t pool_chunk = 32u << 20;
constexpr std::uint64_t page = 2u << 20;

// True if cuwarden's Python module can empty the cache of this library: PyTorch's or CuPy's.
bool has_reclaimer(std::string_view module) {
  return file_name(module).starts_with("libc10_cuda.") || module.find("/cupy/") != module.npos ||
         module.find("/cupy_backends/") != module.npos;
}

}  // namespace

std::optional<Finding<PendingProof>> pending_frees(const Shortage& shortage) {
  // The driver serves any request from memory pools' idle memory. Idle memory that was still in
  // pools at the refusal waits for work in flight, or shares a chunk with something live.
  const std::uint64_t idle = shortage.incident().fact(Fact::memory_pool_idle_bytes).value_or(0);
  const std::uint64_t live =
      shortage.incident().live_count[static_cast<std::size_t>(Kind::stream_ordered)];
  const std::uint64_t pending =
      idle - std::min(idle, std::min(live, idle / pool_chunk + 1) * pool_chunk);
  if (!shortage.lacks_memory() || pending < *shortage.missing() || !shortage.is_worth_it(pending))
    return std::nullopt;
  return Finding<PendingProof>{
      {pending, shortage.free_bytes(), shortage.requested_bytes()},
      human_bytes(pending) +
          " were freed in stream order, but the device has not reached the frees: "
          "synchronise the streams before this request"};
}

std::optional<Finding<WasteProof>> slab_fragmentation(const Shortage& shortage) {
  const std::uint64_t locked = shortage.held_by(Holder::slab_waste),
                      rounding = shortage.held_by(Holder::rounding_waste),
                      unused = shortage.held_by(Holder::pool), waste = locked + rounding + unused;
  if (!shortage.lacks_memory() || waste < *shortage.missing() || !shortage.is_worth_it(waste))
    return std::nullopt;
  const std::string& wants = shortage.given().meshing_wants;
  return Finding<WasteProof>{
      {locked, rounding, unused == 0 ? std::nullopt : Figure(unused), shortage.free_bytes(),
       shortage.requested_bytes()},
      unused > std::max(locked, rounding)
          ? human_bytes(unused) +
                " are the free parts of pages that the pool's allocations still use: free the "
                "allocations that pin them" +
                (wants.empty() ? "" : ", or have " + wants)
      : locked >= rounding
          ? human_bytes(locked) +
                " are the unused parts of slabs that are still partly used: free the allocations "
                "that pin them, keep small allocations in a few large ones, or try "
                "CUWARDEN_POOL=on"
          : human_bytes(rounding) +
                " are lost because requests are rounded up to whole pages: ask for multiples of " +
                human_bytes(page) + ", cut small buffers from large ones, or try CUWARDEN_POOL=on"};
}

std::optional<Finding<LibraryProof>> held_by_framework(const Shortage& shortage) {
  const IncidentCase& given = shortage.given();
  if (!shortage.lacks_memory() || given.modules.empty() || given.requester.empty())
    return std::nullopt;
  const auto& [module, bytes] = *std::ranges::max_element(
      given.modules, [](const auto& a, const auto& b) { return a.second < b.second; });
  if (module.empty() || module == given.requester || module == given.program ||
      bytes < *shortage.missing() || bytes < shortage.own() / 2 ||
      shortage.own() < shortage.others())
    return std::nullopt;
  return Finding<LibraryProof>{
      {module, bytes, shortage.free_bytes(), shortage.requested_bytes()},
      std::string(file_name(module)) + " holds " + human_bytes(bytes) + ", and " +
          std::string(file_name(given.requester)) +
          " asked for more: if the memory is a cache, have the library give it back "
          "(empty_cache, free_all_blocks, trim) or limit the cache; if it is in use, free it "
          "there" +
          (has_reclaimer(module)
               ? "; started by \"python3 -m cuwarden\", the program has its cache "
                 "emptied before a request fails"
               : "")};
}

}  // namespace cuwarden::verdicts
