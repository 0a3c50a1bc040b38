package node

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/api/servicebus"
	"github.com/messagehub/messagehub/api/servicebus/contentrequest"
	"github.com/messagehub/messagehub/api/servicebus/deadletterqueue"
	"github.com/messagehub/messagehub/api/servicebus/ingest"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
)

// A domains exchanges messages with the domains.
type domains struct {
	bus         *bus
	requests    *contentrequest.Requests
	notices     *servicebus.Notices
	noticeRelay *hub.NoticeRelay
	ingestion   *ingest.Ingestion
	letters     *deadletterqueue.Bus
}

func openDomains(ctx context.Context, cfg *config.Config, opts *Options, outbox repository.Outbox, receivers *push, metrics prometheus.Registerer) (_ *domains, err error) {
	d := new(domains)
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close(ctx))
		}
	}()
	if d.bus, err = openBus(ctx, cfg, opts); err != nil {
		return nil, err
	}
	queues := cfg.Queues()
	d.requests = contentrequest.New(contentrequest.Options{Open: d.bus.open, Queues: queues, Traces: opts.Traces, Clock: opts.Clock, Random: opts.randomFraction, Logger: opts.Logger, Registerer: metrics})
	d.notices = servicebus.NewNotices(servicebus.NoticeOptions{Open: d.bus.open, Queues: queues, Traces: opts.Traces, Clock: opts.Clock, Logger: opts.Logger, Registerer: metrics})
	d.noticeRelay = hub.NewNoticeRelay(outbox, &notifier{d.notices, receivers.events, receivers.watches}, hub.NoticeRelayOptions{Logger: opts.Logger, Random: opts.Random, Clock: opts.Clock})
	registerNotices(metrics, d.noticeRelay, opts.currentTime)
	d.letters = newDeadLetterBus(d.bus, opts)
	return d, nil
}

// openIngestion creates the ingestion, which passes announcements to the hub h.
func (d *domains) openIngestion(cfg *config.Config, opts *Options, h *hub.Hub, metrics prometheus.Registerer) {
	d.ingestion = ingest.New(ingest.Options{
		Hub: h, Open: d.bus.open, SessionQueue: cfg.ServiceBus.FIFO, Queue: cfg.ServiceBus.Plain, Sessions: cfg.ServiceBus.Sessions,
		DomainQueues: domainQueues(cfg),
		Message: ingest.MessageLimits{
			Body: int(cfg.Limits.RequestBody), Payload: int(cfg.Limits.Payload), Events: cfg.Limits.Events,
			PayloadDepth: cfg.Limits.PayloadDepth, PayloadNumber: cfg.Limits.PayloadNumber,
		},
		Limits: opts.Ingestion,
		Grace:  opts.Grace, Logger: opts.Logger, Registerer: metrics, Traces: opts.Traces, Clock: opts.Clock, Random: opts.randomFraction,
	})
}

// domainQueues returns the queues that belong to a single domain. The hub
// accepts no announcements of other domains from these queues.
func domainQueues(cfg *config.Config) (queues []ingest.DomainQueue) {
	for _, d := range cfg.Domains {
		if d.Ingest != "" {
			queues = append(queues, ingest.DomainQueue{Queue: d.Ingest, Origin: d.Name})
		}
	}
	return queues
}

// close closes first the senders and receivers, and then the bus that they use.
func (d *domains) close(ctx context.Context) error {
	if d == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	var errs []error
	if d.requests != nil {
		errs = append(errs, d.requests.Close(ctx))
	}
	if d.notices != nil {
		errs = append(errs, d.notices.Close(ctx))
	}
	if d.letters != nil {
		errs = append(errs, d.letters.Close(ctx))
	}
	return errors.Join(append(errs, d.bus.close())...)
}
