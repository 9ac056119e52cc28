// A request that a sample plans to fail, and the facts that the sample itself knows about it. The
// sample prints these facts as its last line, one JSON object. So a report can be checked against
// facts that do not come from cuwarden.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>

#include "samples/planted_leaks.hpp"

namespace sample {

constexpr std::size_t kMiB = std::size_t{1} << 20;  // Bytes of a MiB.
constexpr std::size_t kGiB = std::size_t{1} << 30;  // Bytes of a GiB.
// Bytes to whose multiples the driver rounds up large requests.
constexpr std::size_t kDevicePage = 2 * kMiB;

// The bytes of a device that cudaMemGetInfo reports.
struct DeviceMemory {
  std::size_t free = 0;   // Bytes of the device that no process uses.
  std::size_t total = 0;  // Bytes of the device.
};

// Returns the present memory of the current device. If it cannot be read, ends the program with
// status 1.
inline DeviceMemory device_memory() {
  DeviceMemory now;
  require(cudaMemGetInfo(&now.free, &now.total), "cudaMemGetInfo");
  return now;
}

// The program's own count of its memory from CUDA, in the bytes that it asked for.
struct Account {
  std::size_t live_bytes = 0;   // Bytes that the program has allocated and not freed.
  std::size_t live_count = 0;   // Number of allocations that the program has not freed.
  std::size_t freed_bytes = 0;  // Bytes that the program has freed.
  std::size_t freed_count = 0;  // Number of allocations that the program has freed.

  // Counts an allocation of `bytes` bytes as live.
  void allocated(std::size_t bytes) {
    live_bytes += bytes;
    ++live_count;
  }
  // Counts an allocation of `bytes` bytes, which was live, as freed.
  void freed(std::size_t bytes) {
    live_bytes -= bytes;
    --live_count;
    freed_bytes += bytes;
    ++freed_count;
  }
};

// A request for memory, and the device's memory right before it.
struct Request {
  const char* api = "";               // The CUDA function that is called, such as "cudaMalloc".
  std::size_t bytes = 0;              // Bytes that the request asks for.
  const char* function = "";          // Name of the sample's function that makes the call.
  int line = 0;                       // Line of the call in the sample's source.
  std::optional<cudaError_t> result;  // Result of the call; null until the call has returned.
  // Memory of the device right before the request; all 0 if the device was not asked.
  DeviceMemory before;

  // Returns a request that is about to be made, with the device's present memory. Each parameter is
  // the value of the member with its name.
  static Request planned(const char* api, std::size_t bytes, const char* function, int line) {
    Request request{api, bytes, function, line, {}, {}};
    request.before = device_memory();
    return request;
  }
  // Returns a request without the device's memory: for host memory, or if the device may not
  // answer. Each parameter is the value of the member with its name.
  static Request without_device(const char* api, std::size_t bytes, const char* function,
                                int line) {
    return {api, bytes, function, line, {}, {}};
  }
};

// Returns `,"name":value`, a member of the JSON object that the sample prints, with a number as its
// value.
inline std::string fact(const char* name, std::size_t value) {
  return ",\"" + std::string(name) + "\":" + std::to_string(value);
}

// Returns `,"name":"value"`, a member of the JSON object that the sample prints, with a text as its
// value.
inline std::string fact(const char* name, const char* value) {
  return ",\"" + std::string(name) + "\":\"" + value + '"';
}

// Returns `,"name":null`, a member of the JSON object that the sample prints, for an unknown value.
inline std::string missing_fact(const char* name) { return ",\"" + std::string(name) + "\":null"; }

// Returns the JSON object about the request and the program's memory. `extra`: further members,
// each made by fact(); may be empty. `device`: CUDA ordinal of the request's device, or "null" for
// host memory.
inline std::string text_of(const Request& request, const Account& account,
                           const std::string& extra = "", const char* device = "0") {
  const bool asked_device = request.before.total != 0;
  return "{\"request\":{\"api\":\"" + std::string(request.api) + '"' +
         fact("bytes", request.bytes) + ",\"device\":" + device +
         fact("function", request.function) + fact("line", static_cast<std::size_t>(request.line)) +
         (request.result ? fact("error", cudaGetErrorName(*request.result))
                         : missing_fact("error")) +
         '}' +
         (asked_device ? fact("free_bytes", request.before.free) : missing_fact("free_bytes")) +
         (asked_device ? fact("total_bytes", request.before.total) : missing_fact("total_bytes")) +
         fact("live_bytes", account.live_bytes) + fact("live_count", account.live_count) +
         fact("freed_bytes", account.freed_bytes) + fact("freed_count", account.freed_count) +
         extra + "}";
}

// Prints the facts about the request and the program's memory as one JSON object, whatever the
// result. Returns the program's exit status: 0 if the request ran out of memory as planned;
// otherwise 1, after a line on stderr that says why. `extra`: further members, each made by fact();
// may be empty. `device`: CUDA ordinal of the request's device, or "null" for host memory.
inline int conclude(const Request& request, const Account& account, const std::string& extra = "",
                    const char* device = "0") {
  std::printf("%s\n", text_of(request, account, extra, device).c_str());
  if (request.result == cudaErrorMemoryAllocation) return 0;
  if (!request.result) {
    std::fprintf(stderr, "there was no request that could fail\n");
  } else if (*request.result == cudaSuccess) {
    std::fprintf(stderr, "%s of %zu bytes was to fail, and was served\n", request.api,
                 request.bytes);
  } else {
    std::fprintf(stderr, "%s of %zu bytes was to run out of memory, and failed otherwise: %s\n",
                 request.api, request.bytes, cudaGetErrorString(*request.result));
  }
  return 1;
}

// Frees the device memory of a request that was served although it was planned to fail, and counts
// it in `account` as allocated and freed. The report of the run then begins with the rescue and not
// with a leak. Does nothing if the request failed. `memory`: the memory of the served request.
inline void free_if_served(const Request& request, void* memory, Account& account) {
  if (request.result != cudaSuccess) return;
  account.allocated(request.bytes);
  require(cudaFree(memory), "cudaFree");
  account.freed(request.bytes);
}

// Allocates the free memory of the current device in one piece, except for `room` bytes and less
// than 2 MiB more. Counts the piece in `account`; it is never freed. Does nothing if less than
// `room` bytes plus 1 GiB are free. If the allocation fails, ends the program with status 1. A
// sample that fills the device then takes no longer on a large device than on a small one.
inline void hold_all_but(std::size_t room, Account& account) {
  const std::size_t free = device_memory().free;
  if (free < room + kGiB) return;
  const std::size_t bytes = (free - room) / kDevicePage * kDevicePage;
  void* weights = nullptr;
  require(cudaMalloc(&weights, bytes), "cudaMalloc");
  account.allocated(bytes);
}

}  // namespace sample
