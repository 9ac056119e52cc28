// Records the requests of a program for device memory, in their order, as a trace for the pool's
// benchmark. The CUDA driver loads this library into any program:
//
//   CUDA_INJECTION64_PATH=librecord_requests.so RECORDED_REQUESTS=trace.txt program
//
// A trace is a text. Its lines are either "+BYTES SITE", a request that was served, with the number
// of its call site; or "-AGE", the free of the request that was made AGE requests ago (1: the
// latest). Two requests have one call site if all return addresses on their stacks are the same.
// Only cuMemAlloc_v2 and cuMemFree_v2 are recorded, the functions behind cudaMalloc and cudaFree.
#include <cuda.h>
#include <cupti.h>
#include <execinfo.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <span>

namespace {

// The requests so far, and the file to which they are written.
struct Recording {
  std::mutex mutex;
  std::FILE* file = nullptr;
  std::uint64_t requests = 0;
  std::map<CUdeviceptr, std::uint64_t> live;     // number of the request by its address
  std::map<std::uint64_t, std::uint64_t> sites;  // number of the call site by its stack's hash
};
// Is never destroyed: threads may still free memory while the process ends.
Recording& recording = *new Recording;

// Returns a hash of the return addresses on the calling thread's stack.
std::uint64_t stack_hash() {
  std::array<void*, 64> frames{};
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  std::uint64_t hash = 1469598103934665603u;
  for (void* const frame : std::span(frames).first(static_cast<std::size_t>(count)))
    hash = (hash ^ reinterpret_cast<std::uint64_t>(frame)) * 1099511628211u;
  return hash;
}

void served(CUdeviceptr address, std::size_t bytes) {
  const std::uint64_t hash = stack_hash();
  const std::lock_guard lock(recording.mutex);
  recording.live[address] = ++recording.requests;
  const std::uint64_t site =
      recording.sites.try_emplace(hash, recording.sites.size()).first->second;
  std::fprintf(recording.file, "+%zu %llu\n", bytes, static_cast<unsigned long long>(site));
}

void freed(CUdeviceptr address) {
  const std::lock_guard lock(recording.mutex);
  const auto found = recording.live.find(address);
  if (found == recording.live.end()) return;
  std::fprintf(recording.file, "-%llu\n",
               static_cast<unsigned long long>(recording.requests - found->second + 1));
  recording.live.erase(found);
}

void CUPTIAPI call_ended(void*, CUpti_CallbackDomain, CUpti_CallbackId id, const void* data) {
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  if (id == CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2) {
    // Noted when it begins: once it has ended, another thread may get the address.
    if (call.callbackSite == CUPTI_API_ENTER)
      freed(static_cast<const cuMemFree_v2_params*>(call.functionParams)->dptr);
    return;
  }
  if (call.callbackSite != CUPTI_API_EXIT ||
      *static_cast<const CUresult*>(call.functionReturnValue) != CUDA_SUCCESS)
    return;
  const auto& request = *static_cast<const cuMemAlloc_v2_params*>(call.functionParams);
  served(*request.dptr, request.bytesize);
}

}  // namespace

// The driver calls this function when it starts, before the program's first call returns. Returns 1
// if the program is recorded.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const char* const name = std::getenv("RECORDED_REQUESTS");
  recording.file = name == nullptr ? nullptr : std::fopen(name, "we");
  CUpti_SubscriberHandle subscriber = nullptr;
  if (recording.file == nullptr ||
      cuptiSubscribe(&subscriber, call_ended, nullptr) != CUPTI_SUCCESS) {
    std::fprintf(stderr,
                 "record_requests: RECORDED_REQUESTS names no file that can be written, or "
                 "another tool uses CUPTI; nothing is recorded\n");
    return 0;
  }
  for (const CUpti_CallbackId id :
       {CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2})
    cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
  return 1;
}
