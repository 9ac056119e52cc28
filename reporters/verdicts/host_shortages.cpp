// Verdicts about requests that meet the host's limits: addresses, memory that is page-locked, and
// the page cache, if the device shares its memory with the host.
#include "reporters/verdicts/predicates.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden::verdicts {

using ledger::Fact;

std::optional<Finding<AddressProof>> address_space_gap(const Shortage& shortage) {
  const ledger::IncidentView& incident = shortage.incident();
  const Kind kind = shortage.given().kind;
  const bool context = incident.asked == ledger::Asked::context;
  // If the device answers, it has a context, so there were enough addresses.
  if (!is_host_memory(kind) && !(context && !incident.fact(Fact::free_bytes))) return std::nullopt;
  const auto ram = incident.fact(Fact::ram_bytes);
  const AddressProof proof{
      .address_space_limit_bytes = shortage.fact(Fact::address_space_limit_bytes),
      .address_space_bytes = shortage.fact(Fact::address_space_bytes),
      .largest_gap_bytes = shortage.fact(Fact::largest_gap_bytes),
      .mappings = shortage.fact(Fact::mappings),
      .max_mappings = shortage.fact(Fact::max_mappings),
      .requested_bytes = shortage.requested_bytes()};
  const auto limit = proof.address_space_limit_bytes, used = proof.address_space_bytes;
  // Memory that is to be registered has its addresses already.
  const bool needs_addresses = kind != Kind::registered && (!context || ram);
  const std::uint64_t wanted = context ? ram.value_or(0) : incident.bytes;
  const bool limited =
      needs_addresses && limit && used && (*limit < *used || *limit - *used < wanted);
  const bool no_gap = needs_addresses && proof.largest_gap_bytes &&
                      *proof.largest_gap_bytes < (context ? std::uint64_t{1} << 32 : wanted);
  // The kernel refuses one mapping more than the limit, and the driver needs a few at once.
  const bool no_mapping =
      proof.mappings && proof.max_mappings && *proof.mappings + 16 >= *proof.max_mappings;
  if (!limited && !no_gap && !no_mapping) return std::nullopt;
  return Finding<AddressProof>{
      proof, limited  ? "the limit of the address space (ulimit -v) leaves too little: "
                        "raise it; CUDA reserves addresses for all memory there is"
             : no_gap ? "no gap between the process's mappings is so large: map less, or "
                        "allocate the buffer earlier"
                      : "the process has as many mappings as the kernel allows: map less, "
                        "or raise vm.max_map_count"};
}

std::optional<Finding<HostProof>> host_ram_exhausted(const Shortage& shortage) {
  // Registered memory may be there already, all of it or a part, but must fit the machine. Managed
  // memory may lie anywhere.
  const bool registered = shortage.given().kind == Kind::registered;
  if (shortage.given().kind != Kind::pinned && !registered) return std::nullopt;
  const ledger::IncidentView& incident = shortage.incident();
  const std::uint64_t wanted = incident.bytes;
  HostProof proof{.ram_bytes = shortage.fact(Fact::ram_bytes),
                  .ram_available_bytes = shortage.fact(Fact::ram_available_bytes),
                  .swap_free_bytes = shortage.fact(Fact::swap_free_bytes),
                  .cgroup_limit_bytes = shortage.fact(Fact::cgroup_limit_bytes),
                  .cgroup_used_bytes = shortage.fact(Fact::cgroup_used_bytes),
                  .overcommit_mode = shortage.fact(Fact::overcommit_mode),
                  .commit_limit_bytes = {},
                  .committed_bytes = {},
                  .pinned_bytes = incident.live_bytes[static_cast<std::size_t>(Kind::pinned)],
                  .requested_bytes = shortage.requested_bytes()};
  const auto limit = proof.cgroup_limit_bytes, in_cgroup = proof.cgroup_used_bytes;
  const auto commit = shortage.fact(Fact::commit_limit_bytes),
             committed = shortage.fact(Fact::committed_bytes);
  const bool by_cgroup = !registered && limit && in_cgroup && *in_cgroup + wanted > *limit;
  // Page-locked memory is never swapped out.
  const auto& room = registered ? proof.ram_bytes : proof.ram_available_bytes;
  const bool by_ram = room && wanted > *room;
  const bool by_commit = !registered && proof.overcommit_mode == 2u && commit && committed &&
                         *committed + wanted > *commit;
  if (!by_cgroup && !by_ram && !by_commit) return std::nullopt;
  if (by_commit) {
    proof.commit_limit_bytes = commit;
    proof.committed_bytes = committed;
  }
  return Finding<HostProof>{
      proof, by_ram ? "the host has " + human_bytes(*room) + (registered ? "" : " available") +
                          ", and page-locked memory is never swapped out: pin less"
             : by_cgroup ? "the cgroup (container, job) has a memory limit of " +
                               human_bytes(*limit) + ": raise it, or pin less"
                         : "the kernel commits no more memory (vm.overcommit_memory is 2): raise "
                           "vm.overcommit_ratio, or pin less"};
}

// Without the page cache the request would have fitted: nothing of it is missing, as the cache
// counts as free.
std::optional<Finding<CacheProof>> held_by_page_cache(const Shortage& shortage) {
  using ledger::Asked;
  const ledger::IncidentView& incident = shortage.incident();
  const auto free = shortage.free_bytes();
  const std::uint64_t cache = shortage.page_cache();
  if (cache == 0 || !free || shortage.missing() != 0u || incident.result != out_of_memory ||
      (incident.asked != Asked::memory && incident.asked != Asked::context) ||
      *free >= shortage.needed())
    return std::nullopt;
  return Finding<CacheProof>{
      {cache, shortage.fact(Fact::ram_available_bytes), free, shortage.requested_bytes()},
      "the device shares its memory with the host, whose page cache holds " + human_bytes(cache) +
          " of it: drop the cache (sync; echo 1 > /proc/sys/vm/drop_caches, as root), or read and "
          "write large files past it (O_DIRECT)"};
}

}  // namespace cuwarden::verdicts
