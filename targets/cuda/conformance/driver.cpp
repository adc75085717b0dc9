// Runs a file of cases through the C ABI of libinvar_cuda and writes what came out.
//
//   driver ORDER early|late chain|wide CASES RESULTS
//
// Two programs are made of it: with the emulator (INVAR_EMULATED), where ORDER, early or
// late and chain or wide are its switches, and with libinvar_cuda.so and the CUDA runtime
// on a GPU, where they are not looked at.
//
// CASES is a run of cases, each: the struct header below, then the bytes of every operand
// that has some. RESULTS gets for each case the status (int64), then the bytes of both
// outputs after the call.
//
// Exit codes: 0 done, 1 something that no case may do, 2 usage or files.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "invar_cuda.h"
#include "memory.h"

namespace {

enum Op { kMm, kPack, kSum, kMean, kSoftmax, kLogSoftmax, kRms, kAddRms, kControl };
constexpr int kOperands = 5, kFirstOut = 3;

struct OperandHeader {
  int64_t dtype, row, col;
  int64_t offset;  // bytes from the start to element (0, 0)
  int64_t bytes;   // -1: there is no such operand, its pointer is NULL
};

struct Header {
  int64_t op, m, n, k;
  int64_t in_place;     // the outputs are the inputs' memory
  int64_t alpha, beta;  // floats as bits; beta is eps of the norms
  int64_t variant;
  int64_t batch;         // matrices
  int64_t batch_step[4]; // of a, b, c, out, in elements
  OperandHeader operands[kOperands];
};

int64_t number = 0;

[[noreturn]] void fail(const char *what, const char *why) {
  fprintf(stderr, "driver: case %" PRId64 ": %s: %s\n", number, what, why);
  exit(1);
}

float float_of(int64_t bits) {
  const uint32_t u = static_cast<uint32_t>(bits);
  float f;
  memcpy(&f, &u, 4);
  return f;
}

struct Case {
  Header h;
  std::vector<unsigned char> bytes[kOperands];
  invar::Block memory[kOperands];

  void *zero(int i) const {
    const OperandHeader &o = h.operands[i];
    return o.bytes < 0 ? nullptr : memory[i].at(o.offset);
  }
  invar_cuda_in in(int i) const {
    const OperandHeader &o = h.operands[i];
    return {zero(i), o.row, o.col, static_cast<int32_t>(o.dtype), 0};
  }
  invar_cuda_out out(int i) const {
    const OperandHeader &o = h.operands[i];
    return {zero(i), o.row, o.col, static_cast<int32_t>(o.dtype), 0};
  }
};

invar_cuda_mm_args mm_args(const Case &c) {
  const Header &h = c.h;
  invar_cuda_mm_args g{};
  g.m = h.m;
  g.n = h.n;
  g.k = h.k;
  g.a = c.in(0);
  g.b = c.in(1);
  g.c = c.in(2);
  g.out = c.out(3);
  for (invar_cuda_batch &d : g.batch) d.size = 1;
  g.batch[INVAR_CUDA_BATCH_DIMS - 1] = {h.batch, h.batch_step[0], h.batch_step[1],
                                        h.batch_step[2], h.batch_step[3]};
  g.alpha = float_of(h.alpha);
  g.beta = float_of(h.beta);
  g.variant = static_cast<int32_t>(h.variant);
  return g;
}

invar_cuda_row_args row_args(const Case &c) {
  return {c.h.m, c.h.n, c.in(0), c.out(3), static_cast<int32_t>(c.h.variant), 0};
}

invar_cuda_norm_args norm_args(const Case &c) {
  return {c.h.m,    c.h.n,    c.in(0),           c.in(1), c.in(2), c.out(3), c.out(4),
          float_of(c.h.beta), static_cast<int32_t>(c.h.variant)};
}

typedef decltype(&invar_cuda_sum) RowFunction;

// The workspace is as large as was asked for, and full of NaN before the call; with
// INVAR_UNWRITTEN in the environment it is as the allocator gave it.
struct Workspace {
  invar::Block memory;
  int64_t size;
  explicit Workspace(int64_t bytes)
      : memory(getenv("INVAR_UNWRITTEN") && bytes > 0 ? invar::Block::bare(bytes)
                                                      : invar::Block(bytes)),
        size(bytes) {}
  void *data() const { return size > 0 ? memory.at(0) : nullptr; }
};

int32_t call_rows(RowFunction f, const Case &c) {
  const invar_cuda_row_args g = row_args(c);
  const int64_t bytes = invar_cuda_row_workspace(&g);
  const Workspace w(bytes < 0 ? 0 : bytes);
  return f(&g, w.data(), w.size, nullptr);
}

int32_t call(const Case &c) {
  const invar_cuda_norm_args norm = norm_args(c);
  switch (c.h.op) {
    case kMm: {
      const invar_cuda_mm_args g = mm_args(c);
      const int64_t bytes = invar_cuda_mm_workspace(&g);
      const Workspace w(bytes < 0 ? 0 : bytes);
      return invar_cuda_mm(&g, w.data(), w.size, nullptr);
    }
    case kPack: {
      const invar_cuda_in b = c.in(1);
      return invar_cuda_pack(&b, c.h.n, c.h.k, c.zero(3), nullptr);
    }
    case kSum: return call_rows(invar_cuda_sum, c);
    case kMean: return call_rows(invar_cuda_mean, c);
    case kSoftmax: return call_rows(invar_cuda_softmax, c);
    case kLogSoftmax: return call_rows(invar_cuda_log_softmax, c);
    case kRms: return invar_cuda_rms_norm(&norm, nullptr);
    case kAddRms: return invar_cuda_add_rms_norm(&norm, nullptr);
    case kControl: {
      const invar_cuda_mm_args g = mm_args(c);
      return invar_cuda_control_mm(&g, nullptr);
    }
  }
  fail("operator", "unknown");
}

bool read_case(FILE *f, Case &c) {
  if (fread(&c.h, sizeof c.h, 1, f) != 1) return false;
  for (int i = 0; i < kOperands; i++) {
    const int64_t n = c.h.operands[i].bytes;
    c.bytes[i].assign(static_cast<size_t>(n > 0 ? n : 0), 0);
    if (n > 0 && fread(c.bytes[i].data(), 1, c.bytes[i].size(), f) != c.bytes[i].size()) {
      fprintf(stderr, "driver: cases end in the middle of an operand\n");
      exit(2);
    }
    if (c.h.in_place && i >= kFirstOut) continue;
    c.memory[i] = invar::Block(n);
    c.memory[i].write(c.bytes[i]);
  }
  for (int i = 0; c.h.in_place && i < 2; i++) {
    c.memory[kFirstOut + i] = c.memory[i];
  }
  return true;
}

bool run_cases(FILE *cases, FILE *results) {
  for (Case c; read_case(cases, c); number++) {
    const int64_t status = call(c);
    if (const char *why = invar::finish()) fail("the device", why);
    if (fwrite(&status, sizeof status, 1, results) != 1) return false;
    for (int i = 0; i < kOperands; i++) {
      if (!c.memory[i].guarded()) fail("an operand", "bytes around it were written");
      if (i < kFirstOut || c.h.operands[i].bytes <= 0) continue;
      std::vector<unsigned char> got(c.bytes[i].size());
      c.memory[i].read(got);
      if (fwrite(got.data(), 1, got.size(), results) != got.size()) return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char **argv) {
  const bool usage = argc != 6 || (strcmp(argv[2], "early") && strcmp(argv[2], "late")) ||
                     (strcmp(argv[3], "chain") && strcmp(argv[3], "wide"));
  if (usage) {
    fprintf(stderr, "usage: driver ORDER early|late chain|wide CASES RESULTS\n");
    return 2;
  }
  invar::begin(atoi(argv[1]), !strcmp(argv[2], "late"), !strcmp(argv[3], "wide"));
  FILE *cases = fopen(argv[4], "rb"), *results = fopen(argv[5], "wb");
  if (!cases || !results) {
    perror("driver");
    return 2;
  }
  const bool ok = run_cases(cases, results);
  fclose(cases);
  return fclose(results) || !ok ? 2 : 0;
}
