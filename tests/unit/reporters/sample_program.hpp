// The program of the sample ledger's process, as a shared module that tests are linked with. Each
// report reads the debug information of the files that its frames lie in: a module this small takes
// a moment, and a test program up to a second.
#pragma once

#include <cstdint>

namespace sample_program {

// A mesh with a fixed number of edges.
struct Mesh {
  std::uint32_t edges[64] = {};  // index of the vertex at the end of each edge
};

// Numbers the edges of the mesh anew, from 1 on. The sample's allocations are made here.
void refine(Mesh&);

// Returns an address inside refine(), as the unwinder would find it in this process.
std::uint64_t address_in_refine() noexcept;

}  // namespace sample_program
