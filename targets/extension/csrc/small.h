// A list of a few trivial values without an allocation: a call on a small tensor
// takes less than a microsecond, and shapes are made several times in it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>

namespace invar {

template <class T, size_t N = 8>
class Small {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Small() {}  // leaves the room as it is
  Small(std::initializer_list<T> values) : Small(values.begin(), values.end()) {}
  Small(const T *from, const T *to) {
    reserve(static_cast<size_t>(to - from));
    size_ = static_cast<size_t>(to - from);
    std::copy(from, to, data());
  }
  explicit Small(size_t size) {
    reserve(size);
    size_ = size;
  }
  Small(const Small &other) : Small(other.begin(), other.end()) {}
  Small &operator=(const Small &other) {
    if (this != &other) {
      reserve(other.size_);
      size_ = other.size_;
      std::copy(other.begin(), other.end(), data());
    }
    return *this;
  }

  void push_back(const T &value) {
    const T kept = value;  // may lie in here
    reserve(size_ + 1);
    data()[size_++] = kept;
  }
  void pop_back() { size_--; }
  void shrink(size_t size) { size_ = size; }

  T *data() { return heap_ ? heap_.get() : room_; }
  const T *data() const { return heap_ ? heap_.get() : room_; }
  T *begin() { return data(); }
  const T *begin() const { return data(); }
  T *end() { return data() + size_; }
  const T *end() const { return data() + size_; }
  T &operator[](size_t i) { return data()[i]; }
  const T &operator[](size_t i) const { return data()[i]; }
  T &back() { return data()[size_ - 1]; }
  const T &back() const { return data()[size_ - 1]; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  friend bool operator==(const Small &a, const Small &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  void reserve(size_t size) {
    if (size <= capacity_) {
      return;
    }
    const size_t more = std::max(size, 2 * capacity_);
    std::unique_ptr<T[]> heap(new T[more]);
    std::copy(begin(), end(), heap.get());
    heap_ = std::move(heap);
    capacity_ = more;
  }

  size_t size_ = 0;
  size_t capacity_ = N;
  std::unique_ptr<T[]> heap_;
  T room_[N];
};

}  // namespace invar
