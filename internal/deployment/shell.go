package deployment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Shell reads a script or what was typed at a prompt. Variables that the text
// itself sets are filled in; a command that would be run for its output is not.
func Shell(where, text string) []Deployment {
	text = unprompt(text)
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.RecoverErrors(8)).Parse(strings.NewReader(text), where)
	s := script{where: where, env: map[string]string{}, exported: map[string]string{}}
	if file != nil {
		for _, stmt := range file.Stmts {
			s.statement(stmt)
		}
	}
	if err != nil && len(Servers(s.found)) == 0 {
		// A text that was cut or is no shell still has words.
		if d, ok := words(where, text, s.exported); ok {
			d.Problems = append(d.Problems, "not a whole shell command: "+parseError(err))
			return append(s.found, d)
		}
	}
	return s.found
}

// Command reads a command that a shell has split already; assignments may stand
// in front of it.
func Command(where string, argv []string) []Deployment {
	d := Deployment{Where: where, Argv: argv, Env: map[string]string{}}
	for len(d.Argv) > 1 && assignment.MatchString(d.Argv[0]) {
		name, value, _ := strings.Cut(d.Argv[0], "=")
		d.Env[name], d.Argv = value, d.Argv[1:]
	}
	s := script{where: where, env: map[string]string{}, exported: map[string]string{}}
	s.wrapped(&d)
	return append(s.found, d)
}

func parseError(err error) string {
	if p, ok := errors.AsType[syntax.ParseError](err); ok {
		return fmt.Sprintf("line %d: %s", p.Pos.Line(), p.Text)
	}
	return err.Error()
}

type script struct {
	where    string
	env      map[string]string // every variable
	exported map[string]string
	sourced  []string
	found    []Deployment
}

// statement goes through commands in order, those inside lists and blocks, too.
func (s *script) statement(stmt *syntax.Stmt) {
	switch c := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		s.call(c)
	case *syntax.DeclClause: // export NAME=VALUE
		for _, a := range c.Args {
			if a.Name != nil {
				s.assign(a, c.Variant.Value == "export")
			}
		}
	default:
		syntax.Walk(stmt, func(n syntax.Node) bool {
			inner, ok := n.(*syntax.Stmt)
			if ok && inner != stmt {
				s.statement(inner)
				return false
			}
			return true
		})
	}
}

func (s *script) assign(a *syntax.Assign, export bool) {
	if a.Value == nil && a.Array == nil {
		if v, ok := s.env[a.Name.Value]; ok && export {
			s.exported[a.Name.Value] = v
		}
		return
	}
	value, _ := s.literal(a.Value)
	s.env[a.Name.Value] = value
	if _, was := s.exported[a.Name.Value]; export || was {
		s.exported[a.Name.Value] = value
	}
}

func (s *script) call(c *syntax.CallExpr) {
	if len(c.Args) == 0 {
		for _, a := range c.Assigns {
			s.assign(a, false)
		}
		return
	}
	d := Deployment{Where: s.where, Line: int(c.Pos().Line()), Env: maps.Clone(s.exported), Sourced: slices.Clone(s.sourced)}
	for _, a := range c.Assigns {
		d.Env[a.Name.Value], _ = s.literal(a.Value)
	}
	for _, w := range c.Args {
		text, problem := s.literal(w)
		if problem != "" {
			d.Problems = append(d.Problems, problem)
		}
		d.Argv = append(d.Argv, text)
	}
	if len(d.Argv) > 1 && (d.Argv[0] == "source" || d.Argv[0] == ".") {
		s.sourced = append(s.sourced, d.Argv[1])
	}
	s.wrapped(&d)
	s.found = append(s.found, d)
}

// wrapped takes env's assignments and what docker run gives into d, and reads
// the script of sh -c.
func (s *script) wrapped(d *Deployment) {
	for i, w := range d.Argv {
		if name, value, isSet := strings.Cut(w, "="); i > 0 && isSet && d.Argv[0] == "env" && assignment.MatchString(w) {
			d.Env[name] = value
		}
	}
	if inner := s.dockerRun(d); inner != nil {
		s.found = append(s.found, inner...)
		d.Argv = nil // its words are those of the inner one
		return
	}
	s.found = append(s.found, inShell(s.where, d.Argv, d.Env)...)
}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

func shellName(word string) bool {
	base := word[strings.LastIndexByte(word, '/')+1:]
	return base == "sh" || base == "bash" || base == "dash"
}

// literal is the text that the command gets for a word, and what is wrong with
// it. JSON without quotes around it loses its own quotes to the shell.
func (s *script) literal(w *syntax.Word) (text, problem string) {
	if w == nil {
		return "", ""
	}
	var raw strings.Builder
	_ = syntax.NewPrinter().Print(&raw, w)
	unknown := ""
	config := &expand.Config{
		Env: expand.FuncEnviron(func(name string) string {
			v, ok := s.env[name]
			// The expansion itself asks for IFS, and for HOME and PWD where "~" stands.
			if !ok && (strings.Contains(raw.String(), "$"+name) || strings.Contains(raw.String(), "${"+name)) {
				unknown = name
			}
			return v
		}),
		// What would start a process is an error, not run.
		CmdSubst:  func(io.Writer, *syntax.CmdSubst) error { return errRuns },
		ProcSubst: func(*syntax.ProcSubst) (string, error) { return "", errRuns },
	}
	if bareJSON(raw.String()) {
		problem = fmt.Sprintf("the JSON %s is not quoted: the shell takes its quotes away", short(raw.String()))
		if _, value, ok := strings.Cut(raw.String(), "{"); ok && !json.Valid([]byte("{"+value)) {
			problem += "; it is cut off, or no JSON"
		}
		return raw.String(), problem
	}
	text, err := expand.Literal(config, w)
	switch {
	case err != nil:
		return raw.String(), fmt.Sprintf("the value of %s is known when the command runs only", raw.String())
	case unknown != "":
		return text, fmt.Sprintf("the variable %s is not set in this text", unknown)
	}
	return text, ""
}

var errRuns = errors.New("it would start a process")

// bareJSON reports whether a word as it was written is JSON without quotes.
func bareJSON(raw string) bool {
	return strings.HasPrefix(raw, `{"`) || strings.Contains(raw, `={"`)
}

func short(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}
