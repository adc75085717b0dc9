// Why a call does not go to the invariant kernels.
#pragma once

namespace invar {

enum class Why : int {
  none = 0,   // it does
  off,        // routing is disabled
  dtype,      // float64, integers, bool, complex, or a tensor that is not strided CPU memory
  mixed,      // operands of different dtypes
  shape,      // sizes that torch itself refuses, or a dimension out of range
  out,        // out= of another dtype or size
  accumulate, // dtype= asks for a dtype that stage 1 has no kernel for
  scalar,     // complex alpha or beta
  count_
};

}  // namespace invar
