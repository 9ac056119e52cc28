#include "shim/policy/rescue_notices.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <string>

#include "reporters/words/quantities.hpp"
#include "runtime_hooks/core/confinement.hpp"
#include "shim/policy/host_process.hpp"
#include "shim/support/log.hpp"

namespace cuwarden::shim {

void RescueNotices::write(serving::Notice notice, DeviceOrdinal device, std::uint64_t bytes,
                          std::uint64_t host_bytes) noexcept try {
  if (is_confined()) return;  // it says nothing
  using enum serving::Notice;
  const std::string of =
      "CUWARDEN_SPILL: of " + human_bytes(bytes) + " on GPU " + std::to_string(device.value) + " ";
  const std::string left_apart =
      "CUWARDEN_MESH: " + human_bytes(bytes) + " on GPU " + std::to_string(device.value) +
      " are free parts of the pool's pages, which are not put together: ";
  const std::string amount =
      human_bytes(bytes) + (device == no_device ? std::string(" of the host's memory")
                                                : " on GPU " + std::to_string(device.value));
  switch (notice) {
    case not_granted:
      return log_warn(
          "GPU " + std::to_string(device.value) +
          " and another one of this process cannot reach each other's memory: copies "
          "between them fail for what CUWARDEN_SPILL and CUWARDEN_POOL served; from now "
          "on CUWARDEN_POOL serves nothing");
    case spilled:
      return log_warn(of + human_bytes(host_bytes) +
                      " lie in the host's memory, which is slower; later ones are not announced");
    case cap_reached:
      return log_warn(of +
                      "too much would lie in the host's memory for what is allowed: it is not put "
                      "there");
    case host_is_full:
      return log_warn(of +
                      "too much would lie in the host's memory for what it has left (RAM, or "
                      "the cgroup's limit): it is not put there");
    case not_supported:
      return log_warn(of +
                      "nothing can lie in the host's memory: this device or its driver cannot "
                      "map that; requests fail as ever");
    case refused:
      return log_warn(of + "nothing could be put into the host's memory: the driver refused");
    case lost:
      return log_error("CUWARDEN_MESH: the driver refused to map " + human_bytes(bytes) +
                       " of the program's memory on GPU " + std::to_string(device.value) +
                       " again: what lay there is lost; please report this, and use "
                       "CUWARDEN_MESH=off");
    case memory_has_handle:
      return log_warn(left_apart +
                      "the program had handles made for memory, by which others reach it");
    case library_reaches_memory:
      return log_warn(left_apart + libraries_that_reach_memory() +
                      " may reach it without a call of the driver");
    case unknown_functions:
      return log_warn(left_apart +
                      "the program uses functions of the driver that are newer than cuwarden");
    case pool_not_supported:
      return log_warn("CUWARDEN_POOL=on: GPU " + std::to_string(device.value) +
                      " or its driver cannot map memory: its requests are left to the driver, and "
                      "the pool serves page-locked memory alone");
    case waits:
      return log_warn(
          "CUWARDEN_WAIT: there is no room for " + amount + ": the request waits until there is" +
          (device == no_device
               ? std::string()
               : " (`cuwarden snapshot " + std::to_string(getpid()) + "` says who has what)") +
          "; later waits are not announced");
    case waited_in_vain:
      return log_warn("CUWARDEN_WAIT: room for " + amount +
                      " did not come in time; the request fails");
    case pool_not_shared:
      return log_warn("CUWARDEN_POOL: an allocation of " + human_bytes(bytes) + " on GPU " +
                      std::to_string(device.value) +
                      " was served by the pool: no other process can open it "
                      "(cuIpcGetMemHandle fails); CUWARDEN_POOL=rescue leaves it to the driver");
    case not_shared:
      return log_warn(of + human_bytes(host_bytes) +
                      " lie in the host's memory: no other process can open it "
                      "(cuIpcGetMemHandle fails)");
  }
} catch (...) {
}  // no memory to say it with

void RescueNotices::write(serving::ReclaimerFailure failure, std::string_view name) noexcept try {
  using enum serving::ReclaimerFailure;
  const auto text = [failure] {
    switch (failure) {
      case does_not_return:
        return "does not return: the request goes on without it (CUWARDEN_SYNC_TIMEOUT)";
      case threw:
        return "ended by an exception: the request goes on without it";
      case gave_nothing:
        return "gave nothing back";
      default:
        return "was not called: no thread could be started for it";
    }
  };
  log_warn(fmt::format("reclaimer {} {}", name, text()));
} catch (...) {
}  // no memory to say it with

}  // namespace cuwarden::shim
