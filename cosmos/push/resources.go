package push

import (
	"context"
	"net/http"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// readResource reads the document of a resource. It returns a not-found error if the document does not
// exist.
func (s *Store) readResource(ctx context.Context, c *client.Call, r domain.Resource) (*resourceDoc, error) {
	d := &resourceDoc{}
	etag, err := c.Read(ctx, s.cursors, resourceKey(r), resourceID, d)
	d.etag = etag
	return d, err
}

// confirmNoResource is called for a resource that was not found. It returns a NotFound error, or
// [client.ErrNotYetVisible] if the read was stale.
func (s *Store) confirmNoResource(ctx context.Context, c *client.Call, r domain.Resource) error {
	if s.account.ReadsMayBeStale() {
		// Unlike a read, a patch sees the current document. This patch changes nothing, and is refused if
		// the resource exists.
		ops := client.NewPatch(resourceDocument, "(IS_DEFINED(c.absent) and c.absent = true)")
		ops.AppendSet("/kind", resourceDocument.Name)
		err := c.Patch(ctx, s.cursors, resourceKey(r), resourceID, ops, &resourceDoc{})
		switch {
		case client.StatusOf(err) == http.StatusPreconditionFailed:
			return client.ErrNotYetVisible
		case err != nil && !client.IsNotFound(err):
			return err
		}
	}
	return domain.Errorf(domain.NotFound, "there is no such resource")
}

// Resource implements [repository.Resources].
func (s *Store) Resource(ctx context.Context, r domain.Resource) (*repository.Resource, error) {
	c := s.client.Begin("read resource")
	var found *repository.Resource
	err := c.Retry(ctx, func() error {
		doc, err := s.readResource(ctx, c, r)
		switch {
		case client.IsNotFound(err), err == nil && doc.IsAbsent:
			return s.confirmNoResource(ctx, c, r)
		case err == nil:
			found = doc.resource(r)
		}
		return err
	})
	return found, c.Outcome("read "+r.String(), err)
}

// A resourceChange is the state of a call that creates, replaces or deletes a resource.
type resourceChange struct {
	store    *Store
	call     *client.Call
	resource domain.Resource
	wanted   repository.ResourceVersion // version of the resource to change; empty if the resource must not exist
	writeID  string
	misses   int
	isBegun  bool   // whether the first write was sent
	base     string // write id of the document that the first write replaces
}

func (s *Store) newResourceChange(what string, r domain.Resource, wanted repository.ResourceVersion) *resourceChange {
	return &resourceChange{store: s, call: s.client.Begin(what), resource: r, wanted: wanted, writeID: s.client.NewID()}
}

// read returns the document to replace. isDone reports that an earlier attempt has replaced the document.
// If the call creates the resource, a missing document is returned as an empty one.
func (t *resourceChange) read(ctx context.Context) (doc *resourceDoc, isDone bool, err error) {
	doc, err = t.store.readResource(ctx, t.call, t.resource)
	if client.IsNotFound(err) {
		doc, err = newResourceDoc(t.resource), nil
	}
	switch {
	case err != nil:
		return nil, false, err
	case doc.WriteID == t.writeID:
		return doc, true, nil
	case doc.IsAbsent && t.wanted == "" && t.call.InDoubt() && t.isBegun && doc.WriteID != t.base:
		// An earlier attempt may have created the document, and another request may have deleted it.
		return nil, false, domain.Errorf(domain.Uncertain, "it has changed, and it is unknown which write changed it")
	case doc.IsAbsent && t.wanted == "", !doc.IsAbsent && doc.Content == string(t.wanted):
		return doc, false, nil
	case doc.IsAbsent:
		return nil, false, t.store.confirmNoResource(ctx, t.call, t.resource)
	case t.call.InDoubt() && !t.store.account.ReadsMayBeStale():
		return nil, false, domain.Errorf(domain.Uncertain, "it has changed, and it is unknown which write changed it")
	}
	return nil, false, t.store.changedError(t.call, &t.misses)
}

// write replaces the document that was read by next. event is empty for a creation.
func (t *resourceChange) write(ctx context.Context, next *resourceDoc, event domain.ChangeEvent) error {
	if !t.isBegun {
		t.isBegun, t.base = true, next.WriteID
	}
	next.WriteID = t.writeID
	_, err := t.store.replaceWatched(ctx, t.call, &watchedWrite{t.resource, event, next.etag, next, &next.watchedMark})
	return staleIfRefused(err)
}

// staleIfRefused returns [client.ErrStale] if err is the error of a refused write, and otherwise err.
func staleIfRefused(err error) error {
	if client.IsRefused(err) {
		return client.ErrStale
	}
	return err
}

// PutResource implements [repository.Resources].
func (s *Store) PutResource(ctx context.Context, r *repository.Resource) (repository.ResourceVersion, error) {
	t := s.newResourceChange("put resource", r.Resource, r.Version)
	err := t.call.Retry(ctx, func() error {
		doc, isDone, err := t.read(ctx)
		if domain.KindOf(err) == domain.NotFound && t.call.InDoubt() {
			err = domain.Errorf(domain.Uncertain, "it was deleted, and it is unknown whether it was stored before")
		}
		if err != nil || isDone {
			return err
		}
		var event domain.ChangeEvent
		if !doc.IsAbsent {
			event = domain.ResourceUpdated
		}
		doc.IsAbsent, doc.Content, doc.Body, doc.Changed = false, t.writeID, string(r.Body), toMicros(r.Changed)
		return t.write(ctx, doc, event)
	})
	return repository.ResourceVersion(t.writeID), t.call.Outcome("put "+r.Resource.String(), err)
}

// DeleteResource implements [repository.Resources].
func (s *Store) DeleteResource(ctx context.Context, r domain.Resource, version repository.ResourceVersion) error {
	t := s.newResourceChange("delete resource", r, version)
	err := t.call.Retry(ctx, func() error {
		doc, isDone, err := t.read(ctx)
		switch {
		case domain.KindOf(err) == domain.NotFound && t.call.InDoubt():
			return nil // the resource was deleted by an earlier attempt of this call, or by another request
		case err != nil || isDone:
			return err
		case !doc.IsWatched:
			// A crash after this write leaves no document of the resource.
			err = t.call.Delete(ctx, s.cursors, doc.PartitionKey, resourceID, doc.etag)
			if client.IsNotFound(err) {
				return client.ErrStale
			}
			return staleIfRefused(err)
		}
		doc.IsAbsent, doc.Content, doc.Body, doc.Changed = true, "", "", 0
		return t.write(ctx, doc, domain.ResourceDeleted)
	})
	return t.call.Outcome("delete "+r.String(), err)
}
