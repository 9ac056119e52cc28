// Ways to run out of memory, with sizes, order, thread, device and API to choose from:
//
//     shortages SITUATION [name=value]...
//
// SITUATION is one of slabs, rounding, pending, own, changing, larger, absurd, library, recovers,
// repeats, enough; of host_shortages.cpp, freeing_shortage.cpp or
// implicit_shortages.cpp. only=MIB is what is left of the
// device for it. The last line is what the program itself knows, as JSON: what was asked for, what
// was free, and what it holds or has lost by its own count.
#include "tests/end_to_end/programs/incidents/shortages.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "samples/libraries/tensor_cache.hpp"
#include "tests/comes_about.hpp"
#include "tests/end_to_end/programs/device_memory.hpp"

namespace shortages {

Facts facts;

namespace {

std::map<std::string, std::string> options;
bool by_driver = false;

}  // namespace

std::string text(const char* name, const char* otherwise) {
  const auto found = options.find(name);
  return found == options.end() ? otherwise : found->second;
}
std::size_t number(const char* name, std::size_t otherwise) {
  const auto found = options.find(name);
  return found == options.end() ? otherwise : std::strtoull(found->second.c_str(), nullptr, 0);
}

[[gnu::noinline]] void* allocate(std::size_t bytes) {
  if (by_driver) {
    CUdeviceptr memory = 0;
    return cuMemAlloc(&memory, bytes) == CUDA_SUCCESS ? reinterpret_cast<void*>(memory) : nullptr;
  }
  void* memory = nullptr;
  return cudaMalloc(&memory, bytes) == cudaSuccess ? memory : nullptr;
}

namespace {

cuwarden::test::DeviceMemory device_memory() {
  cuwarden::test::DeviceMemory memory;
  cudaMemGetInfo(&memory.free, &memory.total);
  return memory;
}

}  // namespace

std::size_t free_bytes() { return device_memory().free; }

// Leaves `room` bytes of the device, about.
void leave(std::size_t room) {
  const std::size_t free = free_bytes();
  if (free <= room + page) return;
  const std::size_t bytes = (free - room) / page * page;
  if (allocate(bytes) != nullptr) facts.held_beside += bytes;
}

[[gnu::noinline]] void* request(std::size_t bytes) {
  facts.requested = bytes;
  facts.free = free_bytes();
  void* const memory = allocate(bytes);
  ++(memory == nullptr ? facts.failures : facts.served);
  return memory;
}

namespace {

void release(void* memory) {
  if (by_driver)
    cuMemFree(reinterpret_cast<CUdeviceptr>(memory));
  else
    cudaFree(memory);
}

std::size_t live_bytes = 0;
std::vector<void*> fill(std::size_t bytes, std::size_t until_free) {
  std::vector<void*> all;
  while (free_bytes() > until_free) {
    // Several at a time: to ask how much is free takes as long as an allocation.
    for (int i = 0; i < (bytes <= MiB ? 8 : 1); ++i) {
      void* const memory = allocate(bytes);
      if (memory == nullptr) return all;
      all.push_back(memory);
      live_bytes += bytes;
    }
  }
  return all;
}

// Small blocks, of which all but every `keep`-th are freed, in a random order.
void slabs() {
  const std::size_t bytes = number("bytes", 65536), keep = number("keep", 4);
  const std::size_t at_first = free_bytes();
  std::vector<void*> all = fill(bytes, 64 * MiB);
  std::vector<void*> going;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i % keep != 0) going.push_back(all[i]);
  std::shuffle(going.begin(), going.end(), std::mt19937_64(number("seed", 1)));
  for (void* memory : going) release(memory);
  // The device lost more than is live, which comes in steps of 512 bytes.
  const std::size_t live = (all.size() - going.size()) * ((bytes + 511) / 512 * 512);
  facts.figure = at_first - free_bytes() - live;
  request(going.size() * bytes);
}

void rounding() {
  const std::size_t bytes = number("bytes", 3 * MiB);
  std::vector<void*> all;
  const std::size_t before = free_bytes();
  while (void* memory = allocate(bytes)) all.push_back(memory);
  ++facts.failures;
  facts.requested = bytes;
  facts.free = free_bytes();
  facts.figure = before - facts.free - all.size() * bytes;
}

// elsewhere=1: in another context than the one that asks. freer=1: by another thread, which goes
// on.
void pending() {
  const std::size_t streams = number("streams", 4);
  CUcontext other = nullptr;
  if (number("elsewhere", 0) != 0 && make_context() == CUDA_SUCCESS) cuCtxPopCurrent(&other);
  const std::size_t bytes = free_bytes() / 10 * 8 / streams / page * page;
  std::vector<cudaStream_t> all(streams);
  std::vector<void*> buffers(streams);
  const auto use = [&] {
    if (other != nullptr) cuCtxPushCurrent(other);
    for (std::size_t i = 0; i < streams; ++i) {
      if (number("own", 0) != 0)
        all[i] = cudaStreamPerThread;
      else
        cudaStreamCreateWithFlags(&all[i], cudaStreamNonBlocking);
      cudaMallocAsync(&buffers[i], bytes, all[i]);
    }
    cudaDeviceSynchronize();
    for (std::size_t i = 0; i < streams; ++i) {
      if (const std::size_t ms = number("busy", 0); ms != 0) work_in(all[i], ms);
      cudaFreeAsync(buffers[i], all[i]);
      facts.figure += bytes;
    }
    if (other != nullptr) cuCtxPopCurrent(&other);
  };
  if (number("freer", 0) == 0) {
    use();
    request(free_bytes() + number("more", 512) * MiB);
    return;
  }
  // The thread's end would end its own stream, and give back what was freed there.
  std::atomic<bool> has_freed{false}, was_asked{false};
  std::thread freer([&] {
    use();
    has_freed = true;
    cuwarden::wait_until("the request was made", [&] { return was_asked.load(); });
  });
  cuwarden::wait_until("the memory was freed", [&] { return has_freed.load(); });
  request(free_bytes() + number("more", 512) * MiB);
  was_asked = true;
  freer.join();
}

void own() {
  const std::size_t bytes = number("bytes", 64 * MiB);
  fill(bytes, number("room", 256) * MiB);
  facts.figure = live_bytes;
  request(free_bytes() + number("more", 64) * MiB);
}

// Makes several requests at one call site. The earliest finds room once a free is done; the others
// find none.
void changing() {
  cudaStream_t stream{};
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  void* buffer = nullptr;
  const std::size_t bytes = free_bytes() / 10 * 8 / page * page;
  cudaMallocAsync(&buffer, bytes, stream);
  cudaDeviceSynchronize();
  cudaFreeAsync(buffer, stream);
  for (std::size_t i = 0; i < number("times", 3); ++i)
    request(free_bytes() + (i == 0 ? bytes - 64 * MiB : i * 128 * MiB));
}

void library() {
  std::vector<void*> tensors;
  const std::size_t bytes = number("bytes", 64 * MiB);
  while (free_bytes() > number("room", 512) * MiB) {
    void* const tensor = tensor_cache_allocate(bytes);
    if (tensor == nullptr) break;
    tensors.push_back(tensor);
  }
  facts.figure = tensors.size() * bytes;
  if (number("idle", 1) != 0)
    for (void* tensor : tensors) tensor_cache_release(tensor);
  request(free_bytes() + number("more", 128) * MiB);
}

// Repeats a failed request after freeing something, as caching allocators do.
void recovers() {
  const std::size_t rounds = number("rounds", 3);
  leave(512 * MiB);
  for (std::size_t i = 0; i < rounds; ++i) {
    void* const cached = allocate(256 * MiB);
    void* got = request(400 * MiB);
    release(cached);
    if (got == nullptr && number("gives_up", 0) <= i) got = request(400 * MiB);
    release(got);
  }
}

void repeats() {
  leave(64 * MiB);
  const std::size_t times = number("times", 1000);
  for (std::size_t i = 0; i < times; ++i) request(1024 * MiB + i * page);
}

void run(const std::string& situation) {
  if (before_any_context(situation)) return;
  cudaSetDevice(static_cast<int>(number("device", 0)));
  cudaFree(nullptr);
  // Takes most of a large device at once, which would take long to fill otherwise.
  if (const std::size_t only = number("only", 0); only != 0) leave(only * MiB);
  if (situation == "slabs") slabs();
  if (situation == "rounding") rounding();
  if (situation == "pending") pending();
  if (situation == "own") own();
  if (situation == "changing") changing();
  if (situation == "larger") request(device_memory().total + number("more", 1) * MiB);
  if (situation == "absurd")
    request(number("bytes", 0) == 0 ? ~std::size_t{0} : number("bytes", 0));
  if (situation == "library") library();
  if (situation == "recovers") recovers();
  if (situation == "repeats") repeats();
  if (situation == "enough") request(free_bytes() / 2 / page * page);
  of_the_host(situation);
  while_another_thread_frees(situation);
  without_an_allocation(situation);
}

}  // namespace
}  // namespace shortages

using namespace shortages;

int main(int count, char** arguments) {
  if (count < 2) return 2;
  for (int i = 2; i < count; ++i) {
    const std::string given = arguments[i];
    const std::size_t equals = given.find('=');
    options[given.substr(0, equals)] = given.substr(equals + 1);
  }
  by_driver = text("api", "runtime") == "driver";
  if (number("thread", 0) != 0)
    std::thread(run, arguments[1]).join();
  else
    run(arguments[1]);
  std::printf(
      "{\"requested_bytes\":%zu,\"free_bytes\":%zu,\"figure\":%zu,\"failures\":%zu,"
      "\"served\":%zu,\"held_beside\":%zu}\n",
      facts.requested, facts.free, facts.figure, facts.failures, facts.served, facts.held_beside);
}
