package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/receivers"
	"github.com/messagehub/messagehub/bench/service"
)

// callsToOne is the default limit of a hub for concurrent calls to one consumer.
const callsToOne = 16

// measureKill runs a hub as a separate process, kills it while messages are broadcast and
// delivered, and restarts it. It measures the time until the last message arrives. It also divides
// the number of repeated calls by the maximum number of calls that are active at the kill.
func (b *brokerBench) measureKill(ctx context.Context) (err error) {
	if b.Hub == nil {
		return errors.New("there is no program of a hub that could be killed")
	}
	program, err := b.Hub(ctx)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "messagehub-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	address, err := service.FreeAddress(ctx)
	if err != nil {
		return err
	}
	hub, err := service.StartProcess(ctx, program, address, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hub.Kill()) }() // Kill has no effect if the hub was killed before
	p := &receivers.Producer{Client: b.client, URL: hub.URL(), Token: service.AdminToken, Channel: "bench", Bytes: pushBytes}
	if err := p.Create(ctx, b.server.SlowURL()); err != nil {
		return err
	}
	accepted, err := b.broadcastUntilKilled(ctx, p, hub, pickSize(b.scenarioRun, 5_000, 1_000))
	if err != nil {
		return err
	}
	began := time.Now()
	next, err := service.StartProcess(ctx, program, address, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, next.Kill()) }()
	last, repeated, err := b.server.AwaitSlow(ctx, accepted)
	if err != nil {
		return fmt.Errorf("messages are missing after a kill: %w", err)
	}
	b.reportFigure("hub", "after kill -9, time until the last accepted message has arrived", max(last.Sub(began), 0).Seconds(), "s", figure.AtMost(12))
	b.reportFigure("hub", "after kill -9, repeated calls, ratio to calls that may be active", float64(repeated)/callsToOne, "times", figure.AtMost(1))
	return nil
}

// broadcastUntilKilled broadcasts messages by 16 producers, kills the hub after count messages, and
// returns the accepted messages.
func (b *brokerBench) broadcastUntilKilled(ctx context.Context, p *receivers.Producer, hub *service.Process, count int) (accepted []string, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	isEnough := make(chan struct{})
	for range 16 {
		all.Go(func() {
			for {
				message := b.newMessage()
				failure := p.SendUncounted(ctx, message)
				mu.Lock()
				if failure == nil {
					accepted = append(accepted, message)
				} else if err == nil && len(accepted) < count {
					err = failure // the hub failed before the kill
				}
				if len(accepted) == count && failure == nil {
					close(isEnough)
				}
				mu.Unlock()
				if failure != nil {
					return
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	select {
	case <-isEnough:
	case <-ended:
	}
	failure := hub.Kill()
	<-ended
	return accepted, errors.Join(err, failure)
}
