// Package page writes the result of a verification as one HTML page that needs
// no network and no script: every value is in the document itself.
package page

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"math"

	"github.com/invar-ops/invar/internal/verify/judge"
)

//go:embed all:page.html
var files embed.FS

var tmpl = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"percent": func(v float64) string { return fmt.Sprintf("%.3g %%", 100*v) },
	"delta":   func(v float64) string { return fmt.Sprintf("%.3e", v) },
	"shade":   shade,
	"chart":   chart,
	"lanes":   lanes,
	"add":     func(a, b int) int { return a + b },
}).ParseFS(files, "page.html"))

// Write writes the page of res.
func Write(w io.Writer, res judge.Result) error { return tmpl.Execute(w, res) }

// shade is the background of a cell of the heat map: n of all requests differ.
func shade(n, all int) template.CSS {
	if n <= 0 || all == 0 {
		return "background:#e8f3ea"
	}
	part := 0.25 + 0.75*float64(n)/float64(all)
	return template.CSS(fmt.Sprintf("background:rgba(200,40,40,%.2f)", part)) //nolint:gosec // a number
}

// A figure is the geometry of a drawing, in its own units.
type figure struct {
	Width, Height float64
	Lines         []line
	Max           string
}

type line struct {
	Label  string
	Y      float64
	Points []point
}

type point struct{ X, Y, Value float64 }

// maxLines bounds what is drawn: more lines than pixels say nothing.
const maxLines = 40

// chart draws the logprob differences of the changed requests over the
// position, on a logarithmic scale.
func chart(details []judge.Request) figure {
	f := figure{Width: 720, Height: 200}
	longest, top, low := 1, 0.0, math.Inf(1)
	for _, d := range details[:min(len(details), maxLines)] {
		longest = max(longest, len(d.First.Deltas))
		for _, v := range d.First.Deltas {
			top = max(top, v)
			if v > 0 {
				low = min(low, v)
			}
		}
	}
	f.Max = fmt.Sprintf("%.3e", top)
	if top == 0 {
		return f
	}
	span := math.Max(math.Log10(top)-math.Log10(low), 1)
	for _, d := range details[:min(len(details), maxLines)] {
		l := line{Label: fmt.Sprintf("request %d", d.Index)}
		for i, v := range d.First.Deltas {
			y := f.Height - 10
			if v > 0 {
				y = 10 + (f.Height-30)*(math.Log10(top)-math.Log10(v))/span
			}
			l.Points = append(l.Points, point{40 + float64(i)*(f.Width-60)/float64(longest), y, v})
		}
		f.Lines = append(f.Lines, l)
	}
	return f
}

// lanes draws when the tokens of each request came.
func lanes(all []judge.Lane) figure {
	const high = 12
	f := figure{Width: 720, Height: float64(len(all)*high + 24)}
	end := 1.0
	for _, l := range all {
		end = max(end, l.At[len(l.At)-1])
	}
	f.Max = fmt.Sprintf("%.0f ms", end)
	for n, l := range all {
		row := line{Label: fmt.Sprintf("request %d", l.Request), Y: float64(n*high + 10)}
		for _, at := range l.At {
			row.Points = append(row.Points, point{80 + at*(f.Width-100)/end, row.Y, at})
		}
		f.Lines = append(f.Lines, row)
	}
	return f
}
