// One function for each kind of allocation call. It allocates, frees a part, and keeps an account
// of both. The memory that it leaves is the leak that the report must show.
#pragma once

#include "tests/end_to_end/programs/expected_totals.hpp"

namespace allocation_calls {

using expected::Account;

void linear(Account&);
void pinned(Account&);
void registered(Account&);
void managed(Account&);
void arrays(Account&);
void stream_ordered(Account&);
void pools(Account&);
void virtual_memory(Account&);
void imported_handle(Account&);
void imported_external_memory(Account&);
void imported_ipc(Account&);
void opened_ipc(Account&, const char* handle);  // runs in the process that imported_ipc starts
void graph_never_launched(Account&);
void graph_launched(Account&);
void graph_freed(Account&);
void captured(Account&);
void graph_address_reused(Account&);
void graph_freed_by_the_next_launch(Account&);
void contexts(Account&);

}  // namespace allocation_calls
