// Verdicts about memory that this process holds for no use: without it the request would have
// fitted.
#include <algorithm>
#include <string>
#include <utility>

#include "reporters/owners/known_libraries.hpp"
#include "reporters/verdicts/predicates.hpp"
#include "reporters/words/quantities.hpp"
#include "runtime_hooks/core/caching_allocators.hpp"

namespace cuwarden::verdicts {
namespace {

using ledger::Fact;

// A pool's memory comes in chunks, and a chunk goes back only as a whole.
constexpr std::uint64_t pool_chunk = 32u << 20;
constexpr std::uint64_t device_page_bytes = 2u << 20;

// True if cuwarden's Python module can empty the cache of this library: PyTorch's or CuPy's.
bool has_reclaimer(std::string_view module) {
  return is_pytorch_allocator(module) || module.find("/cupy/") != module.npos ||
         module.find("/cupy_backends/") != module.npos;
}

// Returns the bytes that PyTorch has taken from CUDA on the request's device and not handed out;
// null: unknown.
Figure idle_in_pytorch(const ledger::IncidentFacts& incident) {
  const auto reserved = incident.fact(Fact::pytorch_reserved_bytes),
             allocated = incident.fact(Fact::pytorch_allocated_bytes);
  if (!reserved || !allocated) return std::nullopt;
  return *reserved - std::min(*reserved, *allocated);
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
      {.slab_locked_bytes = locked,
       .rounding_bytes = rounding,
       .pool_unused_bytes = unused == 0 ? std::nullopt : Figure(unused),
       .free_bytes = shortage.free_bytes(),
       .requested_bytes = shortage.requested_bytes()},
      unused > std::max(locked, rounding)
          ? human_bytes(unused) +
                " are the free parts of pages that the pool's allocations still use: free the "
                "allocations that keep those pages" +
                (wants.empty() ? "" : ", or have " + wants)
      : locked >= rounding
          ? human_bytes(locked) +
                " of freed memory are locked in half-used slabs, 2 MiB units of the driver: free "
                "the "
                "allocations that keep those slabs, cut small buffers from a few large ones, or "
                "run with CUWARDEN_POOL=on in the environment"
          : human_bytes(rounding) +
                " are lost because requests are rounded up to whole pages: ask for multiples of " +
                human_bytes(device_page_bytes) +
                ", cut small buffers from large ones, or run with CUWARDEN_POOL=on in the "
                "environment"};
}

std::optional<Finding<FrameworkProof>> framework_fragmentation(const Shortage& shortage) {
  const IncidentCase& given = shortage.given();
  if (!shortage.lacks_memory() || !is_pytorch_allocator(given.requester)) return std::nullopt;
  const auto reserved = shortage.incident().fact(Fact::pytorch_reserved_bytes);
  const auto idle = idle_in_pytorch(given.incident);
  if (!idle || *idle < *shortage.missing() || !shortage.is_worth_it(*idle)) return std::nullopt;
  const auto holes = shortage.incident().fact(Fact::pytorch_hole_count);
  const auto largest = shortage.incident().fact(Fact::pytorch_largest_free_bytes);
  std::string advice = "PyTorch asked for " + human_bytes(given.incident.bytes) +
                       " more, although " + human_bytes(*idle) +
                       " of the memory that it holds are free";
  if (holes && largest && *holes != 0)
    advice += ", but its largest free block has " + human_bytes(*largest) + " (" +
              human_count(*holes) + (*holes == 1 ? " hole" : " holes") +
              " in partly used segments)";
  // Segments that grow are virtual memory.
  advice += given.kind == Kind::vmm
                ? ": delete tensors on other CUDA streams or in CUDA graphs, since this request "
                  "cannot use memory that PyTorch keeps for them"
                : ": set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before the program "
                  "starts, so that segments grow and free memory serves larger requests; or, in "
                  "the same variable, max_split_size_mb:512 (larger blocks are not split) or "
                  "garbage_collection_threshold:0.8 (unused blocks go back earlier)";
  return Finding<FrameworkProof>{
      {.framework = "PyTorch",
       .reserved_bytes = reserved,
       .allocated_bytes = shortage.incident().fact(Fact::pytorch_allocated_bytes),
       .idle_bytes = idle,
       .hole_count = holes,
       .largest_free_bytes = largest,
       .free_bytes = shortage.free_bytes(),
       .requested_bytes = shortage.requested_bytes()},
      std::move(advice)};
}

namespace {

// Says how the holder's cache can be emptied.
std::string emptying(const IncidentCase& given, std::string_view holder) {
  if (!has_reclaimer(holder))
    return "if the memory is a cache, have the library give it back (empty_cache, "
           "free_all_blocks, trim) or limit the cache; if it is in use, free it there";
  const std::string otherwise = "; memory in use stays until the program frees it";
  if (!given.asks_frameworks)
    return std::string(given.rescues ? "`cuwarden run`" : "`cuwarden run --pool auto`") +
           " has its cache emptied before a request fails" + otherwise;
  if (!given.rescues)
    return "CUWARDEN_POOL=auto has its cache emptied before a request fails" + otherwise;
  return "empty its cache or limit it, or free what is in use there";
}

}  // namespace

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
  const Figure idle = is_pytorch_allocator(module) ? idle_in_pytorch(given.incident) : std::nullopt;
  return Finding<LibraryProof>{
      {.holder = module,
       .held_bytes = bytes,
       .idle_bytes = idle,
       .free_bytes = shortage.free_bytes(),
       .requested_bytes = shortage.requested_bytes()},
      library_name(module) + " holds " + human_bytes(bytes) +
          (idle ? " (" + human_bytes(*idle) + " of it not in use)" : std::string()) + ", and " +
          library_name(given.requester) + " asked for more: " + emptying(given, module)};
}

}  // namespace cuwarden::verdicts
