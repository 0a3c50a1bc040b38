package node

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/api/servicebus/deadletterqueue"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/deployment"
	"github.com/messagehub/messagehub/domain/deadletters"
	"github.com/messagehub/messagehub/repository"
)

// Reasons why operators cannot resend dead letters from the queues of content
// requests and replies.
const (
	noRequestAgain = "the hub asks again by itself, when the actor peeks"
	noReplyAgain   = "no request waits for the reply; the hub asks again when the actor peeks"
)

// deadLetterQueues returns the queues whose dead letters operators can manage:
// the queues from which the hub receives and, on an embedded bus, also those
// from which domains receive.
func deadLetterQueues(cfg *config.Config) (queues []deadletters.Queue) {
	noResend, isOfDomain := make(map[string]string), make(map[string]bool)
	for _, q := range cfg.Queues() {
		noResend[q.Request], noResend[q.Reply] = noRequestAgain, noReplyAgain
		isOfDomain[q.Request], isOfDomain[q.Dequeue] = true, true
	}
	has := make(map[string]bool)
	for _, q := range deployment.Queues(cfg) {
		if has[q.Name] || isOfDomain[q.Name] && !cfg.EmbeddedBus() {
			continue
		}
		has[q.Name] = true
		queues = append(queues, deadletters.Queue{Name: q.Name, Use: q.Use, NoResend: noResend[q.Name]})
	}
	return queues
}

// newDeadLetterBus returns a client for the dead letters on b. The client
// connects when it is first used.
func newDeadLetterBus(b *bus, opts *Options) *deadletterqueue.Bus {
	o := deadletterqueue.Options{Open: b.open, Clock: opts.Clock, Logger: opts.Logger}
	if b.own != nil {
		o.FetchesAny, o.Count = true, b.own.DeadLetters
	}
	return deadletterqueue.New(o)
}

// newDeadLetters returns the operators' use cases for dead letters. It
// registers a metric only if the bus can count dead letters.
func newDeadLetters(cfg *config.Config, opts *Options, d *domains, orders repository.DeadLetterActions, metrics prometheus.Registerer) *deadletters.Service {
	queues := deadLetterQueues(cfg)
	if d.bus.own != nil {
		for _, q := range queues {
			metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "messagehub_servicebus_dead_letters", Help: "Dead letters of a queue of the embedded bus.", ConstLabels: prometheus.Labels{"queue": q.Name},
			}, func() float64 {
				n, _ := d.bus.own.DeadLetters(q.Name)
				return float64(n)
			}))
		}
	}
	return deadletters.New(deadletters.Options{Queues: queues, Bus: d.letters, Actions: orders, Logger: opts.Logger})
}
