// A shared object that tests load and unload.
#ifdef CUWARDEN_TEST_REBUILT
extern "C" [[gnu::visibility("default")]] int cuwarden_test_module_addition(int value);
extern "C" int cuwarden_test_module_addition(int value) { return value * 5 + 1; }
#endif
extern "C" [[gnu::visibility("default")]] int cuwarden_test_module(int value);
extern "C" int cuwarden_test_module(int value) { return value * 3 + 1; }
