// Tables of loaded code.
#include "tools/simulated_gpu/device/modules.hpp"

#include <vector>

namespace cuwarden::simulated_gpu {

Handles<Module>& modules() {
  static auto* const made = new Handles<Module>;
  return *made;
}

Handles<Kernel>& kernels() {
  static auto* const made = new Handles<Kernel>;
  return *made;
}

void unload_modules(Context& context) {
  std::vector<Module*> owned;
  for (Module* module : modules().all()) {
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
