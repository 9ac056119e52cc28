// A program that gets its device memory from an allocator like PyTorch's, and prints what the
// allocator itself knows of it.
//
// Usage: tensors MODE [kill]. `keep` keeps 5 of 8 tensors, from two lines. `fill` cuts the device
// up, then asks for more than the largest hole. `other` fills the allocator's cache, then calls
// cudaMalloc itself. `empty` gives the cache back at the end. With `kill` the program ends by
// SIGKILL.
#include <cuda_runtime.h>

#include <csignal>
#include <cstdio>
#include <string_view>
#include <vector>

#include "tests/end_to_end/programs/frameworks/c10_report.hpp"
#include "tests/end_to_end/programs/frameworks/caching_allocator.hpp"

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

[[gnu::noinline]] void* activation() {
  void* const block = c10::cuda::raw_alloc(3 * mib + 100);  // line of activations
  asm volatile("");
  return block;
}

[[gnu::noinline]] void* weight() {
  void* const block = c10::cuda::raw_alloc(mib);  // line of weights
  asm volatile("");
  return block;
}

void print_figures() {
  const c10::cuda::Figures now = c10::cuda::figures();
  std::printf(
      "{\"reserved\": %zu, \"allocated\": %zu, \"holes\": %zu, \"hole_bytes\": %zu, "
      "\"largest_free\": %zu, \"reports\": %lld, \"last\": %lld}\n",
      now.reserved, now.allocated, now.holes, now.hole_bytes, now.largest_free,
      static_cast<long long>(c10::report_count()), static_cast<long long>(c10::last_report()));
  std::fflush(stdout);
}

void keep() {
  std::vector<void*> freed;
  for (int i = 0; i < 3; ++i) {
    freed.push_back(activation());
    weight();
  }
  freed.push_back(activation());
  activation();
  for (std::size_t i = 0; i < 3; ++i) c10::cuda::raw_delete(freed[i]);
}

// Leaves one block of each segment live.
void fill() {
  std::vector<void*> all;
  while (void* const block = c10::cuda::raw_alloc(10 * mib)) all.push_back(block);
  for (std::size_t i = 0; i < all.size(); i += 2) c10::cuda::raw_delete(all[i]);
  print_figures();
  if (c10::cuda::raw_alloc(15 * mib) != nullptr) std::puts("granted");
}

void empty() {
  void* const kept = weight();
  void* const large = c10::cuda::raw_alloc(100 * mib);
  c10::cuda::raw_delete(large);
  c10::cuda::empty_cache();
  asm volatile("" : : "r"(kept));
}

void ask_for_others() {
  std::vector<void*> all;
  while (void* const block = c10::cuda::raw_alloc(10 * mib)) all.push_back(block);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i % 8 != 0) c10::cuda::raw_delete(all[i]);
  void* own = nullptr;
  if (cudaMalloc(&own, 200 * mib) == cudaSuccess) std::puts("granted");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "keep";
  if (what == "keep") keep();
  if (what == "fill") fill();
  if (what == "other") ask_for_others();
  if (what == "empty") empty();
  print_figures();
  if (argc > 2) std::raise(SIGKILL);
}
