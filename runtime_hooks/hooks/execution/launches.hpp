// Launches of kernels. A kernel's first launch brings its code to the device. If its threads need
// more local memory than those of all kernels before, the driver also takes that memory, for as
// many threads as the device can hold at once.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime_hooks/hooks/call/hooked_call.hpp"
#include "runtime_hooks/hooks/execution/implicit_span.hpp"
#include "runtime_hooks/tracking/launched_kernels.hpp"

namespace cuwarden::hooks {

// Returns the kernel among the arguments of a launching function.
template <class... Rest>
constexpr CUfunction kernel_among(CUfunction kernel, Rest...) {
  return kernel;
}
template <class First, class... Rest>
constexpr CUfunction kernel_among(First, CUfunction kernel, Rest...) {
  return kernel;
}

// Returns the number of threads of a block from a launching function's arguments; 0 if they do not
// say it.
constexpr std::uint64_t block_threads(...) { return 0; }
template <class... Rest>
std::uint64_t block_threads(CUfunction, unsigned, unsigned, unsigned, unsigned x, unsigned y,
                            unsigned z, Rest...) {
  return std::uint64_t{x} * y * z;
}
template <class... Rest>
std::uint64_t block_threads(const CUlaunchConfig* config, Rest...) {
  return config == nullptr
             ? 0
             : std::uint64_t{config->blockDimX} * config->blockDimY * config->blockDimZ;
}

// Measures the first launch of a kernel. To be made before the real launch; done() comes after it.
class FirstLaunch {
 public:
  // `block_threads`: number of threads of a block; 0 if the call does not say.
  FirstLaunch(HookedCall&, CUfunction, std::uint64_t block_threads) noexcept;
  void done(CUresult) noexcept;

 private:
  std::uint64_t local_bytes() const noexcept;
  bool was_captured(std::optional<std::int64_t> taken) const noexcept;
  std::uint64_t bytes_that_lacked(CUresult) const noexcept;
  std::uint64_t heap_that_lacked(std::uint64_t set_bytes) const noexcept;
  void succeeded(std::optional<std::int64_t> taken) noexcept;
  HookedCall& call_;
  const CUfunction kernel_;
  const std::uint64_t block_threads_;
  ImplicitSpan span_;
  CurrentContext here_;
  std::uint64_t local_needed_ = 0;  // bytes of local memory of a thread; 0: not known, or none
};

// Measures the instantiation of a graph, which takes the local memory that the graph's kernels
// need. Measures only if a captured kernel needs more local memory than all before, or if a heap
// may come.
class GraphInstantiation {
 public:
  explicit GraphInstantiation(HookedCall&) noexcept;
  void done() noexcept;

 private:
  HookedCall& call_;
  ImplicitSpan span_;
  CurrentContext here_;
};

template <class Launch>
CUresult first_launch(HookedCall& call, CUfunction kernel, std::uint64_t block_threads,
                      Launch launch) {
  FirstLaunch first(call, kernel, block_threads);
  const CUresult result = launch();
  first.done(result);
  return result;
}

}  // namespace cuwarden::hooks
