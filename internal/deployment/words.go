package deployment

import (
	"maps"
	"regexp"
	"strings"
)

// prompt is how a line begins that was copied from a terminal: "[root@host ~]# ",
// "(vllm) user@host:~$ ", or the "> " of a continued command.
var prompt = regexp.MustCompile(`^\s*(\([\w.-]+\)\s*)?(\[[^\]]*@[^\]]*\][#$]|[\w.-]+@[\w.-]+:[^#$]*[#$]|[#$]|>)\s+`)

// inner finds a prompt in the middle of a line, where a terminal redrew it.
var inner = regexp.MustCompile(`.*(\([\w.-]+\)\s*)?\[[^\]\s]+@[^\]]*\][#$] `)

// unprompt removes prompts, so that what was typed remains. Text without any
// prompt of the "[user@host]#" kind keeps its lines: "#" is a comment there.
func unprompt(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	terminal := false
	for _, l := range lines {
		m := prompt.FindString(l)
		terminal = terminal || strings.Contains(m, "@") || strings.HasPrefix(strings.TrimSpace(m), "$")
	}
	if !terminal {
		return text
	}
	var out []string
	for _, l := range lines {
		if loc := inner.FindStringIndex(l); loc != nil && loc[1] > len(prompt.FindString(l)) {
			// What stands before a redrawn prompt is no command: it ended there.
			out = append(out, "", l[loc[1]:])
			continue
		}
		stripped := l[len(prompt.FindString(l)):]
		if len(stripped) == len(l) && len(out) > 0 && !continued(out[len(out)-1]) {
			continue // output of a command, or a broken redraw
		}
		out = append(out, stripped)
	}
	return strings.Join(out, "\n")
}

func continued(line string) bool { return strings.HasSuffix(strings.TrimRight(line, " \t"), `\`) }

// words splits a text that no shell would take at its blanks, quotes and JSON
// kept, so that a command that was cut off still gives its flags.
func words(where, text string, env map[string]string) (Deployment, bool) {
	d := Deployment{Where: where, Line: 1, Env: maps.Clone(env)}
	if d.Env == nil {
		d.Env = map[string]string{}
	}
	d.Argv = strings.Fields(strings.ReplaceAll(text, "\\\n", " "))
	for i, w := range d.Argv {
		if assignment.MatchString(w) && !strings.HasPrefix(w, "-") {
			name, value, _ := strings.Cut(w, "=")
			d.Env[name] = strings.Trim(value, `"'`)
		}
		if bareJSON(w) {
			d.Problems = append(d.Problems, "the JSON "+short(w)+" is not quoted: the shell takes its quotes away")
		}
		d.Argv[i] = strings.Trim(w, `"'`)
		if strings.HasPrefix(w, "{") || strings.HasPrefix(w, "'{") {
			d.Argv[i] = strings.Trim(w, "'")
		}
	}
	name, _ := d.Engine()
	return d, name != ""
}
