// Verdicts about requests that the device could not serve whatever is free: what its compute mode,
// the slice of it that the process has (MIG), a quota or the cgroup forbids, and what is larger
// than all of it.

#include "reporters/verdicts/predicates.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden::verdicts {
namespace {

using ledger::Asked;
using ledger::Fact;

// CUcomputemode.
constexpr std::uint64_t prohibited_mode = 2, exclusive_process_mode = 3;
// Bytes that no address space holds.
constexpr std::uint64_t absurd = std::uint64_t{1} << 47;

// True if the request is larger than all that the process may use of the device.
bool is_larger(const Shortage& shortage) {
  const auto total = shortage.incident().fact(Fact::total_bytes);
  // The memory that a launch needs is no request of the program.
  return !shortage.is_of_host() && shortage.incident().asked != Asked::launch && total &&
         shortage.incident().bytes > *total;
}

std::string slice_of(const Shortage& shortage) {
  return "the process has a slice (MIG) of " +
         human_bytes(*shortage.incident().fact(Fact::total_bytes)) + " of the device, ";
}

std::optional<Finding<RestrictionProof>> by_compute_mode(const Shortage& shortage) {
  const ledger::IncidentView& incident = shortage.incident();
  const auto mode = incident.fact(Fact::compute_mode);
  if (incident.result == out_of_memory || incident.asked != Asked::context ||
      (mode != prohibited_mode && mode != exclusive_process_mode))
    return std::nullopt;
  RestrictionProof proof;
  if (mode == prohibited_mode) {
    proof.compute_mode = "prohibited";
    return Finding{
        proof,
        "the device is in compute mode PROHIBITED, in which it takes no context: use another "
        "device, or have the mode lifted (nvidia-smi -c DEFAULT, as root)"};
  }
  proof.compute_mode = "exclusive_process";
  proof.other_processes_bytes = incident.fact(Fact::other_processes_bytes);
  return Finding{
      proof,
      "the device is in compute mode EXCLUSIVE_PROCESS and has its one context already, another "
      "process's or this one's: wait for that to end, use another device, or have the mode lifted "
      "(nvidia-smi -c DEFAULT, as root)"};
}

// A slice that is too small restricts a request that the whole device could serve.
std::optional<Finding<RestrictionProof>> by_slice(const Shortage& shortage) {
  const auto whole = shortage.incident().fact(Fact::whole_device_bytes);
  if (!is_larger(shortage) || shortage.given().slice.empty() || !whole ||
      shortage.incident().bytes > *whole)
    return std::nullopt;
  RestrictionProof proof;
  proof.total_bytes = shortage.fact(Fact::total_bytes);
  proof.slice = shortage.given().slice;
  proof.whole_device_bytes = whole;
  proof.requested_bytes = shortage.requested_bytes();
  return Finding{proof, slice_of(shortage) + "which has " + human_bytes(*whole) +
                            ": use a larger slice or the whole device, or split the request"};
}

// The quota may not be enforced, so it counts only if enough memory was free. All memory that is
// known to be this process's counts towards it, as the driver's own memory does.
std::optional<Finding<RestrictionProof>> by_quota(const Shortage& shortage) {
  const auto limit = shortage.incident().fact(Fact::mps_limit_bytes);
  if (shortage.is_of_host() || shortage.incident().asked != Asked::memory ||
      shortage.missing() != 0u || !limit)
    return std::nullopt;
  std::uint64_t held = shortage.own() + shortage.implicit();
  for (const Holder holder :
       {Holder::slab_waste, Holder::rounding_waste, Holder::pool, Holder::mempool_idle})
    held += shortage.held_by(holder);
  // If the process already has more than the quota, the quota is not enforced.
  if (shortage.own() > *limit || held + shortage.taken() <= *limit) return std::nullopt;
  RestrictionProof proof;
  proof.free_bytes = shortage.free_bytes();
  proof.mps_limit_bytes = limit;
  proof.own_bytes = shortage.own();
  proof.held_bytes = held;
  proof.requested_bytes = shortage.requested_bytes();
  return Finding{proof, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT gives this process " +
                            human_bytes(*limit) + " of the device, of which it has " +
                            human_bytes(held) +
                            ": raise that limit, or hold less; the device itself has room"};
}

// The limit holds for all processes of the cgroup together. The driver shows the limit as the
// device's size, so the request may also seem larger than the device. A limit above that size is no
// cause: the device is full before.
std::optional<Finding<RestrictionProof>> by_cgroup(const Shortage& shortage) {
  const ledger::IncidentView& incident = shortage.incident();
  const auto limit = incident.fact(Fact::cgroup_device_limit_bytes),
             used = incident.fact(Fact::cgroup_device_used_bytes),
             total = incident.fact(Fact::total_bytes);
  if (shortage.is_of_host() || incident.result != out_of_memory ||
      (incident.asked != Asked::memory && incident.asked != Asked::context) || !limit || !used ||
      (total && *limit > *total) || (*used <= *limit && shortage.taken() <= *limit - *used))
    return std::nullopt;
  RestrictionProof proof;
  proof.free_bytes = shortage.free_bytes();
  proof.own_bytes = shortage.own();
  proof.requested_bytes = shortage.requested_bytes();
  proof.cgroup_device_limit_bytes = limit;
  proof.cgroup_device_used_bytes = used;
  return Finding{proof, "the cgroup (container, job) may have " + human_bytes(*limit) +
                            " of this device, of which its processes have " + human_bytes(*used) +
                            ": have the limit raised (nvidia-smi memory-limits, as root), or hold "
                            "less"};
}

}  // namespace

std::optional<Finding<SizeProof>> size_overflow(const Shortage& shortage) {
  if (shortage.incident().bytes < absurd) return std::nullopt;
  return Finding<SizeProof>{
      {std::to_string(shortage.incident().bytes), shortage.requested_bytes()},
      "a size like this comes from a negative number or an overflow: look at how the caller "
      "computes it"};
}

std::optional<Finding<RestrictionProof>> device_restricted(const Shortage& shortage) {
  for (const auto find : {by_compute_mode, by_slice, by_quota, by_cgroup})
    if (auto found = find(shortage)) return found;
  return std::nullopt;
}

std::optional<Finding<LargerProof>> larger_than_device(const Shortage& shortage) {
  if (!is_larger(shortage)) return std::nullopt;
  const auto total = shortage.fact(Fact::total_bytes);
  const std::string& slice = shortage.given().slice;
  LargerProof proof;
  proof.total_bytes = total;
  proof.requested_bytes = shortage.requested_bytes();
  if (slice.empty())
    return Finding{proof, "the whole device has " + human_bytes(total.value_or(0)) +
                              ": split the request, or use several devices or managed memory" +
                              alternative_of_spilling(shortage)};
  const auto whole = shortage.incident().fact(Fact::whole_device_bytes);
  proof.slice = slice;
  proof.whole_device_bytes = whole;
  return Finding{
      proof,
      slice_of(shortage) +
          (whole ? "which has no more than " + human_bytes(*whole) +
                       " itself: split the request, or use several devices or managed memory"
                 : "and how much that has is not known: split the request, or use a larger slice, "
                   "several devices or managed memory") +
          alternative_of_spilling(shortage)};
}

}  // namespace cuwarden::verdicts
