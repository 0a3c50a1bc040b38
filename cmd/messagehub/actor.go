package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// A simulatedActor fetches the bundles of an actor and confirms them.
type simulatedActor struct {
	p     *process
	hub   *hubclient.Client
	actor string
	path  string // of a Peek that waits

	bundles int
	bytes   int64
}

const (
	actorWait  = 20 * time.Second // of a Peek that finds no data
	actorPause = time.Second      // before a retry, unless the hub says another
)

func (p *process) simulateActorCommand() *cobra.Command {
	var a actorCommand
	var group string
	cmd := &cobra.Command{
		Use:   "actor --actor ID",
		Short: "Simulate an actor: fetch bundles and confirm them",
		Long: "Simulate an actor, until Ctrl-C: peek, read the bundle, dequeue, and print a line for each bundle; then\n" +
			"print how much there was. While the hub is away, or asks for a pause, it retries. Bundles are confirmed\n" +
			"and their contents dropped, so this is for trials, beside messagehub domain.",
		Example: "  messagehub actor --actor 5790001330552",
		Args:    cobra.NoArgs,
	}
	a.flags(p, cmd)
	cmd.Flags().StringVar(&group, "group", "", "only from this `NAME`d group of domains, such as timeseries")
	cmd.Flags().Lookup("timeout").Usage = "give up a request after this `TIME`"
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		path, err := peekPath(group, "", "", actorWait)
		if err != nil {
			return p.usage("%w", err)
		}
		if a.timeout <= 0 {
			return p.usage("--timeout: want a time such as 1m, got %v", a.timeout)
		}
		hub, err := a.check(p)
		if err != nil {
			return p.usage("%w", err)
		}
		defer hub.Close()
		ctx, stop := terminal.UntilSignal(ctx)
		defer stop()
		s := &simulatedActor{p: p, hub: hub, actor: a.actor, path: path}
		return s.run(ctx, actorWait+a.timeout)
	})
	return cmd
}

// run fetches bundles until ctx ends.
func (s *simulatedActor) run(ctx context.Context, timeout time.Duration) error {
	fmt.Fprintf(s.p.out, "actor %s at %s; Ctrl-C ends it\n", s.actor, s.hub.Base)
	for ctx.Err() == nil {
		began, pause := time.Now(), time.Duration(0)
		switch found, err := s.fetch(ctx, timeout); {
		case ctx.Err() != nil: // its request was cut off
		case err != nil:
			var canRetry bool
			if pause, canRetry = retryPause(err); !canRetry {
				return err
			}
			fmt.Fprintf(s.p.err, "messagehub: %v; retry in %s\n", err, pause)
		case !found && time.Since(began) < actorPause: // the hub does not let it wait
			pause = actorPause
		}
		_ = clock.Sleep(ctx, pause)
	}
	fmt.Fprintf(s.p.out, "%s, %s\n", terminal.CountOf(int64(s.bundles), "bundle"), terminal.CountOf(s.bytes, "byte"))
	return nil
}

// retryPause returns the pause after a failed request, and whether a retry may succeed.
func retryPause(err error) (time.Duration, bool) {
	if problem, ok := errors.AsType[*hubclient.Problem](err); ok {
		if problem.RetryAfter < 0 {
			return actorPause, problem.IsTemporary()
		}
		return max(problem.RetryAfter, actorPause/10), problem.IsTemporary()
	}
	return actorPause, errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded)
}

// fetch peeks, and confirms what it got. It reports whether there was a bundle.
func (s *simulatedActor) fetch(ctx context.Context, timeout time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	resp, err := s.hub.Do(ctx, http.MethodGet, s.path, s.actor, nil)
	if err != nil {
		return false, err
	}
	size, err := io.Copy(io.Discard, resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return false, fmt.Errorf("the body broke off: %w", err)
	}
	if resp.StatusCode == http.StatusNoContent {
		return false, nil
	}
	id := resp.Header.Get("MessageId")
	confirmed, err := s.hub.Do(ctx, http.MethodDelete, "/v1/dequeue/"+id, s.actor, nil)
	if problem, ok := errors.AsType[*hubclient.Problem](err); ok && problem.Status == http.StatusNotFound {
		return true, nil // an earlier request that had no answer, or an operator, has closed it
	} else if err != nil {
		return false, err
	}
	s.bundles++
	s.bytes += size
	fmt.Fprintf(s.p.out, "dequeued %s: %d bytes of %s\n", id, size, resp.Header.Get("MessageType"))
	return true, confirmed.Body.Close()
}
