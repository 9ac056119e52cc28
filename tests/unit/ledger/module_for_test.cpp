// A shared object to load and unload.
extern "C" [[gnu::visibility("default")]] int cuwarden_test_module(int value);
extern "C" int cuwarden_test_module(int value) { return value * 3 + 1; }
