// Package kernels tests the sources below targets/cpu/kernels: it compiles them
// with the flags of the target, runs them through the C drivers of
// targets/cpu/conformance and compares every bit with a reference that was
// written from docs/contract.md alone. It holds no code of its own.
package kernels
