package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/client"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
)

// A NotifyReport counts the calls that Notify made.
type NotifyReport struct {
	Calls  int64 // number of calls with a known outcome
	Failed int64 // number of failed calls, which will be retried later
}

// NotifyReserve returns the length of the last part of Notify, in which no call
// begins because it might not end in time.
func NotifyReserve(cfg *config.Config) time.Duration { return engineOptions(cfg).Reserve() }

// Notify calls the receivers of the store that cfg names, without running a
// hub. It begins calls until duration has almost passed or ctx ends, and
// returns when all calls have ended and their outcomes are stored. If hubs of
// the same account run, Notify takes over its share of the receivers, and
// returns the share at the end. duration must be longer than NotifyReserve.
// Notify fails with a *InUseError if a process uses the data folder, and with a
// *NoDataError if the folder contains no data.
func Notify(ctx context.Context, cfg config.Config, opts Options, duration time.Duration) (report NotifyReport, err error) {
	began := time.Now()
	if err := cfg.Validate(); err != nil {
		return report, err
	}
	if least := NotifyReserve(&cfg); duration <= least {
		return report, fmt.Errorf("want more than %s: a call takes up to %s (push.timeout), and its outcome has to be stored", least, cfg.Push.Timeout)
	}
	if err := requireData(&cfg); err != nil {
		return report, err
	}
	cfg.BlobListen = "" // no listener for domains during Notify
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if opts.Random == nil {
		opts.Random = rand.Uint64
	}
	opts.setConnections(&cfg)
	defer opts.network.close()
	metrics := prometheus.NewRegistry()
	s, err := openStore(ctx, &cfg, &opts, metrics)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	opts.pushFor = max(duration-time.Since(began), 1)
	counts := new(countingCaller)
	opts.wrapCaller = counts.wrap
	var changes *objectstore.Store
	switch objects, err := openObjectStore(ctx, &cfg, &opts, s, metrics); {
	case err == nil:
		changes = objects
	case !client.IsContainerFault(err):
		return report, err
	}
	p, err := openPush(ctx, &cfg, &opts, s, configuredURL(&cfg), changes, metrics)
	if err != nil {
		return report, err
	}
	defer p.close()
	if p.fault != nil {
		return report, fmt.Errorf("%w; run messagehub provision", p.fault)
	}
	err = s.whileWritable(ctx, p.run)
	return NotifyReport{Calls: counts.calls.Load(), Failed: counts.failed.Load()}, err
}

// whileWritable runs f. If the disk becomes unwritable, it cancels f's context
// and returns an error.
func (s *nodeStore) whileWritable(ctx context.Context, f func(context.Context)) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f(ctx)
	}()
	var err error
	select {
	case err = <-s.diskFailed:
	case <-ended:
	}
	cancel()
	<-ended
	return err
}

// A countingCaller counts the calls that the next caller makes.
type countingCaller struct {
	next          delivery.Caller
	calls, failed atomic.Int64
}

func (c *countingCaller) wrap(next delivery.Caller) delivery.Caller {
	c.next = next
	return c
}

// Call makes a call. It counts the call if the outcome is known.
func (c *countingCaller) Call(ctx context.Context, call delivery.Call) domain.Answer {
	a := c.next.Call(ctx, call)
	if ctx.Err() == nil && !a.Unread && !a.Lost {
		c.calls.Add(1)
		if a.Error != "" {
			c.failed.Add(1)
		}
	}
	return a
}
