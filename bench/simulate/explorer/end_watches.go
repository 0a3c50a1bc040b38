package explorer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/watch"
)

// judgeWatches has a fresh node publish what was left, and demands that each change is in the stream
// once, and that each watch counts and takes those behind its version.
func (j *judge) judgeWatches(s *state) error {
	m := j.newMember(context.Background(), j.db, nil, j.options, 77)
	for i := range j.Parties {
		for _, at := range s.nodes[i].saw {
			if err := j.isWatchHonest(&at); err != nil {
				return fmt.Errorf("%s: %w", j.Parties[i].Name, err)
			}
		}
	}
	if err := m.relay.Publish(m.ctx, domain.Change{Resource: j.watched()}); err != nil {
		return fmt.Errorf("a fresh node publishes: %w", err)
	}
	left, err := m.changes.Changes(m.ctx, j.watched())
	if err != nil || len(left) > 0 {
		return errors.Join(fmt.Errorf("%d changes are left that were published", len(left)), err)
	}
	versions, err := m.versions()
	if err != nil {
		return err
	}
	if err := m.isPublished(versions); err != nil {
		return err
	}
	return j.judgeEachWatch(m, s, versions)
}

// versions returns how many changes the resource has.
func (m *Member) versions() (int64, error) {
	if m.scenario.Objects {
		o, err := m.objects.Object(m.ctx, objectName("key"))
		return o.Changes, err
	}
	return m.push.MarkWatched(m.ctx, document, true)
}

// isPublished demands that the stream has each version once, in order.
func (m *Member) isPublished(versions int64) error {
	found, err := m.push.Read(m.ctx, m.scenario.watched().Stream(), domain.Position{}, 100)
	if err != nil || int64(len(found.Entries)) != versions {
		return errors.Join(fmt.Errorf("the resource has %d changes, and the stream %d", versions, len(found.Entries)), err)
	}
	for i, e := range found.Entries {
		c, err := domain.ChangeOf(&e.Message, e.Position.Number)
		if err != nil || c.Version != int64(i+1) || c.Resource != m.scenario.watched() {
			return errors.Join(fmt.Errorf("entry %d is version %d of %s", i, c.Version, c.Resource), err)
		}
	}
	return nil
}

// judgeEachWatch compares the watches that are stored with what the parties were answered.
func (j *judge) judgeEachWatch(m *Member, s *state, versions int64) error {
	all, err := m.push.Watches(m.ctx, actor, 0, 100)
	if err != nil {
		return err
	}
	after := make(map[domain.WatchID]int64)
	for _, w := range all {
		after[w.ID] = w.After
		found, err := m.service.Get(m.ctx, actor, w.ID)
		if err != nil {
			return err
		}
		if c := found.Counters; c.Triggered != versions-w.After || c.Cancelled > 0 {
			return fmt.Errorf("watch %s counts %+v, and %d changes were committed behind its version %d", w.ID, c, versions, w.After)
		}
	}
	for i := range j.Parties {
		for _, at := range s.nodes[i].saw {
			if at.err != nil {
				continue
			}
			_, isStored := after[at.watch]
			switch {
			case at.what == "watched" && !isStored:
				return fmt.Errorf("%s was answered, and watch %s is not stored", j.Parties[i].Name, at.watch)
			case at.what == "unwatched" && isStored:
				return fmt.Errorf("%s was answered, and watch %s is stored", j.Parties[i].Name, at.watch)
			}
		}
		if first := j.Parties[i].After; first > 0 {
			if err := inOrder(s.nodes[first-1].saw, s.nodes[i].saw, after, versions); err != nil {
				return fmt.Errorf("%s, after %s: %w", j.Parties[i].Name, j.Parties[first-1].Name, err)
			}
		}
	}
	return nil
}

// inOrder demands that a watch is notified of a change that began after it was answered, and not of one
// that was answered before it began.
func inOrder(before, after []sight, begins map[domain.WatchID]int64, versions int64) error {
	for i := range before {
		for k := range after {
			a, b := &before[i], &after[k]
			switch {
			case a.err != nil || b.err != nil:
			case a.what == "watched" && b.what == "changed" && begins[a.watch] >= versions:
				return fmt.Errorf("the watch begins behind version %d, and the change is not behind it", begins[a.watch])
			case a.what == "changed" && b.what == "watched" && begins[b.watch] < versions:
				return fmt.Errorf("the watch begins behind version %d, and the change is version %d", begins[b.watch], versions)
			}
		}
	}
	return nil
}

// isWatchHonest reports whether a party may be answered that. A cursor that another has loaded, or retired,
// cannot be served.
func (j *judge) isWatchHonest(at *sight) error {
	kind := domain.KindOf(at.err)
	isMissing := kind == domain.NotFound || errors.Is(at.err, watch.ErrChanged)
	switch {
	case at.err == nil:
		return nil
	case at.what == "served" && (kind == domain.Conflict || kind == domain.NotFound):
		return nil
	case at.what == "watched" && isMissing && strings.HasSuffix(j.Name, "-delete"):
		return nil // it is deleted
	case (kind == domain.Uncertain || kind == domain.Unavailable || kind == domain.Busy) && j.Lost+j.Stale+j.Crashes > 0:
		return nil
	}
	return fmt.Errorf("%s: it was told %w", at.what, at.err)
}
