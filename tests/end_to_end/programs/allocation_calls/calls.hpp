// One function for each kind of allocation call. It allocates, frees a part, and keeps an account
// of both. The memory that it leaves is the leak that the report must show.
#pragma once

#include "tests/end_to_end/programs/expected_totals.hpp"

namespace allocation_calls {

using expected::Account;

// Allocates linear device memory by cudaMalloc, its pitched forms, and the driver's calls. Frees a
// part; the rest is a leak. `Account` counts both.
void linear(Account&);
// Allocates page-locked host memory by each of the four calls for it. Frees a part; the rest is a
// leak. `Account` counts both.
void pinned(Account&);
// Registers host memory (cudaHostRegister) and unregisters a part; the rest is a leak. `Account`
// counts both.
void registered(Account&);
// Allocates managed memory and frees a part; the rest is a leak. `Account` counts both.
void managed(Account&);
// Makes arrays and mipmapped arrays, by runtime and driver, and destroys a part; the rest is a
// leak. `Account` counts both.
void arrays(Account&);
// Allocates memory in stream order (cudaMallocAsync) from the default memory pool. Frees a part;
// the rest is a leak. `Account` counts both.
void stream_ordered(Account&);
// Allocates memory in stream order from a memory pool that it has made. Frees a part; the rest is a
// leak. `Account` counts both.
void pools(Account&);
// Makes memory by cuMemCreate and maps it by cuMemMap. Releases and unmaps a part; the rest is a
// leak. `Account` counts both.
void virtual_memory(Account&);
// Exports memory, and imports its handle (cuMemImportFromShareableHandle) into the same process.
// Releases all. `Account` counts both.
void imported_handle(Account&);
// Imports the same memory twice as external memory (cuImportExternalMemory), and ends one import;
// the other one is a leak. `Account` counts both.
void imported_external_memory(Account&);
// Starts this program again, so that the new process opens memory of this one by an IPC handle.
// `Account` counts the memory of this process only.
void imported_ipc(Account&);
// Opens another process's memory several times, and closes it once too seldom, which is a leak.
// `Account` counts both. `handle`: its IPC handle (cudaIpcMemHandle_t) in 128 hexadecimal digits.
// Runs in the process that imported_ipc() starts.
void opened_ipc(Account&, const char* handle);
// Makes a graph with a memory node and never launches it. So nothing is allocated, and `Account`
// counts nothing.
void graph_never_launched(Account&);
// Launches a graph that allocates memory and does not free it. `Account` counts the allocation.
void graph_launched(Account&);
// Launches a graph that allocates memory and frees it. `Account` counts both, for each launch.
void graph_freed(Account&);
// Captures a stream-ordered allocation into a graph: only the graph's launch allocates. `Account`
// counts that.
void captured(Account&);
// Launches a graph in which one node takes the address that another one has freed. The memory is
// then freed in several ways, but for a last time. `Account` counts all of it.
void graph_address_reused(Account&);
// Launches a graph repeatedly, of which each launch frees the memory that the launch before has
// left. `Account` counts all of it.
void graph_freed_by_the_next_launch(Account&);
// Allocates memory in contexts and ends the contexts, which releases the memory that they own.
// `Account` counts both.
void contexts(Account&);

}  // namespace allocation_calls
