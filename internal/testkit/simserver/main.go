package simserver

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Main is the simulated server as a program: it listens on --port until it is
// told to end, and its lifetime is the process. It returns the exit code.
func Main(args []string) int {
	fs := flag.NewFlagSet("simserve", flag.ContinueOnError)
	port := fs.String("port", "0", "port to listen on")
	defects := fs.String("defects", "", "defects, with commas")
	engines := fs.Int("engines", 1, "data-parallel engines")
	say := fs.String("say", "", "a line to log at the start")
	fail := fs.Bool("fail", false, "end before listening")
	if fs.Parse(args) != nil {
		return 2
	}
	if *say != "" {
		fmt.Fprintln(os.Stderr, *say)
	}
	if *fail {
		return 1
	}
	c := Config{Seed: 1, Engines: *engines, Lifetime: uint64(os.Getpid())} //nolint:gosec // a process id
	for d := range strings.SplitSeq(*defects, ",") {
		c.Defects = append(c.Defects, Defect(d))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	srv := &http.Server{Addr: net.JoinHostPort("127.0.0.1", *port), Handler: New(c), ReadHeaderTimeout: time.Minute}
	go func() {
		<-ctx.Done()
		fmt.Fprintln(os.Stderr, "ending")
		_ = srv.Close()
	}()
	fmt.Fprintln(os.Stderr, "listening on", srv.Addr)
	if err := srv.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
