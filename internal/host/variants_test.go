package host

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"
)

func TestVariants(t *testing.T) {
	t.Parallel()
	answers := readAnswers(t, "variants.yaml")
	right := 0
	for _, a := range answers {
		wrong := a.check(judged(t, strings.ReplaceAll(a.Text, "<TAB>", "\t")))
		if len(wrong) == 0 {
			right++
		}
		for _, w := range wrong {
			t.Errorf("%s: %s", a.Name, w)
		}
	}
	t.Logf("score: %d of %d variants judged right", right, len(answers))
}

// TestUTF16 judges an answer that PowerShell wrote to a file.
func TestUTF16(t *testing.T) {
	t.Parallel()
	const answer = "GPU 0: NVIDIA L40S (UUID: GPU-1)\r\n"
	for name, order := range map[string]binary.AppendByteOrder{"little": binary.LittleEndian, "big": binary.BigEndian} {
		b := order.AppendUint16(nil, 0xfeff)
		for _, unit := range utf16.Encode([]rune(answer)) {
			b = order.AppendUint16(b, unit)
		}
		facts, err := From(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if v := Judge(facts); v.SoC != "sm_89" || v.Count != 1 {
			t.Errorf("%s endian: got %s x %d, want sm_89 x 1", name, v.SoC, v.Count)
		}
	}
}
