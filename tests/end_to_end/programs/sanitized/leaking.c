// leaking [race|overflow|host_leak]: leaks device memory, and has a defect for a sanitizer to find.
// Built by the tests, with each compiler and sanitizer.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The runtime's, declared here so that no toolkit is needed.
int cudaMalloc(void** memory, size_t bytes);
int cudaFree(void* memory);

static int shared = 0;
static void* increment(void* argument) {
  ++shared;
  return argument;
}

static void race(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, increment, NULL);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
}

static void* volatile lost = NULL;
static void host_leak(void) {
  lost = malloc(1000);
  lost = NULL;
}

// argc: 2.
static void overflow(int argc) {
  volatile int large = 0x7fffffff;
  large = large + argc;
}

int main(int argc, char** argv) {
  const char* const defect = argc > 1 ? argv[1] : "";
  void* kept = NULL;
  void* freed = NULL;
  const int line = __LINE__ + 1;
  if (cudaMalloc(&kept, 5000) != 0) return 3;
  if (cudaMalloc(&freed, 7000) != 0 || cudaFree(freed) != 0) return 4;
  printf(
      "{\"leaked\":[{\"api\":\"cudaMalloc\",\"kind\":\"device\",\"count\":1,\"bytes\":5000,"
      "\"function\":\"main\",\"line\":%d}]}\n",
      line);
  fflush(stdout);
  if (strcmp(defect, "race") == 0) race();
  if (strcmp(defect, "host_leak") == 0) host_leak();
  if (strcmp(defect, "overflow") == 0) overflow(argc);
  return 0;
}
