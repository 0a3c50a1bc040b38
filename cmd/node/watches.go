package node

import (
	"context"
	"fmt"
	"strings"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/cmd/node/config"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	pushstore "github.com/messagehub/messagehub/cosmos/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/watch"
	"github.com/messagehub/messagehub/repository"
)

// A watches contains the use cases of watches, and the relay that publishes
// changes to them.
type watches struct {
	service *watch.Service
	relay   *watch.Relay
	base    domain.ResourceBase
	policy  domain.Policy
}

// openWatches returns the use cases of watches, which use the node's delivery
// of events. own is the node's URL.
func (p *push) openWatches(cfg *config.Config, opts *Options, s *nodeStore, documents *pushstore.Store, objects *objectstore.Store, streams repository.Streams, own string) (*watches, error) {
	w := &watches{policy: cfg.Watches.Policy()}
	text := cfg.Watches.Base
	if text == "" {
		text = own
	}
	var err error
	if w.base, err = domain.ParseResourceBase(text); err != nil {
		return nil, fmt.Errorf("watches.base: %w", err)
	}
	changes := repository.Changes(documents)
	if objects != nil {
		changes = watch.WithObjects(documents, objects)
	}
	options := watch.RelayOptions{Clock: opts.Clock, Random: opts.Random, Logger: opts.Logger}
	if p.objects != nil {
		options.SearchOthers = p.objects.QueueUnpublished
	}
	w.relay = watch.NewRelay(changes, streams, p.engine.Published, options)
	w.service = watch.New(watch.Ports{Watches: documents, Resources: documents, Changes: changes, Cursors: documents, Streams: streams, Bundles: s}, watch.Options{
		Base: w.base, CheckURL: p.checkWatchURL, Created: p.engine.Created, Changed: p.engine.Changed, Clock: opts.Clock,
	})
	return w, nil
}

// checkWatchURL checks a watch's callback URL. Its error does not name the
// field.
func (p *push) checkWatchURL(ctx context.Context, url string) error {
	err := p.client.CheckURL(ctx, url)
	if err == nil {
		return nil
	}
	return domain.Errorf(domain.KindOf(err), "%s", strings.TrimPrefix(err.Error(), "/callback_url: "))
}

// receiverOf returns the receiver of the watch that a cursor belongs to.
func (w *watches) receiverOf(ctx context.Context, cursor domain.CursorID, isCurrent bool) (delivery.Receiver, error) {
	found, err := w.service.WatchOf(ctx, cursor, isCurrent)
	if err != nil {
		return delivery.Receiver{}, err
	}
	return delivery.Receiver{Policy: w.policy, Target: &watcher{found.CallbackURL, w.base}}, nil
}

// A watcher contains the callback URL of a watch, and the base URL of the
// resource URIs that callWatch sends.
type watcher struct {
	callbackURL string
	base        domain.ResourceBase
}

// callWatch notifies a watch of a change.
func (c *httpCaller) callWatch(ctx context.Context, to *watcher, call *delivery.Call) domain.Answer {
	at := call.Entry.Position.EntryID
	change, err := domain.ChangeOf(&call.Entry.Message, at.Number)
	if err != nil {
		return domain.Answer{Lost: true, Error: "the change is damaged in the store"}
	}
	result, err := c.client.CallWatch(ctx, &webhook.WatchCall{
		ID:       webhook.DeliveryID(call.Cursor, change.Resource.Stream(), at, call.Entry.Published),
		Resource: to.base.URI(change.Resource), CallbackURL: to.callbackURL, Event: change.Event, Changed: change.At, Attempts: call.Attempt,
	})
	if err != nil {
		return timeoutResult().Answer
	}
	return result.Answer
}

// useCases returns the use cases of watches, or nil if w is nil.
func (w *watches) useCases() *watch.Service {
	if w == nil {
		return nil
	}
	return w.service
}
