// The bug: batches go through several streams, whose buffers come from cudaMallocAsync and go back
// with cudaFreeAsync. All of them are freed when an ordinary cudaMalloc is to collect the results,
// but the program has not waited for the streams. Until it does, cudaMalloc cannot use memory that
// was freed in stream order.
//
// Users see an out-of-memory although everything has been freed. In a debugger, or with a print
// that waits for the device, the error does not come.
//
//     streams
#include <cuda_runtime_api.h>

#include <cstdio>
#include <vector>

#include "samples/planned_shortage.hpp"

namespace {

constexpr std::size_t kStreams = 4;

sample::Account account;
std::size_t freed_in_stream_order = 0;

struct Batch {
  cudaStream_t stream = nullptr;
  void* buffer = nullptr;
};

[[gnu::noinline]] void begin(Batch& batch, std::size_t bytes) {
  sample::require(cudaMallocAsync(&batch.buffer, bytes, batch.stream), "cudaMallocAsync");
  account.allocated(bytes);
  sample::require(cudaMemsetAsync(batch.buffer, 0, sample::kMiB, batch.stream), "cudaMemsetAsync");
}

[[gnu::noinline]] void finish(Batch& batch, std::size_t bytes) {
  sample::require(cudaFreeAsync(batch.buffer, batch.stream), "cudaFreeAsync");
  account.freed(bytes);
  freed_in_stream_order += bytes;
}

[[gnu::noinline]] sample::Request collect(std::size_t bytes) {
  void* results = nullptr;
  // Missing here: cudaStreamSynchronize for each of the streams.
  auto request = sample::Request::planned("cudaMalloc", bytes, __func__, __LINE__ + 1);
  request.result = cudaMalloc(&results, bytes);
  sample::free_if_served(request, results, account);
  return request;
}

}  // namespace

int main() {
  std::vector<Batch> batches(kStreams);
  for (Batch& batch : batches) {
    sample::require(cudaStreamCreateWithFlags(&batch.stream, cudaStreamNonBlocking),
                    "cudaStreamCreateWithFlags");
  }
  const std::size_t free = sample::device_memory().free;
  const std::size_t bytes = free / 10 * 8 / kStreams / sample::kDevicePage * sample::kDevicePage;

  for (Batch& batch : batches) begin(batch, bytes);
  for (Batch& batch : batches) sample::require(cudaStreamSynchronize(batch.stream), "the batch");
  for (Batch& batch : batches) finish(batch, bytes);
  const sample::Request request = collect(free / 2);

  std::printf("%zu batches in streams of their own\n", batches.size());
  return sample::conclude(request, account,
                          sample::fact("freed_and_not_synchronised_bytes", freed_in_stream_order));
}
