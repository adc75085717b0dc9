// Package metrics reads the Prometheus text that inference servers offer. It
// knows no names: what a name means is data of the caller.
package metrics

import (
	"bytes"
	"fmt"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// A Snapshot is all metrics at one moment.
type Snapshot struct {
	families map[string]*dto.MetricFamily
}

// Parse reads the text format.
func Parse(text []byte) (Snapshot, error) {
	p := expfmt.NewTextParser(model.UTF8Validation)
	f, err := p.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return Snapshot{}, fmt.Errorf("metrics: %w", err)
	}
	return Snapshot{f}, nil
}

// HasPrefix reports whether a metric's name starts with prefix.
func (s Snapshot) HasPrefix(prefix string) bool {
	for name := range s.families {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Sum adds a counter or gauge over its series, by the value of label by. The
// first of names that is there counts: names changed between releases. ok is
// false when none is.
func (s Snapshot) Sum(by string, names ...string) (out map[string]float64, ok bool) {
	f := s.find(names)
	if f == nil {
		return nil, false
	}
	out = map[string]float64{}
	for _, m := range f.GetMetric() {
		out[label(m, by)] += value(m)
	}
	return out, true
}

// A Histogram is how many observations there were in all, their sum, and how
// many lay above a bound.
type Histogram struct {
	Count, Sum float64
	Above      map[float64]float64 // upper bound of a bucket -> observations above it
}

// Histogram adds a histogram over its series.
func (s Snapshot) Histogram(names ...string) (Histogram, bool) {
	f := s.find(names)
	if f == nil {
		return Histogram{}, false
	}
	out := Histogram{Above: map[float64]float64{}}
	for _, m := range f.GetMetric() {
		h := m.GetHistogram()
		if h == nil {
			return Histogram{}, false
		}
		n := float64(h.GetSampleCount())
		out.Count += n
		out.Sum += h.GetSampleSum()
		for _, b := range h.GetBucket() {
			out.Above[b.GetUpperBound()] += n - float64(b.GetCumulativeCount())
		}
	}
	return out, true
}

// Labels are the labels of the first series of a metric.
func (s Snapshot) Labels(names ...string) map[string]string {
	f := s.find(names)
	if f == nil || len(f.GetMetric()) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, l := range f.GetMetric()[0].GetLabel() {
		out[l.GetName()] = l.GetValue()
	}
	return out
}

func (s Snapshot) find(names []string) *dto.MetricFamily {
	for _, n := range names {
		if f := s.families[n]; f != nil {
			return f
		}
	}
	return nil
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func value(m *dto.Metric) float64 {
	switch {
	case m.GetCounter() != nil:
		return m.GetCounter().GetValue()
	case m.GetGauge() != nil:
		return m.GetGauge().GetValue()
	}
	return m.GetUntyped().GetValue()
}
