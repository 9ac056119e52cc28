// What an allocation is called and whose it is: the program's own call, outside CUDA's libraries.
#include <gtest/gtest.h>

#include "reporters/cuda_frames.hpp"
#include "reporters/leak_groups.hpp"

namespace cuwarden {
namespace {

const char* const program = "/home/u/app";
const char* const runtime = "/usr/local/cuda/lib64/libcudart.so.13";
const char* const driver = "/usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05";

GroupLabel label(std::string_view api, std::vector<NamedFrame> frames) {
  return label_group(api, frames);
}

TEST(Labels, a_runtime_call_that_was_hooked_keeps_its_name) {
  EXPECT_EQ(label("cudaMallocHost", {{1, program, "main"}}).api, "cudaMallocHost");
}

TEST(Labels, a_driver_call_inside_a_static_runtime_gets_the_outermost_runtime_name) {
  const GroupLabel result = label("cuMemAlloc_v2", {{1, program, "libcudart_static_0053c1d3"},
                                                    {1, program, "cudart::driverHelper(void**)"},
                                                    {1, program, "cudaMallocPitch"},
                                                    {1, program, "cudaMalloc"},
                                                    {1, program, "load(Mesh&)"},
                                                    {1, program, "main"}});
  EXPECT_EQ(result.api, "cudaMalloc");
  EXPECT_EQ(result.module, 1u);
}

TEST(Labels, a_driver_call_inside_a_shared_runtime_gets_the_runtime_name) {
  const GroupLabel result = label("cuMemAllocAsync_ptsz", {{3, driver, ""},
                                                           {2, runtime, ""},
                                                           {2, runtime, "cudaMallocAsync_ptsz"},
                                                           {1, program, "main"}});
  EXPECT_EQ(result.api, "cudaMallocAsync");
  EXPECT_EQ(result.module, 1u);
}

TEST(Labels, a_runtime_name_further_out_than_the_programs_frames_does_not_count) {
  EXPECT_EQ(label("cuMemAlloc_v2", {{1, program, "pool()"}, {1, program, "cudaMalloc"}}).api,
            "cuMemAlloc_v2");
}

TEST(Labels, a_template_of_the_programs_own_is_not_the_runtime) {
  const char* wrapper = "cudaError cudaMalloc<float>(float**, unsigned long)";
  const GroupLabel result = label("cuMemAlloc_v2", {{1, program, wrapper}});
  EXPECT_EQ(result.api, "cuMemAlloc_v2");
  EXPECT_EQ(result.module, 1u);
}

TEST(Labels, code_in_no_module_is_passed_over) {
  EXPECT_EQ(label("cuMemAlloc_v2", {{0, "", ""}, {1, program, "main"}}).module, 1u);
  EXPECT_EQ(label("cuMemAlloc_v2", {{0, "", ""}}).module, 0u);
}

TEST(CudaFrames, variants_of_an_entry_are_the_entry) {
  EXPECT_EQ(runtime_entry("cudaMalloc_v3020"), "cudaMalloc");
  EXPECT_EQ(runtime_entry("cudaMallocFromPoolAsync_ptsz"), "cudaMallocFromPoolAsync");
  EXPECT_EQ(runtime_entry("cudaMallocFancy"), "");
  EXPECT_EQ(runtime_entry("cudaMalloc_vendor"), "");
}

TEST(CudaFrames, libraries_are_known_by_their_file_names) {
  EXPECT_TRUE(is_cuda_library("/x/libcuda.so.1"));
  EXPECT_TRUE(is_cuda_library("/x/libnvidia-ptxjitcompiler.so.1"));
  EXPECT_TRUE(is_shared_runtime("/w/nvidia.libs/libcudart-d0da41ae.so.11.0"));
  EXPECT_FALSE(is_cuda_library("/x/libcudax.so"));
  EXPECT_FALSE(is_cuda_library("/x/libcufft.so.11"));
  EXPECT_FALSE(is_cuda_library("/libcuda.so/app"));
}

}  // namespace
}  // namespace cuwarden
