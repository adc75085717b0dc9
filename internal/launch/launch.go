// Package launch starts an inference server from a command line, waits until it
// answers, and stops it with everything it started.
package launch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kballard/go-shellquote"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// A Command is a server's command line, taken apart.
type Command struct {
	Text string   // as it was given
	Argv []string // without assignments
	Env  []string // the assignments in front: KEY=VALUE
	URL  string   // where it will listen
}

// Parse reads text as a shell would read a simple command: quotes and leading
// assignments; nothing is expanded and no shell is started. Without a --port a
// free one is appended.
func Parse(text string) (Command, error) {
	words, err := shellquote.Split(text)
	if err != nil {
		return Command{}, report.Usagef("command %q: %w", text, err)
	}
	c := Command{Text: text}
	for len(words) > 0 && assignment(words[0]) {
		c.Env, words = append(c.Env, words[0]), words[1:]
	}
	if len(words) == 0 {
		return Command{}, report.Usagef("command %q starts nothing", text).WithHint(`--launch "vllm serve MODEL"`)
	}
	if i := slices.IndexFunc(words, func(w string) bool { return slices.Contains([]string{"|", "&", "&&", ";", ">", ">>"}, w) }); i >= 0 {
		return Command{}, report.Usagef("command %q: %q needs a shell", text, words[i]).WithHint("give the server's command alone; its output goes to a log file")
	}
	port := option(words, "--port")
	if port == "" {
		if port, err = freePort(); err != nil {
			return Command{}, err
		}
		words = append(words, "--port", port)
	}
	host := option(words, "--host")
	if host == "" || host == "0.0.0.0" || host == "::" {
		host = "127.0.0.1"
	}
	c.Argv, c.URL = words, (&url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)}).String()
	return c, nil
}

func assignment(w string) bool {
	k, _, ok := strings.Cut(w, "=")
	return ok && k != "" && strings.IndexFunc(k, func(r rune) bool {
		return r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}) < 0
}

// option is the value of name, in either spelling, or "".
func option(words []string, name string) string {
	for i, w := range words {
		if v, ok := strings.CutPrefix(w, name+"="); ok {
			return v
		}
		if w == name && i+1 < len(words) {
			return words[i+1]
		}
	}
	return ""
}

// freePort is a port that nobody listens on, below the range from which the
// kernel gives ports to connections and to listeners without a number (32768 on,
// ip_local_port_range): one of that range may be taken before the server starts.
func freePort() (string, error) {
	const first, count = 20000, 12000
	var err error
	for range 100 {
		port := strconv.Itoa(first + rand.IntN(count))
		var l net.Listener
		if l, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
			return port, l.Close()
		}
	}
	return "", err
}

// A Server is one that was started.
type Server struct {
	Command Command
	Log     string
	routing string // folder of routing records; "" where none are expected
	stop    context.CancelFunc
	ended   chan struct{}
	err     error // how it ended; read after ended is closed
}

// Start starts c with its output in log and waits at most patience until its
// /health answers.
func Start(ctx context.Context, r run.Runner, c Command, env []string, log string, patience time.Duration) (*Server, error) {
	for _, kv := range c.Env {
		k, v, _ := strings.Cut(kv, "=")
		env = run.Setenv(env, k, v)
	}
	if err := checkPlugins(env); err != nil {
		return nil, err
	}
	if listening(ctx, c.URL) {
		return nil, report.Problemf(report.Failed, "something listens on %s already", c.URL).WithHint("stop it, or give the command another --port")
	}
	if err := os.Remove(log); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	routing := ""
	if c.wantsRouting(env) {
		routing = strings.TrimSuffix(log, ".log") + ".routing"
		if err := os.RemoveAll(routing); err != nil {
			return nil, err
		}
		env = run.Setenv(env, routingVariable, routing)
	}
	sctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{Command: c, Log: log, routing: routing, stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		_, s.err = r.Run(sctx, run.Cmd{Argv: c.Argv, Env: env, Log: log})
	}()
	if err := s.wait(ctx, patience); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// Stop ends the server and everything in its group, and waits for it.
func (s *Server) Stop() {
	s.stop()
	<-s.ended
}

// Gone reports whether the server has ended by itself.
func (s *Server) Gone() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

func (s *Server) wait(ctx context.Context, patience time.Duration) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.ended:
			return s.diagnosed(ctx, fmt.Errorf("the server did not start: %w", s.err))
		case <-late.C:
			return s.diagnosed(ctx, fmt.Errorf("the server did not answer %s/health within %s", s.Command.URL, patience))
		case <-tick.C:
			if healthy(ctx, s.Command.URL) {
				return errors.Join(s.checkLog(), s.routed())
			}
		}
	}
}

func healthy(ctx context.Context, base string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/health", nil)
	if err != nil {
		return false
	}
	res, err := direct.Do(req)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// direct never goes through a proxy: the server is on this machine.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func listening(ctx context.Context, base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	d := net.Dialer{Timeout: time.Second}
	c, err := d.DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}
