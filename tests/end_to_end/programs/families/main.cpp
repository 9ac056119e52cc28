// families NAME: runs one family and prints its account.
#include <cstdio>
#include <cstring>

#include "tests/end_to_end/programs/families/families.hpp"

int main(int argc, char** argv) {
  struct Row {
    const char* name;
    void (*run)(expected::Account&);
  };
  static constexpr Row rows[] = {
      {"linear", families::linear},
      {"pinned", families::pinned},
      {"registered", families::registered},
      {"managed", families::managed},
      {"arrays", families::arrays},
      {"stream_ordered", families::stream_ordered},
      {"pools", families::pools},
      {"virtual_memory", families::virtual_memory},
      {"imported_handle", families::imported_handle},
      {"imported_external_memory", families::imported_external_memory},
      {"imported_ipc", families::imported_ipc},
      {"graph_never_launched", families::graph_never_launched},
      {"graph_launched", families::graph_launched},
      {"graph_freed", families::graph_freed},
      {"graph_address_reused", families::graph_address_reused},
      {"graph_freed_by_the_next_launch", families::graph_freed_by_the_next_launch},
      {"captured", families::captured},
      {"contexts", families::contexts},
  };
  expected::Account account;
  if (argc == 3 && std::strcmp(argv[1], "opened_ipc") == 0) {
    families::opened_ipc(account, argv[2]);
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
  std::fprintf(stderr, "families NAME\n");
  return 2;
}
