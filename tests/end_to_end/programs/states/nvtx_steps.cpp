// A loop of 20 steps, each an NVTX range, with a range of another name inside: each keeps 2 MiB.
//
// Usage: nvtx_steps push|start|attributes|domain|registered. Prints what the beginnings of ranges
// returned.
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "tests/end_to_end/programs/let_time_pass.hpp"

namespace {

[[gnu::noinline]] bool keep() {
  void* kept = nullptr;
  return cudaMalloc(&kept, 2 << 20) == cudaSuccess;
}

long long begin(std::string_view how, nvtxDomainHandle_t domain, const char* name) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name;
  if (how == "start") return static_cast<long long>(nvtxRangeStartA(name));
  if (how == "attributes") return nvtxRangePushEx(&attributes);
  if (how == "registered") {
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = nvtxDomainRegisterStringA(domain, name);
  }
  if (domain != nullptr || how == "registered") return nvtxDomainRangePushEx(domain, &attributes);
  return nvtxRangePushA(name);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc > 1 ? argv[1] : "push";
  const nvtxDomainHandle_t domain =
      how == "domain" || how == "registered" ? nvtxDomainCreateA("training") : nullptr;
  long long last = 0;
  for (int step = 0; step < 20; ++step) {
    last = begin(how, domain, ("step " + std::to_string(step)).c_str());
    begin(how, domain, "forward");
    if (!keep()) return 1;
    let_time_pass(20);
    if (how == "domain" || how == "registered") {
      nvtxDomainRangePop(domain);
      nvtxDomainRangePop(domain);
    } else {
      nvtxRangePop();
      nvtxRangePop();
    }
  }
  std::printf("%lld\n", last);
}
