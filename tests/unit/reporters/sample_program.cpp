#include "tests/unit/reporters/sample_program.hpp"

namespace sample_program {

void refine(Mesh& mesh) {
  std::uint32_t number = 0;
  for (std::uint32_t& edge : mesh.edges) edge = ++number;
}

std::uint64_t address_in_refine() noexcept { return reinterpret_cast<std::uint64_t>(refine) + 4; }

}  // namespace sample_program
