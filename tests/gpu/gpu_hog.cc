// Takes the memory of a GPU, as another process that grows does, until it is ended:
//
//   gpu_hog DEVICE LEAVE_MIB
//
// From its start on it takes whatever is free beyond LEAVE_MIB, every 20 ms. Prints a line when it
// has taken its first memory.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

int main(int argc, char** argv) {
  if (argc != 3 || cudaSetDevice(std::atoi(argv[1])) != cudaSuccess) {
    std::fprintf(stderr, "usage: gpu_hog DEVICE LEAVE_MIB\n");
    return 2;
  }
  constexpr size_t kPiece = size_t{64} << 20;
  const size_t leave = static_cast<size_t>(std::atoll(argv[2])) << 20;
  size_t held = 0;
  for (bool told = false;;) {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) return 1;
    void* memory = nullptr;
    if (free_bytes >= leave + kPiece) {
      const size_t bytes = (free_bytes - leave) / kPiece * kPiece;
      if (cudaMalloc(&memory, bytes) == cudaSuccess) {
        held += bytes;
        continue;
      }
      cudaGetLastError();
    }
    if (!told) {
      std::printf("holds %zu MiB\n", held >> 20);
      std::fflush(stdout);
      told = true;
    }
    // No event tells that another process gave memory back, so the hog looks again.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}
