#include "shim/policy/serving_notices.hpp"

#include <unistd.h>

#include <string>

#include "reporters/words/quantities.hpp"
#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/driver/unknown_calls.hpp"
#include "shim/policy/host_process.hpp"
#include "shim/support/log.hpp"

namespace cuwarden::shim {

void ServingNotices::write(serving::Notice notice, DeviceOrdinal device, std::uint64_t bytes,
                           std::uint64_t host_bytes) noexcept try {
  if (is_confined()) return;  // the seccomp filter may forbid the write
  using enum serving::Notice;
  const std::string of = "CUWARDEN_SPILL: request of " + human_bytes(bytes) + " on GPU " +
                         std::to_string(device.value) + ": ";
  const std::string left_apart =
      "CUWARDEN_MESH: " + human_bytes(bytes) + " on GPU " + std::to_string(device.value) +
      " of the pool's pages are free in small pieces, and pages are not moved together: ";
  const std::string amount =
      human_bytes(bytes) + (device == no_device ? std::string(" of the host's memory")
                                                : " on GPU " + std::to_string(device.value));
  switch (notice) {
    case not_granted:
      return log_warn(
          "GPU " + std::to_string(device.value) +
          " and another GPU of this process cannot access each other's memory: copies "
          "between them fail for memory that CUWARDEN_SPILL or CUWARDEN_POOL served; from "
          "now on the pool serves no requests");
    case spilled:
      return log_warn(of + human_bytes(host_bytes) +
                      " are in host memory, which is slower; later allocations are not announced");
    case cap_reached:
      return log_warn(
          of +
          "not spilled, because more would be in host memory than CUWARDEN_SPILL allows; "
          "set it to a larger size");
    case host_is_full:
      return log_warn(of +
                      "not spilled, because the host would have less memory left (RAM, or the "
                      "cgroup's limit) than the reserve for other programs");
    case not_supported:
      return log_warn(of +
                      "not spilled, because this device or its driver cannot map host memory; "
                      "requests fail as without CUWARDEN_SPILL");
    case refused:
      return log_warn(of + "not spilled, because the driver refused to map host memory");
    case lost:
      return log_error("CUWARDEN_MESH: the driver refused to map " + human_bytes(bytes) +
                       " of the program's memory on GPU " + std::to_string(device.value) +
                       " again: its contents are lost; please report this, and use "
                       "CUWARDEN_MESH=off");
    case contents_differ:
      return log_error(
          "CUWARDEN_MESH: two addresses of the same memory, or a copy of it, showed different "
          "contents on GPU " +
          std::to_string(device.value) +
          ": nothing is moved there any more, and the program's data are as they were; "
          "please report this");
    case memory_not_shared:
      return log_warn(
          "CUWARDEN_MESH: a second address for " + human_bytes(bytes) + " of memory on GPU " +
          std::to_string(device.value) +
          " seems to take memory of its own, or the driver refuses it: nothing is moved there "
          "as long as this is so");
    case memory_has_handle:
      return log_warn(left_apart +
                      "the program made handles of memory, by which other processes may access it");
    case library_reaches_memory:
      return log_warn(left_apart + libraries_that_reach_memory() +
                      " may access them without a call of the driver");
    case unknown_functions:
      return log_warn(
          left_apart +
          "this cuwarden does not know functions of the driver that the program uses: " +
          driver::unknown_call.load(std::memory_order_relaxed));
    case pool_not_supported:
      return log_warn(
          "CUWARDEN_POOL=on: GPU " + std::to_string(device.value) +
          " or its driver cannot map memory: the driver serves requests for its memory, "
          "and the pool serves only page-locked memory");
    case waits:
      return log_warn("CUWARDEN_WAIT: there is no room for " + amount +
                      ": the request waits until memory is freed" +
                      (device == no_device ? std::string()
                                           : " (`cuwarden snapshot " + std::to_string(getpid()) +
                                                 "` lists its holders)") +
                      "; later waits are not announced");
    case waited_in_vain:
      return log_warn("CUWARDEN_WAIT: there was still no room for " + amount +
                      " when the time was up; the request fails");
    case pool_not_shared:
      return log_warn("CUWARDEN_POOL: an allocation of " + human_bytes(bytes) + " on GPU " +
                      std::to_string(device.value) +
                      " was served by the pool: no other process can open it "
                      "(cuIpcGetMemHandle fails); CUWARDEN_POOL=rescue leaves it to the driver");
    case not_shared:
      return log_warn(of + human_bytes(host_bytes) +
                      " are in host memory, so no other process can open it "
                      "(cuIpcGetMemHandle fails)");
  }
} catch (...) {
}  // no memory to say it with

void ServingNotices::write(serving::ReclaimerFailure failure, std::string_view name,
                           std::uint64_t waited_ns) noexcept try {
  using enum serving::ReclaimerFailure;
  const auto text = [&]() -> std::string {
    switch (failure) {
      case does_not_return:
        return "does not return: after " + human_time(waited_ns) +
               " the request goes on without it (CUWARDEN_SYNC_TIMEOUT)";
      case threw:
        return "ended by an exception: the request goes on without it";
      case gave_nothing:
        return "gave nothing back";
      case slow:
        return "took " + human_time(waited_ns) +
               ", and the request waited for it; CUWARDEN_SYNC_TIMEOUT is the longest wait";
      case no_thread:
        break;
    }
    return "was not called: no thread could be started for it";
  };
  log_warn(formatted("reclaimer {} {}", name, text()));
} catch (...) {
}  // no memory to say it with

}  // namespace cuwarden::shim
