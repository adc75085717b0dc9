package doctor

import "testing"

func TestDataLoads(t *testing.T) {
	t.Parallel()
	if _, err := Load(); err != nil {
		t.Fatal(err)
	}
}
