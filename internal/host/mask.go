package host

import (
	"fmt"
	"regexp"
	"strings"
)

// A masker replaces what identifies a machine or a person. The same value gets
// the same substitute everywhere, so that a UUID in a variable still means the
// device that has it.
type masker struct {
	host string // this machine's name; "" masks none
	seen map[string]string
	next map[string]int
}

func newMasker(host string) *masker {
	host, _, _ = strings.Cut(host, ".")
	if len(host) < 4 || host == "localhost" {
		host = "" // too short or too common: it would hit other words
	}
	return &masker{host: host, seen: map[string]string{}, next: map[string]int{}}
}

var (
	secretKey  = regexp.MustCompile(`(?im)^([ \t|]*[A-Za-z ]*(?:Serial|Die ID|PDI|GUID|ClusterUUID|Chassis)[A-Za-z. ]*[:=][ \t]*)(\S[^\n]*?)([ \t]*)$`)
	uuidText   = regexp.MustCompile(`(?i)[0-9a-f]{8}([-_])[0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}\b`)
	macText    = regexp.MustCompile(`(?i)\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b`)
	ipv4Text   = regexp.MustCompile(`\b[0-9]{1,3}(?:\.[0-9]{1,3}){3,}\b`)
	ipv6Text   = regexp.MustCompile(`(?i)\b(?:[0-9a-f]{1,4}:){3,7}(?::?[0-9a-f]{1,4})\b|\b[0-9a-f]{1,4}(?::[0-9a-f]{1,4})*::[0-9a-f]{1,4}(?::[0-9a-f]{1,4})*\b`)
	longHex    = regexp.MustCompile(`(?i)\b[0-9a-f]{32,64}\b`)
	homeFolder = regexp.MustCompile(`/home/[^/\s:|"']+`)
)

// text masks one answer.
func (m *masker) text(s string) string {
	s = secretKey.ReplaceAllStringFunc(s, func(line string) string {
		p := secretKey.FindStringSubmatch(line)
		if given(p[2]) == "" {
			return line
		}
		return p[1] + m.sub("serial", p[2], "MASKED-%d") + p[3]
	})
	s = uuidText.ReplaceAllStringFunc(s, func(v string) string {
		sep := uuidText.FindStringSubmatch(v)[1]
		return strings.ReplaceAll(m.sub("uuid", strings.ReplaceAll(v, "_", "-"), "00000000-0000-0000-0000-%012d"), "-", sep)
	})
	s = macText.ReplaceAllStringFunc(s, func(v string) string { return m.sub("mac", strings.ToLower(v), "02:00:00:00:00:%02x") })
	s = longHex.ReplaceAllStringFunc(s, func(v string) string { return m.sub("id", v, "%032d") })
	s = homeFolder.ReplaceAllString(s, "/home/user")
	var b strings.Builder
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(m.addresses(line))
	}
	s = b.String()
	if m.host != "" {
		word := regexp.MustCompile(`(?i)(^|[^A-Za-z0-9])` + regexp.QuoteMeta(m.host) + `($|[^A-Za-z0-9])`)
		s = word.ReplaceAllString(s, "${1}host${2}")
	}
	return s
}

// addresses masks IP addresses. Versions of four parts look the same, so a
// line that speaks of versions keeps them: driver 23.0.2.1 is one.
func (m *masker) addresses(line string) string {
	if strings.Contains(strings.ToLower(line), "version") || strings.Contains(line, "2001:db8::") {
		return line
	}
	line = ipv4Text.ReplaceAllStringFunc(line, func(v string) string {
		if strings.Count(v, ".") != 3 {
			return v
		}
		return m.sub("ip", v, "192.0.2.%d")
	})
	return ipv6Text.ReplaceAllStringFunc(line, func(v string) string {
		if strings.HasPrefix(v, "02:00:00:00:00:") {
			return v // a masked MAC
		}
		return m.sub("ip6", strings.ToLower(v), "2001:db8::%x")
	})
}

func (m *masker) sub(kind, value, format string) string {
	k := kind + "\x00" + strings.ToLower(value)
	if s, ok := m.seen[k]; ok {
		return s
	}
	m.next[kind]++
	s := fmt.Sprintf(format, m.next[kind])
	m.seen[k] = s
	m.seen[kind+"\x00"+strings.ToLower(s)] = s // masking twice changes nothing
	return s
}
