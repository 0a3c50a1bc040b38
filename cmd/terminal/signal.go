package terminal

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// UntilSignal returns a context that ends at the first SIGINT or SIGTERM. The
// second signal ends the process with status 1. The returned function stops the
// handling of signals.
func UntilSignal(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for _, act := range []func(){cancel, func() {
			fmt.Fprintln(os.Stderr, "stopped at the second signal; what was answered is stored, requests under way are cut off")
			os.Exit(1)
		}} {
			select {
			case <-signals:
				act()
			case <-over:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(over)
		<-ended
		cancel()
	}
}
