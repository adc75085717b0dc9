package opp

import (
	"fmt"
	"strings"
)

// A Config is opp/vendors/config.ini as the lookup reads it.
type Config struct {
	Names  []string // between the commas, as written
	Doubts []string // what a person would read otherwise than the lookup does
}

const priority = "load_priority="

// ParseConfig reads the first line that begins with "load_priority=". There is
// no trimming: blanks and carriage returns belong to the names, and a line with
// blanks around "=" is no such line.
func ParseConfig(text string) Config {
	var c Config
	found := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		value, ok := strings.CutPrefix(line, priority)
		if !ok {
			if key, _, ok := strings.Cut(line, "="); ok && strings.TrimSpace(key) == strings.TrimSuffix(priority, "=") {
				c.doubt("%q is not read: there may be no blanks before or around load_priority=", line)
			}
			continue
		}
		if found++; found > 1 {
			c.doubt("%q is not read: the first load_priority line counts", line)
			continue
		}
		c.Names = strings.Split(value, ",")
		if strings.HasSuffix(value, "\r") {
			c.doubt("the line ends in a carriage return, which becomes part of the last name")
		}
		for _, n := range c.Names {
			if strings.Trim(n, " \t") != n {
				c.doubt("blanks around %q become part of the name", strings.TrimSpace(n))
			}
		}
	}
	if found == 0 {
		c.doubt("no line begins with load_priority=")
	}
	return c
}

func (c *Config) doubt(format string, args ...any) {
	c.Doubts = append(c.Doubts, fmt.Sprintf(format, args...))
}
