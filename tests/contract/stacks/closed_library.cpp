// Built twice, with functions whose frames differ: one library is closed, and the other is loaded
// at its addresses.
extern "C" __attribute__((visibility("default"))) int call_back(int (*work)()) {
#ifdef CUWARDEN_TEST_OTHER
  volatile char room[4000];
  room[0] = 1;
  asm volatile("nop; nop; nop; nop" ::: "rbx", "r12", "r13");
  const int result = work();
  room[3999] = room[0];
#else
  volatile char room[40];
  room[0] = 1;
  const int result = work();
  room[39] = room[0];
#endif
  return result;
}
