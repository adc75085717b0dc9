// A tensor as rows by columns with one step each, as the kernels take it. Where its
// dimensions do not lie like that, a copy that does stands for it.
#pragma once

#include "../tensor.h"

namespace invar {

using Dims = std::vector<int64_t>;  // positions of dimensions, outermost first

class Plane {
 public:
  // For reading. Without columns the tensor has one element a row.
  static Plane of(const Arg &x, const Dims &rows, const Dims &cols);
  // For writing; finish() brings the elements of a stand-in home.
  static Plane into(const Arg &x, const Dims &rows, const Dims &cols);

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t row() const { return row_; }
  int64_t col() const { return col_; }
  int32_t dtype() const { return dtype_; }
  const void *read() const { return data(Arg(*tensor_)); }
  void *write() const { return mutable_data(Arg(*tensor_)); }
  void finish() const;

 private:
  Plane(const Arg &x, const Dims &rows, const Dims &cols, bool copy);

  int64_t rows_, cols_, row_ = 0, col_ = 1;
  int32_t dtype_;
  std::optional<Tensor> tensor_;  // the tensor itself, or what stands for it
  std::optional<Tensor> home_;    // a view of the tensor in the order of the stand-in
};

}  // namespace invar
