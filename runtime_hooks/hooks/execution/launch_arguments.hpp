// Arguments of the driver functions that launch kernels.
#pragma once

#include <cstdint>

#include "runtime_hooks/driver/cuda_api.hpp"

namespace cuwarden::hooks {

// Returns the kernel among the arguments of a driver function that launches kernels: the first
// argument.
template <class... Rest>
constexpr CUfunction kernel_among(CUfunction kernel, Rest...) {
  return kernel;
}
// Returns the kernel among the arguments of a driver function that launches kernels: the second
// argument, after a CUlaunchConfig.
template <class First, class... Rest>
constexpr CUfunction kernel_among(First, CUfunction kernel, Rest...) {
  return kernel;
}

// Returns the number of threads of a block, from the arguments of a driver function that launches
// kernels. Returns 0 for functions whose arguments do not say the number.
constexpr std::uint64_t block_threads(...) { return 0; }
// Returns the number of threads of a block, from the arguments of cuLaunchKernel and similar
// functions: a kernel, the grid's size and the block's size.
template <class... Rest>
std::uint64_t block_threads(CUfunction, unsigned, unsigned, unsigned, unsigned x, unsigned y,
                            unsigned z, Rest...) {
  return std::uint64_t{x} * y * z;
}
// Returns the number of threads of a block, from the arguments of cuLaunchKernelEx: a
// CUlaunchConfig. Returns 0 if that is null.
template <class... Rest>
std::uint64_t block_threads(const CUlaunchConfig* config, Rest...) {
  return config == nullptr
             ? 0
             : std::uint64_t{config->blockDimX} * config->blockDimY * config->blockDimZ;
}

}  // namespace cuwarden::hooks
