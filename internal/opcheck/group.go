package opcheck

import (
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/invar-ops/invar/internal/report"
)

// A Group is one operator, dtype and shape over all seeds.
type Group struct {
	Label      string
	Dtype      string
	Pairs      int64
	Differ     int64
	Status     report.Status // the worst
	Seeds, Of  int           // seeds, and how many of them have that status
	Reason     string        // of the first with that status
	Reproducer *Reproducer
}

// rank orders statuses from good to bad.
var rank = map[report.Status]int{report.Pass: 0, report.Unclear: 1, report.Fail: 2}

// Groups puts the seeds of a case together.
func (r Result) Groups() []Group {
	var out []Group
	for _, c := range r.Cases {
		i := slices.IndexFunc(out, func(g Group) bool { return g.Label == c.Label && g.Dtype == c.Dtype })
		if i < 0 {
			out, i = append(out, Group{Label: c.Label, Dtype: c.Dtype, Status: report.Pass}), len(out)
		}
		g := &out[i]
		g.Pairs, g.Differ, g.Seeds = g.Pairs+c.Pairs, g.Differ+c.Differ, g.Seeds+1
		switch {
		case rank[c.Status] > rank[g.Status]:
			g.Status, g.Of, g.Reason, g.Reproducer = c.Status, 1, c.Reason, c.Reproducer
		case c.Status == g.Status:
			g.Of++
		}
	}
	return out
}

// A Listing is what can be asked for.
type Listing struct {
	Families []Family `json:"families"`
	Presets  []Preset `json:"presets"`
}

// A Family is a way to call operators, with the names that go to it.
type Family struct {
	Name      string   `json:"name"`
	Operators []string `json:"operators"`
}

// List lists families and presets.
func List() (Listing, error) {
	f, err := load()
	if err != nil {
		return Listing{}, err
	}
	l := Listing{Presets: f.Presets}
	for _, name := range slices.Sorted(maps.Keys(f.Shapes)) {
		family := Family{Name: name, Operators: []string{}}
		for _, op := range slices.Sorted(maps.Keys(f.Names)) {
			if f.Names[op] == name {
				family.Operators = append(family.Operators, op)
			}
		}
		l.Families = append(l.Families, family)
	}
	return l, nil
}

// WriteJUnit writes a test case for each case. JUnit knows no inconclusive
// outcome; it is an error there, which no CI counts as passed.
func WriteJUnit(w io.Writer, r Result) error {
	suite := junit.Testsuite{Name: "invar.verify.ops", Time: strconv.FormatFloat(r.Elapsed.Seconds(), 'f', 3, 64)}
	suite.AddProperty("python", r.Python)
	suite.AddProperty("torch", r.Torch)
	for _, c := range r.Cases {
		t := junit.Testcase{
			Name: c.Label + " " + c.Dtype + " seed " + strconv.FormatInt(c.Seed, 10), Classname: suite.Name,
			Time: strconv.FormatFloat(c.Seconds, 'f', 3, 64),
		}
		switch c.Status {
		case report.Fail:
			t.Failure = &junit.Result{Message: c.Reason, Type: "fail", Data: c.Reason}
		case report.Unclear:
			t.Error = &junit.Result{Message: c.Reason, Type: "inconclusive", Data: c.Reason}
		}
		suite.AddTestcase(t)
	}
	var all junit.Testsuites
	all.AddSuite(suite)
	all.Name = "invar verify ops"
	return all.WriteXML(w)
}
