// green_contexts COUNT END [beside]: makes COUNT green contexts, the first of which makes the
// device's primary context. With `beside`, the program retains the primary context before. END:
// `kept`, or `destroyed`: all but the first one are destroyed. The last line says what each call
// took from the device.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/require.hpp"

#if CUDA_VERSION >= 12040
namespace {

using cuwarden::test::by_driver::used_bytes;

[[gnu::noinline]] CUgreenCtx make_green() {
  CUdevResource all{}, part{}, rest{};
  unsigned count = 1;
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  REQUIRE(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  REQUIRE(cuDevSmResourceSplitByCount(&part, &count, &all, &rest, 0, 8));
  REQUIRE(cuDevResourceGenerateDesc(&description, &part, 1));
  REQUIRE(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  return green;
}

[[gnu::noinline]] void use_primary() {
  CUcontext context = nullptr;
  REQUIRE(cuDevicePrimaryCtxRetain(&context, 0));
  REQUIRE(cuCtxSetCurrent(context));
}

// Equal functions would be merged.
[[gnu::noipa]] CUgreenCtx first_green() { return make_green(); }
[[gnu::noipa]] CUgreenCtx further_green() { return make_green(); }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int count = std::atoi(argv[1]);
  const bool ends = std::string(argv[2]) == "destroyed";
  REQUIRE(cuInit(0));
  if (argc > 3) use_primary();
  const CUgreenCtx first = first_green();
  if (argc <= 3) {
    CUcontext context = nullptr;
    REQUIRE(cuCtxFromGreenCtx(&context, first));
    REQUIRE(cuCtxSetCurrent(context));
  }
  const long long before = used_bytes();
  std::vector<CUgreenCtx> made;
  for (int i = 1; i < count; ++i) made.push_back(further_green());
  const long long taken = used_bytes() - before;
  for (const CUgreenCtx green : made)
    if (ends) REQUIRE(cuGreenCtxDestroy(green));
  std::printf("{\"first\":%lld,\"taken\":%lld,\"left\":%lld}\n", before, taken,
              used_bytes() - before);
}
#else
int main() {
  std::puts("{}");  // the toolkit has no green contexts
}
#endif
