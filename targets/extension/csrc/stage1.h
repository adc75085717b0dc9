// Stage 1, the library with the kernels. It is not linked in: the Python package
// finds the installed one, and attach() opens it.
#pragma once

#include "error.h"
#include "invar_cpu.h"

#include <string>

namespace invar {

// What this extension was written for. Another contract means other bits.
inline constexpr const char *expected_contract = "invar-cpu-fp32/1";
inline constexpr int32_t expected_abi = INVAR_CPU_ABI;

struct Stage1 {
  std::string path;
  decltype(&invar_cpu_abi_version) abi_version;
  decltype(&invar_cpu_contract) contract;
  decltype(&invar_cpu_version) version;
  decltype(&invar_cpu_status_text) status_text;
  decltype(&invar_cpu_isa_count) isa_count;
  decltype(&invar_cpu_isa_name) isa_name;
  decltype(&invar_cpu_isa_available) isa_available;
  decltype(&invar_cpu_isa_current) isa_current;
  decltype(&invar_cpu_isa_select) isa_select;
  decltype(&invar_cpu_mm_panels) mm_panels;
  decltype(&invar_cpu_mm_scratch) mm_scratch;
  decltype(&invar_cpu_mm) mm;
  decltype(&invar_cpu_packed_elements) packed_elements;
  decltype(&invar_cpu_pack) pack;
  decltype(&invar_cpu_row_scratch) row_scratch;
  decltype(&invar_cpu_sum) sum;
  decltype(&invar_cpu_mean) mean;
  decltype(&invar_cpu_softmax) softmax;
  decltype(&invar_cpu_log_softmax) log_softmax;
  decltype(&invar_cpu_norm_scratch) norm_scratch;
  decltype(&invar_cpu_rms_norm) rms_norm;
  decltype(&invar_cpu_add_rms_norm) add_rms_norm;
  decltype(&invar_cpu_control_mm) control_mm;
};

// Opens the library at path and checks its ABI and contract. Throws with what
// was found and what was expected. A second call with the same path does
// nothing, with another one it throws: a process holds one stage 1.
void attach(const std::string &path);

// The attached library; throws when there is none.
const Stage1 &stage1();

// Throws unless status is INVAR_CPU_OK.
void stage1_ok(int32_t status, const char *op);

}  // namespace invar
