package version

import (
	"regexp"
	"strings"
)

// Local is the label after "+", lower case and with dots between its parts:
// "cpu", "cu128", "g2918c1b49.d20251127.empty". For a Plain version it is
// whatever followed the digits.
func (v Version) Local() string { return v.local }

var (
	commitRE  = regexp.MustCompile(`^(?:git|g)([0-9a-f]{6,40})$`)
	flavourRE = regexp.MustCompile(`^(?:cpu|empty|xpu|tpu|neuron|cu\d{2,3}|rocm\d*|npu)$`)
	ngcRE     = regexp.MustCompile(`(?:^|\.)nv(\d+)\.(\d+)`)
)

// Commit is the abbreviated commit in the local label (+g2918c1b49,
// +git4c901a4), or "".
func (v Version) Commit() string {
	for p := range strings.SplitSeq(v.local, ".") {
		if m := commitRE.FindStringSubmatch(p); m != nil {
			return m[1]
		}
	}
	return ""
}

// Flavour is the part of the local label that names what it was built for:
// "cpu", "cu128", "rocm6", "empty" (vLLM without a device), or "".
func (v Version) Flavour() string {
	for p := range strings.SplitSeq(v.local, ".") {
		if flavourRE.MatchString(p) {
			return p
		}
	}
	return ""
}

// NGC is the release of NVIDIA's container build ("25.10"), or "".
func (v Version) NGC() string {
	if m := ngcRE.FindStringSubmatch(v.local); m != nil {
		return m[1] + "." + m[2]
	}
	return ""
}

// Untagged reports whether the digits of v mean nothing: setuptools_scm gives
// 0.1.devN+gHASH to a checkout without tags. Only the commit is a fact then.
func (v Version) Untagged() bool {
	return v.kind == PEP440 && v.epoch == 0 && v.Base(3) == "0.1.0" && len(v.chain) == 1 &&
		v.chain[0].rank == rankDev && v.Commit() != ""
}
