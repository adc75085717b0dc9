// Runs kernels on the host: blocks one after the other, the threads of a block as
// fibers in a chosen order. A run in another order that gives other bits shows a race.
#include "emulate.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "emulator.h"
#include "kernels.h"

#define X(source, name, params, threads) extern "C" void name(const invar::params &);
INVAR_KERNELS(X)
#undef X

namespace invar {
namespace emulated {
namespace {

struct Copy {
  void *to;
  const void *from;
  int bytes, zeros;
};

struct Fiber {
  ucontext_t context;  // where it starts
  jmp_buf place;       // where it goes on: swapcontext would make two system calls
  bool started = false, done = false;
  int64_t waits = 0;  // the generation of a barrier that it waits for to end, or 0
  int64_t *watched = nullptr;
  std::vector<Copy> open;
  std::vector<std::vector<Copy>> groups;
};

struct Meeting {  // a barrier of a block or of a warp
  int arrived = 0;
  int64_t generation = 1;
};

struct Warp {
  Meeting meeting;
  std::vector<unsigned char> slots = std::vector<unsigned char>(32 * 64);
};

constexpr size_t kStack = 256 << 10;

int order = 0;  // 0 all in turn, 1 warp by warp from the last on, else a seed
bool late = false;
Product model = Product::chain;

jmp_buf scheduler;
std::vector<Fiber> fibers;
std::vector<Warp> warps;
Meeting whole;
std::vector<unsigned char> memory;
int current = 0;
int64_t current_block = 0;
const std::function<void()> *body = nullptr;
char *stacks = nullptr;
int live = 0;

[[noreturn]] void fail(const char *what) {
  fprintf(stderr, "emulator: block %lld thread %d: %s\n", static_cast<long long>(current_block),
          current, what);
  exit(1);
}

void hand_over() {
  if (_setjmp(fibers[size_t(current)].place) == 0) _longjmp(scheduler, 1);
}

// Comes back when the fiber hands over.
__attribute__((noinline)) void go_on(Fiber &f) {
  if (_setjmp(scheduler) != 0) return;
  if (f.started) _longjmp(f.place, 1);
  f.started = true;
  setcontext(&f.context);
}

void meet(Meeting &m, int size) {
  if (++m.arrived == size) {
    m.arrived = 0;
    m.generation++;
    return;
  }
  Fiber &f = fibers[current];
  f.watched = &m.generation;
  f.waits = m.generation;
  while (f.waits == m.generation) hand_over();
  f.waits = 0;
  f.watched = nullptr;
}

void carry_out(const Copy &c) {
  memcpy(c.to, c.from, size_t(c.bytes));
  memset(static_cast<char *>(c.to) + c.bytes, 0, size_t(c.zeros));
}

void start() {
  (*body)();
  if (!fibers[current].open.empty()) fail("a copy was never committed");
  fibers[current].done = true;
  live--;
  hand_over();
}

void run_block(int threads) {
  fibers.assign(size_t(threads), Fiber());
  warps.assign(size_t((threads + 31) / 32), Warp());
  whole = Meeting();
  live = threads;
  std::vector<int> turn(static_cast<size_t>(threads));
  for (int i = 0; i < threads; i++) turn[size_t(i)] = order == 1 ? threads - 1 - i : i;
  if (order > 1) {
    uint32_t state = uint32_t(order);
    for (int i = threads - 1; i > 0; i--) {
      state = state * 1664525U + 1013904223U;
      std::swap(turn[size_t(i)], turn[(state >> 8) % uint32_t(i + 1)]);
    }
  }
  for (int i = 0; i < threads; i++) {
    ucontext_t &c = fibers[size_t(i)].context;
    getcontext(&c);
    c.uc_stack.ss_sp = stacks + size_t(i) * kStack;
    c.uc_stack.ss_size = kStack;
    c.uc_link = nullptr;
    makecontext(&c, start, 0);
  }
  const auto pass = [&](size_t from, size_t to) {
    bool moved = false;
    for (size_t at = from; at < to; at++) {
      Fiber &f = fibers[size_t(turn[at])];
      if (f.done || (f.watched && *f.watched == f.waits)) continue;
      moved = true;
      current = turn[at];
      go_on(f);
    }
    return moved;
  };
  while (live > 0) {
    bool moved = false;
    if (order == 1) {  // each warp as far as it comes without the others
      for (size_t at = 0; at < turn.size(); at += 32) {
        while (pass(at, std::min(at + 32, turn.size()))) moved = true;
      }
    } else {
      moved = pass(0, turn.size());
    }
    if (!moved) fail("every thread waits: a barrier that not all threads reach");
  }
}

}  // namespace

int thread() { return current; }
int64_t block() { return current_block; }
unsigned char *shared_memory() { return memory.data(); }
bool late_copies() { return late; }
Product product_model() { return model; }

// Threads that have ended count as arrived for the machine, but no kernel here relies
// on it: all threads of a block have to come.
void barrier() { meet(whole, static_cast<int>(fibers.size())); }

const void *exchange(const void *mine, int bytes) {
  Warp &w = warps[size_t(current / 32)];
  meet(w.meeting, 32);  // nobody still reads the last exchange
  memcpy(w.slots.data() + (current % 32) * bytes, mine, size_t(bytes));
  meet(w.meeting, 32);
  return w.slots.data();
}

void copy_later(void *to, const void *from, int bytes, int zeros) {
  const Copy c{to, from, bytes, zeros};
  if (late) {
    memset(to, 0xff, size_t(bytes + zeros));  // NaN until the copy has been waited for
  } else {
    carry_out(c);
  }
  fibers[size_t(current)].open.push_back(c);
}

void commit_copies() {
  Fiber &f = fibers[size_t(current)];
  f.groups.push_back(std::move(f.open));
  f.open.clear();
}

void finish_copies(int groups_left) {
  Fiber &f = fibers[size_t(current)];
  while (static_cast<int>(f.groups.size()) > groups_left) {
    for (const Copy &c : f.groups.front()) {
      if (late) carry_out(c);
    }
    f.groups.erase(f.groups.begin());
  }
}

void configure(int thread_order, bool copies_late, Product of) {
  order = thread_order;
  late = copies_late;
  model = of;
}

void run(int64_t blocks, int threads, int shared, const std::function<void()> &kernel) {
  if (!stacks) {
    void *p = mmap(nullptr, kStack * 1024, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) fail("no memory for stacks");
    stacks = static_cast<char *>(p);
  }
  body = &kernel;
  for (int64_t i = 0; i < blocks; i++) {
    current_block = order == 1 ? blocks - 1 - i : i;
    memory.assign(size_t(shared) + 64, 0xff);  // NaN: nothing may be read before it is written
    run_block(threads);
    for (int j = 0; j < 64; j++) {
      if (memory[size_t(shared + j)] != 0xff) fail("wrote past its shared memory");
    }
  }
}

}  // namespace emulated

// ---- What host/launch.cpp gives to the library on a real machine.

namespace {

struct Entry {
  int threads;
  void (*call)(const void *);
};

const Entry kEntries[kernel_count] = {
#define X(source, name, params, threads) \
  {threads, [](const void *p) { name(*static_cast<const params *>(p)); }},
    INVAR_KERNELS(X)
#undef X
};

int32_t refused = INVAR_CUDA_OK;  // what every launch answers instead of running

}  // namespace

int32_t launch(Kernel k, int64_t blocks, int shared, const void *params, void *) {
  if (blocks > 0 && refused != INVAR_CUDA_OK) return refused;
  emulated::run(blocks, kEntries[k].threads, shared, [=] { kEntries[k].call(params); });
  return INVAR_CUDA_OK;
}

int32_t load_all() { return INVAR_CUDA_OK; }

const char *runtime_text(int32_t) { return "no CUDA runtime: kernels are emulated"; }

}  // namespace invar

// From now on launches fail with this status; INVAR_CUDA_OK lets them run again.
extern "C" __attribute__((visibility("default"))) void invar_emulated_refuse(int32_t status) {
  invar::refused = status;
}
