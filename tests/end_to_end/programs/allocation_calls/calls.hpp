// One function for each kind of allocation call. Each allocates, frees a part, and counts both in
// the program's account. The report must show the memory that is not freed as leaks.
#pragma once

#include "tests/end_to_end/programs/expected_totals.hpp"
#include "tests/end_to_end/programs/require.hpp"

namespace allocation_calls {

using expected::Account;

// Allocates linear device memory by cudaMalloc, by the calls for pitched memory, and by the
// driver's calls. Frees a part; the rest is a leak. `Account` counts the allocations and the frees.
void linear(Account&);
// Allocates page-locked host memory by each of the four calls for it. Frees a part; the rest is a
// leak. `Account` counts the allocations and the frees.
void pinned(Account&);
// Registers host memory (cudaHostRegister) and unregisters a part; the rest is a leak. `Account`
// counts the registrations and their ends.
void registered(Account&);
// Allocates managed memory and frees a part; the rest is a leak. `Account` counts the allocations
// and the frees.
void managed(Account&);
// Makes arrays and mipmapped arrays, by runtime and driver, and destroys a part; the rest is a
// leak. `Account` counts the arrays that were made and destroyed.
void arrays(Account&);
// Allocates memory in stream order (cudaMallocAsync) from the default memory pool. Frees a part;
// the rest is a leak. `Account` counts the allocations and the frees.
void stream_ordered(Account&);
// Allocates memory in stream order from a memory pool that it has made. Frees a part; the rest is a
// leak. `Account` counts the allocations and the frees.
void pools(Account&);
// Makes memory by cuMemCreate and maps it by cuMemMap. Releases and unmaps a part; the rest is a
// leak. `Account` counts the allocations and the frees.
void virtual_memory(Account&);
// Exports memory, and imports its handle (cuMemImportFromShareableHandle) into the same process.
// Releases all. `Account` counts the memory, and the import as a further allocation; both are
// freed.
void imported_handle(Account&);
// Imports the same memory twice as external memory (cuImportExternalMemory), and ends one import;
// the other one is a leak. `Account` counts the memory, which is released, and the imports and
// their ends as further allocations and frees.
void imported_external_memory(Account&);
// Starts this program again as a second process, which opens memory of this process by an IPC
// handle. `Account` counts the allocations of this process only.
void imported_ipc(Account&);
// Opens another process's memory several times, and closes it once less, which is a leak. In
// `Account`, openings of the same memory are one allocation until the last of them is closed.
// `handle`: its IPC handle (cudaIpcMemHandle_t) in 128 hexadecimal digits. Runs in the process that
// imported_ipc() starts.
void opened_ipc(Account&, const char* handle);
// Makes a graph with a memory node and never launches it. So nothing is allocated, and `Account`
// counts nothing.
void graph_never_launched(Account&);
// Launches a graph that allocates memory and does not free it. `Account` counts the allocation.
void graph_launched(Account&);
// Launches a graph that allocates memory and frees it. `Account` counts the allocation and the free
// of each launch.
void graph_freed(Account&);
// Captures a stream-ordered allocation into a graph. Only a launch of the graph allocates memory,
// which is then freed. `Account` counts this allocation and the free.
void captured(Account&);
// Launches a graph in which one node allocates at the address that another node has freed. Then
// frees the memory in several ways; the memory of the last launch is a leak. `Account` counts all
// allocations and frees.
void graph_address_reused(Account&);
// Launches a graph repeatedly; each launch frees the memory that the launch before has allocated.
// The memory of the last launch is a leak. `Account` counts all allocations and frees.
void graph_freed_by_the_next_launch(Account&);
// Allocates memory in contexts and ends the contexts, which releases the memory that they own. A
// handle of cuMemCreate belongs to no context, and is a leak, as is memory in a new context at the
// end. `Account` counts the allocations and the releases.
void contexts(Account&);

}  // namespace allocation_calls
