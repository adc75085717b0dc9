// Package bench measures the speed that invar promises, both sides of every
// comparison in one run. It holds nothing but benchmarks: .ci/bench runs them,
// compares what they report with .ci/bench.limits, and docs/speed.md says what
// came out.
package bench
