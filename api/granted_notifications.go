package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/messagehub/messagehub/api/internal/pathparam"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/domain/watch"
)

// A sender may be restricted to some groups of its actor. It must not get notifications about
// further groups. Resources that could reveal them are hidden, as if they did not exist:
// subscriptions to topics about all bundles of the actor, their deliveries, and watches of such
// subscriptions or of bundles of further groups. The sender cannot create such resources.

// isOfAllGroups reports whether a topic is about the bundles of an actor in all groups.
func isOfAllGroups(topic string) bool {
	return topic == domain.DataTopic || topic == domain.DequeuedTopic
}

// checkTopic fails if a topic concerns groups on which the sender of a request may not act.
func checkTopic(ctx context.Context, topic string) error {
	if isOfAllGroups(topic) && grantedGroups(ctx) != nil {
		return refuse(missingRight, "The token may act on some groups of this actor, and the topic %s is about all of them.", topic)
	}
	return nil
}

// hideOtherGroups refuses requests for a hidden subscription, delivery or watch, as if it did not
// exist.
func (s *Server) hideOtherGroups(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		if grantedGroups(r.Context()) != nil {
			if err := s.checkNotification(r); err != nil {
				return err
			}
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// checkNotification fails if the path or the query of a request names a subscription, delivery or
// watch that is hidden from the sender.
func (s *Server) checkNotification(r *http.Request) error {
	ctx := r.Context()
	if id, err := domain.ParseWatchID(pathparam.Value(r, "watchId")); err == nil {
		return s.checkWatch(ctx, id)
	}
	id, err := domain.ParseSubscriptionID(cmp.Or(pathparam.Value(r, "subscriptionId"), r.URL.Query().Get("subscription")))
	if delivery, deliveryErr := domain.ParseDeliveryID(pathparam.Value(r, "deliveryId")); deliveryErr == nil {
		id, err = delivery.Subscription, nil
	}
	if err != nil {
		return nil //nolint:nilerr // the handler reports what is wrong with it
	}
	hidden, err := s.isHidden(ctx, id)
	switch {
	case hidden && r.Method == http.MethodPut: // refused, because a PUT would create a subscription that does not exist
		return refuse(missingRight, "The token may act on some groups of this actor, and may not use this id.")
	case hidden:
		return domain.Errorf(domain.NotFound, "there is no subscription %s", id)
	}
	return err
}

// isHidden reports whether a subscription is hidden from the sender of a
// request.
func (s *Server) isHidden(ctx context.Context, id domain.SubscriptionID) (bool, error) {
	if s.opts.Subscriptions == nil {
		return false, nil
	}
	found, err := s.opts.Subscriptions.Get(ctx, actorOf(ctx), id)
	if domain.KindOf(err) == domain.NotFound {
		return false, nil
	}
	return err == nil && isOfAllGroups(found.Topic), err
}

// visibleSubscriptions returns the subscriptions that are not hidden from the
// sender of a request.
func visibleSubscriptions(ctx context.Context, all []*subscribe.Subscription) []*subscribe.Subscription {
	if grantedGroups(ctx) == nil {
		return all
	}
	return slices.DeleteFunc(all, func(sub *subscribe.Subscription) bool { return isOfAllGroups(sub.Topic) })
}

// A grantedView determines which resources the sender of a request may watch.
type grantedView struct {
	open          map[domain.BundleID]bool       // ids of open bundles in the granted groups; bundles that are not open have no known group
	subscriptions map[domain.SubscriptionID]bool // whether the subscription is hidden from the sender
}

// viewOf returns the view of the sender of a request, or nil if the sender may watch everything.
func (s *Server) viewOf(ctx context.Context) (*grantedView, error) {
	granted := grantedGroups(ctx)
	if granted == nil {
		return nil, nil //nolint:nilnil // all
	}
	v := &grantedView{make(map[domain.BundleID]bool), make(map[domain.SubscriptionID]bool)}
	queues, err := s.opts.Hub.Queues(ctx, actorOf(ctx))
	if err != nil {
		return nil, err
	}
	for _, q := range queues {
		if q.Open != nil && slices.Contains(granted, q.Group) {
			v.open[q.Open.ID] = true
		}
	}
	if s.opts.Subscriptions == nil {
		return v, nil
	}
	all, err := s.opts.Subscriptions.List(ctx, actorOf(ctx))
	for _, sub := range all {
		v.subscriptions[sub.ID] = isOfAllGroups(sub.Topic)
	}
	return v, err
}

// isVisible reports whether the view contains a resource. A nil view contains every resource.
func (v *grantedView) isVisible(r domain.Resource) bool {
	if v == nil {
		return true
	}
	if id, isBundle := r.Bundle(); isBundle {
		return v.open[id]
	}
	id, err := r.Subscription()
	return r.Kind() != domain.SubscriptionResource || err != nil || !v.subscriptions[id]
}

// checkWatched fails unless the sender of a request may watch a resource. The error is the same as
// for a resource that does not exist.
func (s *Server) checkWatched(ctx context.Context, uri string) error {
	view, err := s.viewOf(ctx)
	if view == nil || err != nil {
		return err
	}
	r, err := s.opts.Watches.Resource(actorOf(ctx), uri)
	if err != nil || view.isVisible(r) {
		return nil //nolint:nilerr // the use case says what is wrong with the URI
	}
	return domain.Errorf(domain.NotFound, "there is no such resource")
}

// checkWatch fails unless the sender of a request may watch the resource of a watch. The error is
// the same as for a watch that does not exist.
func (s *Server) checkWatch(ctx context.Context, id domain.WatchID) error {
	found, err := s.opts.Watches.Get(ctx, actorOf(ctx), id)
	if err != nil {
		return asWatchProblem(ctx, err)
	}
	if err := s.checkWatched(ctx, found.Resource); domain.KindOf(err) == domain.NotFound {
		return asWatchProblem(ctx, domain.Errorf(domain.NotFound, "there is no watch %s", id))
	} else if err != nil {
		return err
	}
	return nil
}

// visibleWatches returns up to count watches that are not hidden from the sender of a request,
// after skipping the first offset of them.
func (s *Server) visibleWatches(ctx context.Context, offset, count int) ([]*watch.Watch, error) {
	view, err := s.viewOf(ctx)
	if err != nil {
		return nil, err
	}
	if view == nil {
		return s.opts.Watches.List(ctx, actorOf(ctx), offset, count)
	}
	var visible []*watch.Watch
	for from := 0; len(visible) < offset+count; from += maxWatches {
		page, err := s.opts.Watches.List(ctx, actorOf(ctx), from, maxWatches)
		if err != nil {
			return nil, err
		}
		for _, found := range page {
			if r, err := s.opts.Watches.Resource(actorOf(ctx), found.Resource); err == nil && view.isVisible(r) {
				visible = append(visible, found)
			}
		}
		if len(page) < maxWatches {
			break
		}
	}
	visible = visible[min(offset, len(visible)):]
	return visible[:min(count, len(visible))], nil
}
