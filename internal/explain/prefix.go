package explain

import (
	"encoding/json"
	"regexp"
	"strings"
)

// A line is one line of a log as the rules see it.
type line struct {
	text string // without prefixes, quotes made alike
	show string // without prefixes: what a person is shown
	key  string // stream it belongs to: build step, process, rank, pod; "" when alone
	soft bool   // the writer itself called it a warning or less
}

// A prefix is something that a tool puts before each line of another tool.
type prefix struct {
	first string // bytes it can start with; "" for any
	re    *regexp.Regexp
}

const (
	digits = "0123456789"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	level  = `(?P<level>TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)`
)

// prefixes are tried in turn, again after each success: logs nest them.
var prefixes = []prefix{
	// docker buildx: "#17 107.9 text", and the bare seconds of older forms.
	{"#", regexp.MustCompile(`^(?P<key>#\d+) (?:\d+\.\d+(?: |$))?`)},
	{digits, regexp.MustCompile(`^\d{1,6}\.\d{1,3} +`)},
	// ISO time: kubectl, GitHub Actions, docker logs -t, many loggers; CRI adds a stream and a tag.
	{digits + "[", regexp.MustCompile(`^\[?\d{4}-\d\d-\d\d[T _-]\d\d:\d\d:\d\d(?:[.,:]\d+)?(?:Z| ?[+-]\d\d:?\d\d)?\]?(?:[ |:,-]+|$)(?:(?:stdout|stderr) [FP] )?`)},
	{digits, regexp.MustCompile(`^\d\d:\d\d:\d\d(?:[.,]\d+)? +`)},
	// journald and syslog.
	{upper, regexp.MustCompile(`^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ (?P<key>[\w./@-]+(?:\[\d+\])?): `)},
	// Process and rank names of vLLM, Ray, torchrun, mpirun, srun -l, kubectl logs --prefix.
	{"(", regexp.MustCompile(`^(?P<key>\([A-Za-z_][\w.:]*(?: |,)?(?:pid=\d+)?(?:, ip=[\d.]+)?\)) `)},
	{"[r", regexp.MustCompile(`^\[?(?P<key>rank ?\d+)\]?: ?`)},
	{"[", regexp.MustCompile(`^\[(?P<key>(?:pod|container)/[^\]]+|\d+,\d+)\](?:<std(?:out|err)>:)? ?`)},
	{digits + " ", regexp.MustCompile(`^ ?(?P<key>\d{1,4}): `)},
	// docker compose: "name  | text"; an empty name stands in pasted lines.
	{"", regexp.MustCompile(`^(?P<key>[A-Za-z][\w.-]{1,60}) +\| `)},
	{"", regexp.MustCompile(`^\s*[|│]\s`)},
	// Levels: vLLM, Python logging, klog, bracketed.
	{upper, regexp.MustCompile(`^` + level + `\s+\d\d-\d\d \d\d:\d\d:\d\d (?:\[[^\]]*\]|\S+:\d+\])\s?`)},
	{upper, regexp.MustCompile(`^` + level + `:[A-Za-z_][\w.]*:`)},
	{"IWEF", regexp.MustCompile(`^(?P<level>[IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ \S+:\d+\] (?:\[\d+/\d+\] )?`)},
	{"[", regexp.MustCompile(`^\[` + level + `\] `)},
	{"IWEF", regexp.MustCompile(`^(?P<level>[IWEF]) [a-z_]+/\S+:\d+\] `)},
	{" \t", regexp.MustCompile(`^[ \t]+`)},
}

var softWord = regexp.MustCompile(`^(?:-- |W: |\[?(?:WARN|WARNING|Warning|warning|DEPRECATION|NOTE|note|INFO|DEBUG)\b|CMake (?:Deprecation )?Warning|[\w.]*Warning: )|: (?:\w*[Ww]arning|note|remark)(?: #[\w-]+)?: `)

var quotes = strings.NewReplacer("`", "'", "‘", "'", "’", "'", "“", `"`, "”", `"`, "\u00a0", " ")

// lost matches colour codes whose ESC was lost when a log was pasted.
var lost = regexp.MustCompile(`\[(?:\d{1,3}(?:;\d{1,3})*)?[mK]`)

// parseLine takes the prefixes off and makes spelling uniform.
func parseLine(raw string) line {
	l := line{text: fromJSON(raw)}
	if strings.Contains(l.text, "[K") || strings.Contains(l.text, "m") && strings.Contains(l.text, "[0") {
		l.text = lost.ReplaceAllString(l.text, "")
	}
	for range 8 {
		if !l.stripOne() {
			break
		}
	}
	l.show = strings.TrimRight(printable(l.text), " \t")
	l.text = quotes.Replace(l.show)
	l.soft = l.soft || softWord.MatchString(l.text)
	return l
}

func (l *line) stripOne() bool {
	for _, p := range prefixes {
		if l.text == "" {
			return false
		}
		if p.first != "" && strings.IndexByte(p.first, l.text[0]) < 0 {
			continue
		}
		m := p.re.FindStringSubmatchIndex(l.text)
		if m == nil || m[1] == 0 {
			continue
		}
		if i := p.re.SubexpIndex("key"); i >= 0 && m[2*i] >= 0 {
			l.key = l.text[m[2*i]:m[2*i+1]]
		}
		if i := p.re.SubexpIndex("level"); i >= 0 {
			switch l.text[m[2*i]] {
			case 'E', 'C', 'F':
			default:
				l.soft = true
			}
		}
		l.text = l.text[m[1]:]
		return true
	}
	return false
}

// fromJSON returns the message of a log record in JSON, as docker's json-file
// driver and structured loggers write it, or s itself.
func fromJSON(s string) string {
	if !strings.HasPrefix(s, `{"`) || !strings.HasSuffix(strings.TrimSpace(s), "}") {
		return s
	}
	var rec struct {
		Log     string `json:"log"`
		Message string `json:"message"`
		Msg     string `json:"msg"`
	}
	if json.Unmarshal([]byte(s), &rec) != nil {
		return s
	}
	for _, v := range []string{rec.Log, rec.Message, rec.Msg} {
		if v != "" {
			return strings.TrimRight(v, "\r\n")
		}
	}
	return s
}
