// Calls that are refused on another device than the current one.
#include "tests/unit/hooks/implicit_memory_fixture.hpp"

namespace cuwarden::hooks {
namespace {

// Another thread asks for memory of this device, by a stream of it, while its own current device is
// another one.
TEST_F(ImplicitMemoryTest, ARefusedCallDisturbsTheDeviceThatItAskedForMemory) {
  auto& functions = const_cast<driver::RealDriver&>(real);
  functions.cuMemAllocAsync = [](CUdeviceptr*, size_t, CUstream) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  };
  functions.cuStreamGetCtx = [](CUstream stream, CUcontext* context) {
    return *context = reinterpret_cast<CUcontext>(stream), CUDA_SUCCESS;
  };
  const auto contexts_of_both = [this](Session& own) {
    CUcontext context = nullptr;
    for (const int ordinal : {0, 1}) {
      fake.primary = reinterpret_cast<CUcontext>(ordinal == 0 ? 0x1000 : 0x1100);
      hooked_on(real, own, Row::cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, &context,
                CUdevice{ordinal});
    }
  };
  for (const bool rescues : {false, true}) {
    Session own(*writer, real, shim.around(), {.pool = rescues ? PoolMode::rescue : PoolMode::off});
    contexts_of_both(own);
    const auto bytes_found_beside = [&](CUcontext refused_in) {
      const std::uint64_t booked = bytes().modules;
      meanwhile = [&own, this, refused_in] {
        const CallState mine = call_state;
        call_state = {};
        fake.current_device = 1;
        CUdeviceptr memory = 0;
        EXPECT_EQ(hooked_on(real, own, Row::cuMemAllocAsync, cuMemAllocAsync, &memory,
                            std::size_t{2 * mib}, reinterpret_cast<CUstream>(refused_in)),
                  CUDA_ERROR_OUT_OF_MEMORY);
        fake.current_device = 0;
        call_state = mine;
      };
      takes = 3 * mib;
      CUmodule module = nullptr;
      hooked_on(real, own, Row::cuModuleLoadData, cuModuleLoadData, &module, nullptr);
      return bytes().modules - booked;
    };
    EXPECT_EQ(bytes_found_beside(reinterpret_cast<CUcontext>(0x1100)), 3 * mib) << rescues;
    EXPECT_EQ(bytes_found_beside(reinterpret_cast<CUcontext>(0x1000)), 0u) << rescues;
  }
}

}  // namespace
}  // namespace cuwarden::hooks
