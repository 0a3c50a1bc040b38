package hub

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// In content mode request, the hub first opens a bundle as usual. Then it asks the domain for the content, copies the
// content, and records the copy in the bundle. From then on every Peek returns this copy, and later replies of the
// domain are ignored. If a node dies before it records the copy, the bundle is open without content, and the next Peek
// asks the domain again.
//
// If the object is deleted while the bundle is open, the bundle is marked, and the next Peek asks the domain again; see
// content_gone.go.
//
// On each node, one fetch serves all Peeks of a bundle. It lasts as long as the first of these Peeks may wait; a later
// reply serves the next Peek. A domain may be asked repeatedly and by several nodes. The first recorded reply counts,
// until its content is marked as deleted.

// An UnansweredError reports that the domain has not yet produced the content of an open bundle. The bundle stays open,
// and the next Peek asks the domain again. The error has kind Unavailable.
type UnansweredError struct{ Bundle domain.Bundle }

func (e *UnansweredError) Error() string {
	t := e.Bundle.ContentFailure
	text := fmt.Sprintf("bundle %s: domain %s has not produced its content: %s", e.Bundle.ID, e.Bundle.Cabinet.Origin, t.Reason)
	if t.Text != "" {
		text += ": " + t.Text
	}
	return text
}

// NoAnswer is the Reason of a ContentFailure if the domain did not reply in time.
const NoAnswer = "no-answer"

const (
	// reservedTime is the part of a Peek's time that is reserved for copying the content. The domain can use the rest.
	reservedTime = 2 * time.Second

	// lateReplyWait is how long a fetch waits for a reply after its Peek has timed out.
	lateReplyWait = 30 * time.Second
)

// requestContent asks the domain for the content of an open bundle, and returns the bundle with the content. list
// contains the ids of the events; if it is nil, they are read from run.
func (h *Hub) requestContent(ctx context.Context, req PeekRequest, bundle domain.Bundle, run repository.Run, list []byte) (domain.Bundle, error) {
	if h.opts.Requester == nil {
		return bundle, domain.Errorf(domain.Unavailable, "bundle %s: its content comes from domain %s, which this node cannot ask", bundle.ID, bundle.Cabinet.Origin)
	}
	now := time.Now()
	by := req.By
	if by.IsZero() {
		by = now.Add(peekWithin)
	}
	i := &contentFetch{
		hub: h, key: fetchKey{req.Actor, bundle.ID}, bundle: bundle, folder: run.Folder(), list: list, run: run, trace: domain.TraceContextOf(ctx),
		until: by.Add(-min(reservedTime, by.Sub(now)/10)),
	}
	i, err := h.fetches.joinFetch(i, h.opts.ListenersPerActor)
	if err != nil {
		return bundle, err
	}
	defer h.fetches.leaveFetch(i)
	resume := func(context.Context) error { return nil }
	if req.Pause != nil {
		resume = req.Pause()
	}
	select {
	case <-i.done:
		if i.err != nil && domain.KindOf(i.err) != domain.Conflict {
			return i.result, i.err // a different fetch has recorded the content
		}
		if err := resume(ctx); err != nil {
			return i.result, err
		}
		return i.result, i.err
	case <-ctx.Done():
		return bundle, ctx.Err()
	}
}

// askDomain sends one request to a domain. It waits for the reply until i.until plus lateReplyWait.
func (h *Hub) askDomain(ctx context.Context, i *contentFetch) {
	ctx, cancel := context.WithDeadline(domain.WithTraceContext(ctx, i.trace), i.until.Add(lateReplyWait))
	defer cancel()
	if err := h.storeList(ctx, i); err != nil {
		h.fetches.finishFetch(i, i.bundle, asUnavailable(err))
		return
	}
	i.list, i.run = nil, nil // free this memory, because the domain may take a long time to reply
	type answer struct {
		reply Reply
		err   error
	}
	replies := make(chan answer, 1)
	var asking sync.WaitGroup
	asking.Go(func() {
		reply, err := h.opts.Requester.Request(ctx, ContentRequest{
			Recipient: i.key.actor, Origin: i.bundle.Cabinet.Origin, Bundle: i.bundle.ID, ContentType: i.bundle.Cabinet.ContentType,
			Format: i.bundle.Format, Version: i.bundle.Version, List: i.bundle.List, Trace: i.trace, By: i.until,
		})
		replies <- answer{reply, err}
	})
	defer asking.Wait()
	silence := time.NewTimer(time.Until(i.until))
	defer silence.Stop()
	late := false
	for {
		select {
		case a := <-replies:
			switch {
			case a.err == nil:
				h.handleReply(ctx, i, a.reply, late)
			case !late:
				h.fetches.finishFetch(i, i.bundle, a.err)
			}
			return
		case <-silence.C:
			late = true
			h.recordFailure(ctx, i, domain.ContentFailure{Reason: NoAnswer})
		}
	}
}

// storeList stores the ids of the bundle's events for the domain. The object name identifies the events, so an existing
// object of this name has the same content.
func (h *Hub) storeList(ctx context.Context, i *contentFetch) error {
	if i.list == nil {
		r, err := h.opts.Exchange.Open(ctx, repository.Section{Object: i.bundle.List})
		if err == nil {
			return r.Close()
		}
		if domain.KindOf(err) != domain.NotFound {
			return err
		}
		list := make([]byte, 0, i.bundle.Count*len(domain.EventID{}))
		for e, err := range i.run.Events(ctx) {
			if err != nil {
				return err
			}
			list = appendID(list, e.ID)
		}
		if err := isWhole(&i.bundle, len(list)/len(domain.EventID{})); err != nil {
			return err
		}
		i.list = list
	}
	err := h.opts.Exchange.Put(ctx, i.bundle.List, bytes.NewReader(i.list))
	if err != nil && domain.KindOf(err) != domain.Conflict {
		return fmt.Errorf("store the list of events for domain %s: %w", i.bundle.Cabinet.Origin, err)
	}
	return nil
}

// handleReply records a reply as content or as a failure. It does not count a late failure, because a missing reply
// already counts as one.
func (h *Hub) handleReply(ctx context.Context, i *contentFetch, reply Reply, late bool) {
	why := reply.Failure
	if reply.URI != "" {
		object, body, failure, err := h.copyContent(ctx, i, reply.URI)
		if err == nil && failure == nil {
			h.recordContent(ctx, i, object, body, reply.URI)
			return
		}
		if err != nil {
			h.fetches.finishFetch(i, i.bundle, asUnavailable(err))
			return
		}
		why = *failure
	}
	if !late {
		h.recordFailure(ctx, i, why)
	}
}

// recordContent records content in the bundle. If a different reply was recorded first, the Peek returns that content.
// If the bundle is closed, the content is not deleted: a call whose result was lost may have recorded it, and an
// operator may reopen the bundle. It is deleted together with its folder.
func (h *Hub) recordContent(ctx context.Context, i *contentFetch, object string, body domain.Body, uri string) {
	bundle, err := h.recordAnswer(ctx, i, object, body)
	if domain.KindOf(err) == domain.Uncertain {
		bundle, err = h.recordAnswer(ctx, i, object, body)
	}
	outcome := asConflict(err)
	if err == nil && bundle.LacksContent() {
		outcome = domain.Errorf(domain.Conflict, "the content of the bundle was deleted while its domain was asked")
	}
	h.fetches.finishFetch(i, bundle, outcome) // finish before the clean-up, so that no request waits for it
	if err == nil && bundle.Object != object {
		h.logCleanup(ctx, i, h.content.Delete(ctx, object))
	}
	if name, nerr := h.opts.Exchange.Name(uri); err == nil && nerr == nil && i.isOwn(name) {
		h.logCleanup(ctx, i, h.opts.Exchange.Discard(ctx, uri))
	}
}

// recordAnswer records a reply. It replaces only the content that the bundle had when the fetch began.
func (h *Hub) recordAnswer(ctx context.Context, i *contentFetch, object string, body domain.Body) (domain.Bundle, error) {
	if i.bundle.Object != "" {
		return h.opts.Answers.ReplaceAnswer(ctx, i.key.actor, i.bundle.ID, i.bundle.Object, object, body)
	}
	return h.opts.Answers.Answer(ctx, i.key.actor, i.bundle.ID, object, body)
}

// asUnavailable converts a Conflict or NotFound of the exchange or content store to Unavailable, because the bundle is
// not affected and the next attempt may succeed.
func asUnavailable(err error) error {
	switch domain.KindOf(err) {
	case domain.Conflict, domain.NotFound:
		return domain.Errorf(domain.Unavailable, "%w", err)
	default:
		return err
	}
}

// asConflict converts NotFound to Conflict, because the bundle was closed and the Peek must start over.
func asConflict(err error) error {
	if domain.KindOf(err) == domain.NotFound {
		return domain.Errorf(domain.Conflict, "the bundle was closed while its domain was asked: %w", err)
	}
	return err
}

// logCleanup logs that an unused object could not be deleted. It will be replaced, or deleted with its folder.
func (h *Hub) logCleanup(ctx context.Context, i *contentFetch, err error) {
	if err != nil && ctx.Err() == nil {
		h.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "content that is no longer needed could not be removed",
			slog.String("bundle_id", i.bundle.ID.String()), slog.String("error", err.Error()))
	}
}

// recordFailure counts and logs a failure of the domain. After many failures, it logs an error. If a different node has
// recorded a reply, the fetch succeeds.
func (h *Hub) recordFailure(ctx context.Context, i *contentFetch, why domain.ContentFailure) {
	bundle, err := h.opts.Answers.Fail(ctx, i.key.actor, i.bundle.ID, why)
	if err != nil {
		h.fetches.finishFetch(i, i.bundle, asConflict(err))
		return
	}
	if !bundle.LacksContent() {
		h.fetches.finishFetch(i, bundle, nil)
		return
	}
	attrs := []slog.Attr{
		slog.String("origin", bundle.Cabinet.Origin.String()), slog.String("actor", i.key.actor.String()),
		slog.String("bundle_id", bundle.ID.String()), slog.String("reason", why.Reason), slog.String("text", why.Text),
		slog.Int("failures", bundle.ContentFailure.Failures),
	}
	if bundle.ContentFailure.NeedsOperator() {
		h.opts.Logger.LogAttrs(ctx, slog.LevelError, "a domain keeps failing to produce the content of a bundle, and its actor waits; release or skip the bundle, or repair the domain", attrs...)
	} else {
		h.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "a domain has not produced the content of a bundle", attrs...)
	}
	h.fetches.finishFetch(i, bundle, domain.Errorf(domain.Unavailable, "%w", &UnansweredError{bundle}))
}
