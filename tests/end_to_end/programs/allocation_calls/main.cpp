// allocation_calls NAME: makes the allocation calls of one kind and prints its account.
#include <cstdio>
#include <cstring>

#include "tests/end_to_end/programs/allocation_calls/calls.hpp"

int main(int argc, char** argv) {
  struct Row {
    const char* name;
    void (*run)(expected::Account&);
  };
  static constexpr Row rows[] = {
      {"linear", allocation_calls::linear},
      {"pinned", allocation_calls::pinned},
      {"registered", allocation_calls::registered},
      {"managed", allocation_calls::managed},
      {"arrays", allocation_calls::arrays},
      {"stream_ordered", allocation_calls::stream_ordered},
      {"pools", allocation_calls::pools},
      {"virtual_memory", allocation_calls::virtual_memory},
      {"imported_handle", allocation_calls::imported_handle},
      {"imported_external_memory", allocation_calls::imported_external_memory},
      {"imported_ipc", allocation_calls::imported_ipc},
      {"graph_never_launched", allocation_calls::graph_never_launched},
      {"graph_launched", allocation_calls::graph_launched},
      {"graph_freed", allocation_calls::graph_freed},
      {"graph_address_reused", allocation_calls::graph_address_reused},
      {"graph_freed_by_the_next_launch", allocation_calls::graph_freed_by_the_next_launch},
      {"captured", allocation_calls::captured},
      {"contexts", allocation_calls::contexts},
  };
  expected::Account account;
  if (argc == 3 && std::strcmp(argv[1], "opened_ipc") == 0) {
    allocation_calls::opened_ipc(account, argv[2]);
    account.print();
    return 0;
  }
  for (const Row& row : rows) {
    if (argc == 2 && std::strcmp(argv[1], row.name) == 0) {
      REQUIRE(cuInit(0));
      REQUIRE(cudaFree(nullptr));  // makes the primary context current
      row.run(account);
      account.print();
      return 0;
    }
  }
  std::fprintf(stderr, "allocation_calls NAME\n");
  return 2;
}
