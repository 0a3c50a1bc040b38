package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/api/broker/brokerclient"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/domain"
)

// A brokerDemo broadcasts messages to five consumers of a channel. One consumer
// is slow. Another fails until all of its jobs are dead; then half of the jobs
// are re-triggered, and the consumer fetches the messages of the other half.
// Each consumer must receive each message once.
type brokerDemo struct {
	out       io.Writer
	channel   string
	producer  string
	tokens    map[string]string // tokens by channel id or producer id
	consumers []*demoConsumer
	limit     time.Duration // timeout of the demo
	messages  int
}

const (
	brokerMessages   = 24
	brokerRetries    = 1
	brokerRetryDelay = 20 * time.Millisecond
	slowDelay        = 50 * time.Millisecond
)

// newBrokerDemo returns a demo whose consumers already listen. The caller must
// serve or close their listeners.
func newBrokerDemo(ctx context.Context, out io.Writer) (_ *brokerDemo, err error) {
	b := &brokerDemo{
		out: out, channel: "prices", producer: "exchange", limit: time.Minute, messages: brokerMessages,
		tokens: map[string]string{"prices": rand.Text(), "exchange": rand.Text()},
	}
	defer func() {
		if err != nil {
			b.closeListeners()
		}
	}()
	for _, c := range []*demoConsumer{
		{name: "billing"},
		{name: "archive"},
		{name: "website"},
		{name: "report", kind: "slow", delay: slowDelay},
		{name: "mobile", kind: "dead", mode: failing},
	} {
		if err := c.openListener(ctx); err != nil {
			return nil, err
		}
		b.consumers = append(b.consumers, c)
	}
	return b, nil
}

// closeListeners closes the listeners of all consumers.
func (b *brokerDemo) closeListeners() {
	for _, c := range b.consumers {
		_ = c.listener.Close()
	}
}

// setParties adds the channel, its producer and its consumers to the
// configuration. The hub creates these parties when it starts.
func (b *brokerDemo) setParties(cfg *config.Broker) error {
	cfg.MaxRetry, cfg.RetryDelay = brokerRetries, brokerRetryDelay
	channel, err := domain.Channels.Parse(b.channel)
	if err != nil {
		return err
	}
	producer, err := domain.Producers.Parse(b.producer)
	if err != nil {
		return err
	}
	party := func(id domain.PartyID, token, url string) config.BrokerParty {
		return config.BrokerParty{ID: id, CallbackURL: url, Token: config.TokenSource{Value: config.Secret(token)}}
	}
	cfg.Channels = config.BrokerParties{party(channel, b.tokens[b.channel], "")}
	cfg.Producers = config.BrokerParties{party(producer, b.tokens[b.producer], "")}
	for _, c := range b.consumers {
		id, err := channel.Consumers().Parse(c.name)
		if err != nil {
			return err
		}
		cfg.Consumers = append(cfg.Consumers, party(id, c.token, c.url()))
	}
	return nil
}

// newClient returns a client with credentials for the hub at url.
func (b *brokerDemo) newClient(url string, creds brokerclient.Credentials) (*brokerclient.Client, error) {
	return brokerclient.New(brokerclient.Options{URL: url, Credentials: creds})
}

// runAll runs the demo with the hub at url. It fails if a consumer did not
// receive a message, or received it twice.
func (b *brokerDemo) runAll(ctx context.Context, url string) (err error) {
	serving, stop := context.WithCancel(ctx)
	var receivers errgroup.Group
	defer func() {
		stop()
		err = errors.Join(err, receivers.Wait())
	}()
	for _, c := range b.consumers {
		receivers.Go(func() error { return c.serveCalls(serving) })
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.limit, errBrokerSlow)
	defer cancel()
	err = b.playAll(ctx, url)
	if err != nil && errors.Is(context.Cause(ctx), errBrokerSlow) {
		return fmt.Errorf("%w: %w", errBrokerSlow, err)
	}
	return err
}

// errBrokerSlow cancels the demo's context when the demo exceeds its time
// limit.
var errBrokerSlow = errors.New("the broker has not delivered in time")

func (b *brokerDemo) playAll(ctx context.Context, url string) error {
	ids, took, err := b.publishMessages(ctx, url)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	fmt.Fprintf(b.out, "\nThe webhook broker: %s were broadcast to the channel %s in %s. It has %d consumers, of which one is slow and one is dead.\n",
		terminal.CountOf(int64(len(ids)), "message"), b.channel, took.Round(time.Millisecond), len(b.consumers))
	dead := b.consumers[len(b.consumers)-1]
	for _, c := range b.consumers {
		if c == dead {
			continue
		}
		if err := c.waitForCalls(ctx, len(ids)); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	client, err := b.newClient(url, brokerclient.Credentials{ConsumerToken: dead.token})
	if err != nil {
		return err
	}
	defer client.Close()
	if err := b.reviveConsumer(ctx, client, dead, len(ids)); err != nil {
		return fmt.Errorf("%s: %w", dead.name, err)
	}
	return b.printReport(ids)
}

// publishMessages broadcasts all messages. It returns their ids, and how long
// it took.
func (b *brokerDemo) publishMessages(ctx context.Context, url string) (ids []string, took time.Duration, err error) {
	client, err := b.newClient(url, brokerclient.Credentials{ChannelToken: b.tokens[b.channel], ProducerID: b.producer, ProducerToken: b.tokens[b.producer]})
	if err != nil {
		return nil, 0, err
	}
	defer client.Close()
	began := time.Now()
	for n := range b.messages {
		id, err := client.Publish(ctx, b.channel, &brokerclient.Message{
			ID: fmt.Sprintf("price-%d", n), Priority: n % 3, ContentType: "application/json", Payload: fmt.Appendf(nil, `{"hour":%d,"price":%d.%02d}`, n, 30+n%7, n*37%100),
		})
		if err != nil {
			return nil, 0, err
		}
		ids = append(ids, id)
	}
	return ids, time.Since(began), nil
}

// reviveConsumer prints the dead letters of the failing consumer and makes it
// work again. Half of the dead letters are re-triggered; the consumer fetches
// the other half.
func (b *brokerDemo) reviveConsumer(ctx context.Context, client *brokerclient.Client, c *demoConsumer, messages int) error {
	dead, err := b.awaitDeadLetters(ctx, client, c.name, messages)
	if err != nil {
		return err
	}
	b.showDeadLetters(c, dead)

	c.setMode(accepting)
	half := len(dead) / 2
	if err := b.retriggerJobs(ctx, client, c, dead[:half]); err != nil {
		return err
	}
	if err := c.waitForCalls(ctx, half); err != nil {
		return err
	}
	fmt.Fprintf(b.out, "%s is available again: %s were re-triggered, and the hub called it with their messages.\n", c.name, terminal.CountOf(int64(half), "dead letter"))

	c.setMode(postponing)
	if err := b.retriggerJobs(ctx, client, c, dead[half:]); err != nil {
		return err
	}
	bundles, err := b.fetchMessages(ctx, client, c, len(dead)-half)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(b.out, "The consumer asks to be called later; the other %d were re-triggered, and it fetched their messages by Peek and Dequeue, in %s.\n\n",
		len(dead)-half, terminal.CountOf(int64(bundles), "bundle"))
	return err
}

// awaitDeadLetters waits until a consumer has n dead letters, and returns the
// dead letters.
func (b *brokerDemo) awaitDeadLetters(ctx context.Context, client *brokerclient.Client, consumer string, n int) (dead []*brokerclient.Job, err error) {
	err = pollUntil(ctx, func() (bool, error) {
		dead = dead[:0]
		for job, err := range client.DeadLetters(ctx, b.channel, consumer) {
			if err != nil {
				return false, err
			}
			dead = append(dead, job)
		}
		return len(dead) >= n, nil
	})
	return dead, err
}

// shownDeadLetters is the number of dead letters that the demo prints.
const shownDeadLetters = 3

func (b *brokerDemo) showDeadLetters(c *demoConsumer, dead []*brokerclient.Job) {
	fmt.Fprintf(b.out, "%s answered 503 to %s. All of its jobs are dead letters:\n", c.name, terminal.CountOf(int64(c.currentCounts().refused), "call"))
	for i, job := range dead {
		if i == shownDeadLetters {
			fmt.Fprintf(b.out, "  and %d more\n", len(dead)-i)
			break
		}
		last := job.History[len(job.History)-1]
		fmt.Fprintf(b.out, "  message %s, dead after %s, the last one answered with %d\n", job.Message, terminal.CountOf(int64(job.Attempts), "attempt"), last.Status)
	}
}

func (b *brokerDemo) retriggerJobs(ctx context.Context, client *brokerclient.Client, c *demoConsumer, jobs []*brokerclient.Job) error {
	for _, job := range jobs {
		if err := client.RetriggerJob(ctx, b.channel, job.Message, c.name); err != nil {
			return fmt.Errorf("re-trigger %s: %w", job.Message, err)
		}
	}
	return nil
}

// fetchMessages fetches n messages for a consumer, and returns the number of
// bundles that contained them.
func (b *brokerDemo) fetchMessages(ctx context.Context, client *brokerclient.Client, c *demoConsumer, n int) (bundles int, err error) {
	fetched := 0
	err = pollUntil(ctx, func() (bool, error) {
		bundle, err := client.Peek(ctx, b.channel, c.name, 0)
		if err != nil || bundle == nil {
			return false, err
		}
		for i := range bundle.Messages {
			c.noteFetched(bundle.Messages[i].ID)
		}
		if err := client.Dequeue(ctx, b.channel, c.name, bundle.ID); err != nil {
			return false, err
		}
		bundles++
		fetched += len(bundle.Messages)
		return fetched >= n, nil
	})
	return bundles, err
}

// pollEvery is the interval at which pollUntil checks its condition.
const pollEvery = 20 * time.Millisecond

// pollUntil calls isDone repeatedly until it returns true or an error, or ctx
// ends.
func pollUntil(ctx context.Context, isDone func() (bool, error)) error {
	again := time.NewTicker(pollEvery)
	defer again.Stop()
	for {
		if done, err := isDone(); done || err != nil {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// printReport prints a table of counts for each consumer. It fails unless every
// consumer received every message once.
func (b *brokerDemo) printReport(ids []string) error {
	table := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "consumer\t\tcalled with\tfetched\trefused\tlost\ttwice\t")
	lost, twice := 0, 0
	for _, c := range b.consumers {
		n := c.currentCounts()
		l, t := c.compareMessages(ids)
		lost, twice = lost+l, twice+t
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t\n", c.name, c.kind, n.called, n.fetched, n.refused, l, t)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(b.out, "\nOf %d deliveries, %d were lost, and %d were repeated.\n", len(ids)*len(b.consumers), lost, twice)
	if lost+twice > 0 {
		return errors.New("the broker lost or repeated a delivery")
	}
	return nil
}
