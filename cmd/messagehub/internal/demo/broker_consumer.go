package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/messagehub/messagehub/api/broker/brokerclient"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
	"github.com/messagehub/messagehub/cosmos/embedded/httpserve"
)

// A demoConsumer is a consumer to which the hub pushes messages.
type demoConsumer struct {
	name  string
	kind  string // how it differs from a normal consumer, for the report
	token string
	delay time.Duration // pause before each answer

	listener net.Listener
	handler  http.Handler

	mu     sync.Mutex
	mode   consumerMode
	counts consumerCounts
	got    map[string]int // number of deliveries by message id
}

// A consumerMode decides how a consumer answers.
type consumerMode int

const (
	accepting  consumerMode = iota
	failing                 // answers 503
	postponing              // answers 503 with a Retry-After header
)

type consumerCounts struct {
	called  int // accepted calls
	fetched int // fetched messages
	refused int // refused calls
}

// openListener opens a loopback port and generates the consumer's token.
func (c *demoConsumer) openListener(ctx context.Context) (err error) {
	c.token, c.got = rand.Text(), make(map[string]int)
	if c.handler, err = brokerclient.NewConsumer(brokerclient.ConsumerOptions{Tokens: []string{c.token}}, c.handleDelivery); err != nil {
		return err
	}
	c.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	return err
}

func (c *demoConsumer) url() string { return "http://" + c.listener.Addr().String() + "/" }

// serveCalls answers the hub's calls until ctx ends.
func (c *demoConsumer) serveCalls(ctx context.Context) error {
	return httpserve.Serve(ctx, c.listener, httpserve.Options{
		Handler: c.handler, Logger: slog.New(slog.DiscardHandler), Server: "the consumer " + c.name, MaxConnections: 64,
	})
}

// Errors with which a consumer refuses a message for now.
var (
	errDead  = &brokerclient.RetryAfterError{Err: errors.New("the consumer is dead")}
	errLater = &brokerclient.RetryAfterError{After: time.Hour, Err: errors.New("the consumer wants to be called later")}
)

// handleDelivery handles a message that the hub delivers.
func (c *demoConsumer) handleDelivery(ctx context.Context, d *brokerclient.Delivery) error {
	if err := clock.Sleep(ctx, c.delay); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.mode {
	case failing:
		c.counts.refused++
		return errDead
	case postponing:
		c.counts.refused++
		return errLater
	case accepting:
	}
	c.counts.called++
	c.got[d.Message]++
	return nil
}

func (c *demoConsumer) setMode(m consumerMode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mode = m
}

func (c *demoConsumer) currentCounts() consumerCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// noteFetched counts a message that the consumer fetched itself.
func (c *demoConsumer) noteFetched(message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.fetched++
	c.got[message]++
}

// waitForCalls waits until the hub has called the consumer with n messages.
func (c *demoConsumer) waitForCalls(ctx context.Context, n int) error {
	return pollUntil(ctx, func() (bool, error) { return c.currentCounts().called >= n, nil })
}

// compareMessages returns how many of the messages in ids the consumer did not
// receive, and how many it received more than once.
func (c *demoConsumer) compareMessages(ids []string) (lost, twice int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		switch n := c.got[id]; {
		case n == 0:
			lost++
		case n > 1:
			twice++
		}
	}
	return lost, twice
}
