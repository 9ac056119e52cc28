// green_contexts COUNT END [beside]: makes COUNT green contexts, the first of which makes the
// device's primary context. With `beside`, the program retains the primary context before. END:
// `kept`, or `destroyed`: all but the first one are destroyed. The last line says what each call
// took from the device.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/end_to_end/programs/states/used_bytes.hpp"

#if CUDA_VERSION >= 12040
namespace {

[[gnu::noinline]] CUgreenCtx make_green() {
  CUdevResource all{}, part{}, rest{};
  unsigned count = 1;
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  require(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource");
  require(cuDevSmResourceSplitByCount(&part, &count, &all, &rest, 0, 8),
          "cuDevSmResourceSplitByCount");
  require(cuDevResourceGenerateDesc(&description, &part, 1), "cuDevResourceGenerateDesc");
  require(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM),
          "cuGreenCtxCreate");
  return green;
}

[[gnu::noinline]] void use_primary() {
  CUcontext context = nullptr;
  require(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  require(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

// Equal functions would be merged.
[[gnu::noipa]] CUgreenCtx first_green() { return make_green(); }
[[gnu::noipa]] CUgreenCtx further_green() { return make_green(); }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int count = std::atoi(argv[1]);
  const bool ends = std::string(argv[2]) == "destroyed";
  require(cuInit(0), "cuInit");
  if (argc > 3) use_primary();
  const CUgreenCtx first = first_green();
  if (argc <= 3) {
    CUcontext context = nullptr;
    require(cuCtxFromGreenCtx(&context, first), "cuCtxFromGreenCtx");
    require(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  }
  const long long before = used_bytes();
  std::vector<CUgreenCtx> made;
  for (int i = 1; i < count; ++i) made.push_back(further_green());
  const long long taken = used_bytes() - before;
  for (const CUgreenCtx green : made)
    if (ends) require(cuGreenCtxDestroy(green), "cuGreenCtxDestroy");
  std::printf("{\"first\":%lld,\"taken\":%lld,\"left\":%lld}\n", before, taken,
              used_bytes() - before);
}
#else
int main() {
  std::puts("{}");  // the toolkit has no green contexts
}
#endif
