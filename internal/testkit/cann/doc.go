// Package cann makes a look-alike of CANN for tests on machines without an NPU:
// an installed tree on which the real torch_npu imports and runs, run packages
// and a wheel project in the layout of the released ones, npu-smi, and a server
// with the faults of real ones. Its devices are simulated: what runs on them
// says nothing about hardware, and libascendcl exports Marker to say so.
package cann

// Marker is the symbol by which a look-alike libascendcl is known.
const Marker = "aclLookAlikeDevice"

// Environment is the one of .ci/setup that holds torch_npu, whose headers the
// libraries are compiled against.
const Environment = "torch-npu-2.9"
