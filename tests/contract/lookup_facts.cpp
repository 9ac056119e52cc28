// cuGetProcAddress: one name stands for several ABIs, and the pointer is that of the exported
// symbol.
#include <dlfcn.h>

#include "tests/contract/driver_test.hpp"

namespace cuwarden::contract {
namespace {

void* exported(const char* symbol) { return dlsym(dlopen("libcuda.so.1", RTLD_NOW), symbol); }

void* found(const char* name, int version, cuuint64_t flags = 0) {
  void* function = nullptr;
  cuGetProcAddress(name, &function, version, flags, nullptr);
  return function;
}

TEST(LookupFacts, the_version_chooses_the_abi) {
  struct Row {
    const char* name;
    int version;
    cuuint64_t flags;
    const char* symbol;
  };
  for (const Row& row :
       {Row{"cuMemAlloc", 2000, 0, "cuMemAlloc"}, Row{"cuMemAlloc", 3020, 0, "cuMemAlloc_v2"},
        Row{"cuMemAlloc", 13000, 0, "cuMemAlloc_v2"}, Row{"cuCtxCreate", 3010, 0, "cuCtxCreate"},
        Row{"cuCtxCreate", 11030, 0, "cuCtxCreate_v2"},
        Row{"cuCtxCreate", 11040, 0, "cuCtxCreate_v3"},
        Row{"cuCtxCreate", 12050, 0, "cuCtxCreate_v4"},
        Row{"cuIpcOpenMemHandle", 10000, 0, "cuIpcOpenMemHandle"},
        Row{"cuIpcOpenMemHandle", 11000, 0, "cuIpcOpenMemHandle_v2"},
        Row{"cuGetProcAddress", 11030, 0, "cuGetProcAddress"},
        Row{"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"},
        Row{"cuMemAllocAsync", 11020, 2, "cuMemAllocAsync_ptsz"},
        Row{"cuMemcpyHtoD", 7000, 2, "cuMemcpyHtoD_v2_ptds"},
        Row{"cuMemAlloc", 12000, 2, "cuMemAlloc_v2"},
        Row{"cuStreamBeginCapture", 10010, 2, "cuStreamBeginCapture_v2_ptsz"}}) {
    SCOPED_TRACE(row.symbol);
    ASSERT_NE(exported(row.symbol), nullptr);
    EXPECT_EQ(found(row.name, row.version, row.flags), exported(row.symbol));
  }
}

TEST(LookupFacts, a_name_that_is_too_new_or_unknown_is_answered_with_null) {
  void* function = &function;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  cuGetProcAddress("cuMemAllocAsync", &function, 10000, 0, &status);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  cuGetProcAddress("cuNoSuchThing", &function, 13000, 0, &status);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(cuGetProcAddress("", &function, 13000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(function, nullptr);
  cuGetProcAddress("", &function, 13000, 0, nullptr);
  EXPECT_EQ(function, nullptr);
}

}  // namespace
}  // namespace cuwarden::contract
