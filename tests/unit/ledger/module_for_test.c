/* A shared object to load and unload. */
int cuwarden_test_module(int value);
int cuwarden_test_module(int value) { return value * 3 + 1; }
