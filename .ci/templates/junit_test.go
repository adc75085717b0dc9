package templates

import (
	"encoding/xml"
	"testing"
)

// wellFormed reads a JUnit file and wants failures in it, at least that many.
func wellFormed(t *testing.T, file string, failures int) {
	t.Helper()
	var suites struct {
		Suites []struct {
			Cases []struct {
				Failure *struct{} `xml:"failure"`
				Error   *struct{} `xml:"error"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(read(t, file)), &suites); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	cases, bad := 0, 0
	for _, s := range suites.Suites {
		for _, c := range s.Cases {
			cases++
			if c.Failure != nil || c.Error != nil {
				bad++
			}
		}
	}
	if cases == 0 || bad < failures || failures == 0 && bad > 0 {
		t.Errorf("%s: %d cases, %d failed; want %d failures", file, cases, bad, failures)
	}
}
