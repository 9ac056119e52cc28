// Tables of loaded code.
#include "tools/simulated_gpu/device/modules.hpp"

#include <algorithm>
#include <vector>

#include "tools/simulated_gpu/device/contexts.hpp"

namespace cuwarden::simulated_gpu {

Handles<Module>& modules() {
  static auto* const made = new Handles<Module>;
  return *made;
}

Handles<Kernel>& kernels() {
  static auto* const made = new Handles<Kernel>;
  return *made;
}

CUresult load_into(Context& context, Module& module) {
  if (module.charged_bytes.contains(&context)) return CUDA_SUCCESS;
  const auto uses_heap = [](const auto& named) { return named.second.uses_heap; };
  if (module.ptx && std::ranges::any_of(module.ptx->kernels, uses_heap))
    if (const CUresult result = load_device_runtime(context); result != CUDA_SUCCESS) return result;
  const std::size_t bytes = module.ptx ? round_up(module.ptx->global_bytes, kPage) : 0;
  if (!charge_context(context, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  module.charged_bytes[&context] = bytes;
  return CUDA_SUCCESS;
}

void unload_modules(Context& context) {
  std::vector<Module*> owned;
  for (Module* module : modules().all()) {
    module->charged_bytes.erase(&context);
    if (module->context == &context) owned.push_back(module);
    std::erase_if(module->variables, [&](const auto& v) { return v.first.first == &context; });
  }
  for (Module* module : owned) {
    for (auto& [name, kernel] : module->kernels) kernels().remove(kernel);
    module->unloaded = true;
    modules().remove(module);
  }
}

}  // namespace cuwarden::simulated_gpu
