#include "reporters/host_shortages.hpp"

#include "reporters/quantities.hpp"

namespace cuwarden {
namespace {

using ledger::Fact;

}  // namespace

std::optional<Judgement> lacks_addresses(const IncidentCase& given) {
  const ledger::IncidentView& incident = given.incident;
  const auto limit = incident.fact(Fact::address_space_limit_bytes),
             used = incident.fact(Fact::address_space_bytes);
  const auto gap = incident.fact(Fact::largest_gap_bytes), mappings = incident.fact(Fact::mappings),
             most = incident.fact(Fact::max_mappings), ram = incident.fact(Fact::ram_bytes);
  const bool context = incident.asked == ledger::Asked::context;
  // Where the device answers there is a context, and so the addresses.
  if (!is_host_memory(given.kind) && !(context && !incident.fact(Fact::free_bytes)))
    return std::nullopt;
  // What is registered has its addresses.
  const bool needs_addresses = given.kind != Kind::registered && (!context || ram);
  const std::uint64_t wanted = context ? ram.value_or(0) : incident.bytes;
  const bool limited = needs_addresses && limit && used && *limit != ledger::no_limit &&
                       (*limit < *used || *limit - *used < wanted);
  const bool no_gap = needs_addresses && gap && *gap < (context ? std::uint64_t{1} << 32 : wanted);
  // The kernel refuses one more; the driver needs a few.
  const bool no_mapping = mappings && most && *mappings + 16 >= *most;
  if (!limited && !no_gap && !no_mapping) return std::nullopt;
  Judgement judgement;
  judgement.verdict = Verdict::address_space_gap;
  prove(judgement.proof, "address_space_limit_bytes", limit);
  prove(judgement.proof, "address_space_bytes", used);
  prove(judgement.proof, "largest_gap_bytes", gap);
  prove(judgement.proof, "mappings", mappings);
  prove(judgement.proof, "max_mappings", most);
  judgement.advice = limited  ? "the limit of the address space (ulimit -v) leaves too little: "
                                "raise it; CUDA reserves addresses for all memory there is"
                     : no_gap ? "no gap between the process's mappings is so large: map less, or "
                                "allocate the buffer earlier"
                              : "the process has as many mappings as the kernel allows: map less, "
                                "or raise vm.max_map_count";
  return judgement;
}

std::optional<Judgement> lacks_host_memory(const IncidentCase& given) {
  // What is registered may be there already, all of it or a part, but must fit the machine. Managed
  // memory may lie anywhere.
  const bool registered = given.kind == Kind::registered;
  if (given.kind != Kind::pinned && !registered) return std::nullopt;
  const ledger::IncidentView& incident = given.incident;
  const std::uint64_t wanted = incident.bytes;
  const auto limit = incident.fact(Fact::cgroup_limit_bytes),
             in_cgroup = incident.fact(Fact::cgroup_used_bytes);
  const auto available = incident.fact(Fact::ram_available_bytes),
             ram = incident.fact(Fact::ram_bytes);
  const auto commit = incident.fact(Fact::commit_limit_bytes),
             committed = incident.fact(Fact::committed_bytes);
  const bool by_cgroup = !registered && limit && in_cgroup && *limit != ledger::no_limit &&
                         *in_cgroup + wanted > *limit;
  // Page-locked memory is never swapped out.
  const auto& room = registered ? ram : available;
  const bool by_ram = room && wanted > *room;
  const bool by_commit = !registered && incident.fact(Fact::overcommit_mode) == 2 && commit &&
                         committed && *committed + wanted > *commit;
  if (!by_cgroup && !by_ram && !by_commit) return std::nullopt;
  Judgement judgement;
  judgement.verdict = Verdict::host_ram_exhausted;
  prove(judgement.proof, "ram_bytes", ram);
  prove(judgement.proof, "ram_available_bytes", available);
  prove(judgement.proof, "swap_free_bytes", incident.fact(Fact::swap_free_bytes));
  prove(judgement.proof, "cgroup_limit_bytes", limit);
  prove(judgement.proof, "cgroup_used_bytes", in_cgroup);
  prove(judgement.proof, "overcommit_mode", incident.fact(Fact::overcommit_mode));
  if (by_commit) {
    prove(judgement.proof, "commit_limit_bytes", commit);
    prove(judgement.proof, "committed_bytes", committed);
  }
  prove(judgement.proof, "pinned_bytes",
        incident.live_bytes[static_cast<std::size_t>(Kind::pinned)]);
  judgement.advice =
      by_ram ? "the host has " + human_bytes(*room) + (registered ? "" : " available") +
                   ", and page-locked memory is never swapped out: pin less"
      : by_cgroup ? "the cgroup (container, job) has a memory limit of " + human_bytes(*limit) +
                        ": raise it, or pin less"
                  : "the kernel commits no more memory (vm.overcommit_memory is 2): raise "
                    "vm.overcommit_ratio, or pin less";
  return judgement;
}

}  // namespace cuwarden
