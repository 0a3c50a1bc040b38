package explorer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/watch"
)

// verifyWatches makes a new node publish the remaining changes. It returns an error unless the stream contains each
// change once, and each watch counts the changes after its start version.
func (v *endVerifier) verifyWatches(s *explorationState) error {
	m := v.newMember(context.Background(), v.db, nil, v.options, 77)
	for i := range v.Parties {
		for _, at := range s.nodes[i].sights {
			if err := v.checkWatchSight(&at); err != nil {
				return fmt.Errorf("%s: %w", v.Parties[i].Name, err)
			}
		}
	}
	if err := m.relay.Publish(m.ctx, domain.Change{Resource: v.watchedResource()}); err != nil {
		return fmt.Errorf("a fresh node publishes: %w", err)
	}
	left, err := m.changes.Changes(m.ctx, v.watchedResource())
	if err != nil || len(left) > 0 {
		return errors.Join(fmt.Errorf("%d published changes are still stored", len(left)), err)
	}
	versions, err := m.countVersions()
	if err != nil {
		return err
	}
	if err := m.checkPublished(versions); err != nil {
		return err
	}
	return v.verifyEachWatch(m, s, versions)
}

// countVersions returns the number of changes of the resource.
func (m *Member) countVersions() (int64, error) {
	if m.scenario.Objects {
		o, err := m.objects.Object(m.ctx, objectName("key"))
		return o.Changes, err
	}
	return m.push.MarkWatched(m.ctx, document, true)
}

// checkPublished returns an error unless the stream has each version once, in order.
func (m *Member) checkPublished(versions int64) error {
	found, err := m.push.Read(m.ctx, m.scenario.watchedResource().Stream(), domain.Position{}, 100)
	if err != nil || int64(len(found.Entries)) != versions {
		return errors.Join(fmt.Errorf("the resource has %d changes, but the stream has %d", versions, len(found.Entries)), err)
	}
	for i, e := range found.Entries {
		c, err := domain.ChangeOf(&e.Message, e.Position.Number)
		if err != nil || c.Version != int64(i+1) || c.Resource != m.scenario.watchedResource() {
			return errors.Join(fmt.Errorf("entry %d is version %d of %s", i, c.Version, c.Resource), err)
		}
	}
	return nil
}

// verifyEachWatch compares the stored watches with the answers of the parties.
func (v *endVerifier) verifyEachWatch(m *Member, s *explorationState, versions int64) error {
	all, err := m.push.Watches(m.ctx, recipient, 0, 100)
	if err != nil {
		return err
	}
	after := make(map[domain.WatchID]int64)
	for _, w := range all {
		after[w.ID] = w.After
		found, err := m.service.Get(m.ctx, recipient, w.ID)
		if err != nil {
			return err
		}
		if c := found.Counters; c.Triggered != versions-w.After || c.Cancelled > 0 {
			return fmt.Errorf("watch %s counts %+v, but %d changes were committed after its version %d", w.ID, c, versions, w.After)
		}
	}
	for i := range v.Parties {
		for _, at := range s.nodes[i].sights {
			if at.err != nil {
				continue
			}
			_, isStored := after[at.watch]
			switch {
			case at.what == "watched" && !isStored:
				return fmt.Errorf("%s was answered, but watch %s is not stored", v.Parties[i].Name, at.watch)
			case at.what == "unwatched" && isStored:
				return fmt.Errorf("%s was answered, but watch %s is still stored", v.Parties[i].Name, at.watch)
			}
		}
		if first := v.Parties[i].After; first > 0 {
			if err := checkWatchOrder(s.nodes[first-1].sights, s.nodes[i].sights, after, versions); err != nil {
				return fmt.Errorf("%s, after %s: %w", v.Parties[i].Name, v.Parties[first-1].Name, err)
			}
		}
	}
	return nil
}

// checkWatchOrder compares the start of a watch with the changes. The watch must be notified of each change that began
// after its creation was answered, and of no change that was answered before the creation began.
func checkWatchOrder(before, after []sight, begins map[domain.WatchID]int64, versions int64) error {
	for i := range before {
		for k := range after {
			a, b := &before[i], &after[k]
			switch {
			case a.err != nil || b.err != nil:
			case a.what == "watched" && b.what == "changed" && begins[a.watch] >= versions:
				return fmt.Errorf("the watch begins after version %d, but the change is not after that version", begins[a.watch])
			case a.what == "changed" && b.what == "watched" && begins[b.watch] < versions:
				return fmt.Errorf("the watch begins after version %d, but the change is version %d", begins[b.watch], versions)
			}
		}
	}
	return nil
}

// checkWatchSight returns an error unless the answer is permitted. Serve may fail because another node has loaded or
// retired the cursor.
func (v *endVerifier) checkWatchSight(at *sight) error {
	kind := domain.KindOf(at.err)
	isMissing := kind == domain.NotFound || errors.Is(at.err, watch.ErrChanged)
	switch {
	case at.err == nil:
		return nil
	case at.what == "served" && (kind == domain.Conflict || kind == domain.NotFound):
		return nil
	case at.what == "watched" && isMissing && strings.HasSuffix(v.Name, "-delete"):
		return nil // the resource is deleted
	case (kind == domain.Uncertain || kind == domain.Unavailable || kind == domain.Busy) && v.Lost+v.Stale+v.Crashes > 0:
		return nil
	}
	return fmt.Errorf("%s: the answer was %w", at.what, at.err)
}
