// Libraries that keep memory for themselves are recognised by the files of their code.
#include "reporters/owners/library_reserves.hpp"

#include <gtest/gtest.h>

namespace cuwarden {
namespace {

constexpr DeviceOrdinal gpu{0};

// Returns the name of the library whose reserve such an allocation is; empty if it is none.
std::string_view library(std::string_view path, Kind kind = Kind::device) {
  const bool on_host = kind == Kind::pinned || kind == Kind::registered;
  const LibraryReserve* const reserve = reserve_of(path, kind, on_host ? no_device : gpu);
  return reserve == nullptr ? "" : reserve->library;
}

TEST(LibraryReserves, a_library_is_recognised_in_any_version_and_folder) {
  EXPECT_EQ(library("/usr/lib/libnccl.so.2"), "NCCL");
  EXPECT_EQ(library("libnccl.so"), "NCCL");
  EXPECT_EQ(library("/env/torch.libs/libnccl-6fa8a4f6.so.2.18.1"), "NCCL");
  EXPECT_EQ(library("/usr/lib/libcudnn_engines_precompiled.so.9"), "cuDNN");
  EXPECT_EQ(library("/env/jax_plugins/xla_cuda12/xla_cuda_plugin.so"), "JAX");
}

TEST(LibraryReserves, a_library_whose_name_only_begins_alike_is_another_one) {
  EXPECT_EQ(library("/usr/lib/libcublas.so.13"), "cuBLAS");
  EXPECT_EQ(library("/usr/lib/libcublasLt.so.13"), "cuBLASLt");
  EXPECT_EQ(library("/usr/lib/libcusolverMg.so.12"), "cuSOLVERMg");
  EXPECT_EQ(library("/opt/libncclplugin.so"), "");
  EXPECT_EQ(library("/opt/libnccl.so.2/app"), "");
}

TEST(LibraryReserves, device_memory_and_host_memory_are_kept_by_different_parts_of_a_library) {
  EXPECT_EQ(library("/env/torch/lib/libc10_cuda.so"), "PyTorch");
  EXPECT_EQ(library("/env/torch/lib/libc10_cuda.so", Kind::pinned), "");
  EXPECT_EQ(library("/env/torch/lib/libtorch_cuda.so"), "");
  EXPECT_EQ(library("/env/torch/lib/libtorch_cuda.so", Kind::pinned), "PyTorch");
  EXPECT_EQ(library("/env/torch/lib/libtorch_cuda.so", Kind::registered), "PyTorch");
}

TEST(LibraryReserves, memory_of_other_processes_is_no_reserve) {
  EXPECT_EQ(library("/usr/lib/libnccl.so.2", Kind::vmm), "NCCL");
  EXPECT_EQ(library("/usr/lib/libnccl.so.2", Kind::imported), "");
}

TEST(LibraryReserves, bindings_that_pass_calls_on_do_not_ask_for_memory) {
  EXPECT_TRUE(is_between_cuda_and_asker("/usr/lib/libcudart.so.13"));
  EXPECT_TRUE(is_between_cuda_and_asker("/env/cupy_backends/cuda/api/runtime.cpython-312.so"));
  EXPECT_FALSE(is_between_cuda_and_asker("/env/cupy/cuda/memory.cpython-312.so"));
}

}  // namespace
}  // namespace cuwarden
