#include "reporters/device_restrictions.hpp"

#include "reporters/quantities.hpp"

namespace cuwarden {
namespace {

using ledger::Fact;

// CUcomputemode.
constexpr std::uint64_t prohibited_mode = 2, exclusive_process_mode = 3;

}  // namespace

std::optional<Judgement> forbidden_by_the_compute_mode(const ledger::IncidentView& incident) {
  const auto mode = incident.fact(Fact::compute_mode);
  if (incident.result == out_of_memory || incident.asked != ledger::Asked::context ||
      (mode != prohibited_mode && mode != exclusive_process_mode))
    return std::nullopt;
  Judgement judgement;
  judgement.verdict = Verdict::device_restricted;
  if (mode == prohibited_mode) {
    judgement.proof.emplace_back("compute_mode", "prohibited");
    judgement.advice =
        "the device is in compute mode PROHIBITED, in which it takes no context: use another "
        "device, or have the mode lifted (nvidia-smi -c DEFAULT, as root)";
    return judgement;
  }
  judgement.proof.emplace_back("compute_mode", "exclusive_process");
  prove(judgement.proof, "other_processes_bytes", incident.fact(Fact::other_processes_bytes));
  judgement.advice =
      "the device is in compute mode EXCLUSIVE_PROCESS and has its one context already, another "
      "process's or this one's: wait for that to end, use another device, or have the mode lifted "
      "(nvidia-smi -c DEFAULT, as root)";
  return judgement;
}

Judgement larger_than_slice(const ledger::IncidentView& incident, const std::string& slice,
                            std::uint64_t slice_bytes) {
  const auto whole = incident.fact(Fact::whole_device_bytes);
  Judgement judgement;
  judgement.proof.emplace_back("slice", slice);
  prove(judgement.proof, "whole_device_bytes", whole);
  const bool restricted = whole && incident.bytes <= *whole;
  judgement.verdict = restricted ? Verdict::device_restricted : Verdict::larger_than_device;
  judgement.advice =
      "the process has a slice (MIG) of " + human_bytes(slice_bytes) + " of the device, ";
  if (restricted)
    judgement.advice += "which has " + human_bytes(*whole) +
                        ": use a larger slice or the whole device, or split the request";
  else if (whole)
    judgement.advice += "which has no more than " + human_bytes(*whole) +
                        " itself: split the request, or use several devices or managed memory";
  else
    judgement.advice +=
        "and how much that has is not known: split the request, or use a larger slice, several "
        "devices or managed memory";
  return judgement;
}

std::optional<Judgement> above_the_quota(const ledger::IncidentView& incident,
                                         const QuotaUse& use) {
  const auto limit = incident.fact(Fact::mps_limit_bytes);
  // Who has more than that already lives where nobody enforces it.
  if (!limit || use.live > *limit || use.held + use.taken <= *limit) return std::nullopt;
  Judgement judgement;
  judgement.verdict = Verdict::device_restricted;
  prove(judgement.proof, "mps_limit_bytes", *limit);
  prove(judgement.proof, "own_bytes", use.live);
  prove(judgement.proof, "held_bytes", use.held);
  judgement.advice = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT gives this process " + human_bytes(*limit) +
                     " of the device, of which it has " + human_bytes(use.held) +
                     ": raise that limit, or hold less; the device itself has room";
  return judgement;
}

}  // namespace cuwarden
