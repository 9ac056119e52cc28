// The means of a rescue in this process: cuwarden's pools, the driver's memory pools, the ledger.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/rescue/ladder.hpp"
#include "runtime_hooks/rescue/means.hpp"
#include "runtime_hooks/serving/serving_pools.hpp"
#include "runtime_hooks/tracking/call_sites.hpp"

namespace cuwarden::rescue {

// Parts of the process that a rescue works with. All outlive it.
struct Parts {
  HostProcess& process;
  ledger::Writer& ledger;
  const driver::RealDriver& real;
  tracking::DeviceQueries& queries;
  tracking::LiveContexts& contexts;
  tracking::Captures& captures;
  tracking::MemoryPools& memory_pools;
  tracking::DeviceReadings& readings;
  tracking::CallSites& sites;
  serving::ServingPools& pools;
  serving::Notices& notices;
};

// One refused request. All references outlive the object.
class ProcessMeans final : public Means {
 public:
  ProcessMeans(const Parts& parts, const tracking::Caller& caller,
               const tracking::Allocation& asked_for, const tracking::CurrentContext& here,
               DeviceOrdinal device) noexcept
      : parts_(parts), caller_(caller), asked_for_(asked_for), here_(here), device_(device) {}

  bool is_captured() override { return parts_.captures.any(); }
  bool may_enter(ContextId context) override {
    return parts_.contexts.device_of(context) == device_;
  }
  bool trim() override { return parts_.memory_pools.trim(parts_.real, device_); }
  bool has_pool() override { return parts_.pools.has_memory_of(device_); }
  std::optional<bool> give_back_unused() override { return parts_.pools.give_back_unused(device_); }
  bool can_mesh() override {
    return device_ != no_device && device_ == here_.device && parts_.pools.can_mesh();
  }
  ledger::RungOutcome mesh() override { return parts_.pools.mesh(here_, asked_for_.bytes); }
  bool is_unsafe_to_reclaim(std::string_view modules) override;
  bool may_others_help() override;
  serving::SpillAttempt spill() override {
    return parts_.pools.spill_to_host(asked_for_, here_, device_);
  }

 private:
  const Parts& parts_;
  const tracking::Caller& caller_;
  const tracking::Allocation& asked_for_;
  const tracking::CurrentContext& here_;
  const DeviceOrdinal device_;    // no_device: host memory
  std::optional<StackId> stack_;  // the thread's whole stack, captured where it is asked for
};

}  // namespace cuwarden::rescue
