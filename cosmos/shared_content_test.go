package cosmos

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A sharedHub is a node with a content store that it shares with domains, and a private one. The list of
// ids of a bundle is in the shared store, and the content of the bundle in the private one, both in the
// folder of the bundle's first drawer.
type sharedHub struct {
	*keeper
	shared *memory.Content
}

func newSharing(t *testing.T, capacity int) *sharedHub {
	s := &sharedHub{&keeper{T: t, actor: repositorytest.NewActor()}, memory.NewContent()}
	*s.keeper = *newKeeper(t, capacity)
	s.node = s.rig.node(Options{DrawerCapacity: capacity, SweepEvery: -1, Clock: s.clock, Shared: s.shared}, true)
	return s
}

// openAnswered opens the next bundle with its list of ids, as the hub does, and stores the content of the
// bundle.
func (s *sharedHub) openAnswered() domain.Bundle {
	s.Helper()
	next, err := s.node.NextUnacknowledged(s.Context(), s.actor, allGroups)
	require.NoError(s, err)
	require.Nil(s, next.Open)
	b, _, err := repositorytest.MakeBundle(s.Context(), next.Run)
	require.NoError(s, err)
	b.Content, b.List = domain.Request, next.Run.Folder()+"/list-of-"+b.ID.String()
	require.NoError(s, s.shared.Put(s.Context(), b.List, strings.NewReader("ids")))
	_, err = s.node.Add(s.Context(), b, next.Run)
	require.NoError(s, err)
	object := next.Run.Folder() + "/made-for-" + b.ID.String()
	require.NoError(s, s.content.Put(s.Context(), object, strings.NewReader("content")))
	b, err = s.node.Answer(s.Context(), s.actor, b.ID, object, domain.Body{})
	require.NoError(s, err)
	return b
}

func (s *sharedHub) dequeueBundle(b domain.Bundle) {
	s.Helper()
	_, err := s.node.Acknowledge(s.Context(), s.actor, b.ID)
	require.NoError(s, err)
	s.node.AwaitHints(s.Context(), s.actor)
}

// requireShared requires that the lists and the contents of bundles exist if want is true, and do not
// exist if want is false.
func (s *sharedHub) requireShared(want bool, bundles ...domain.Bundle) {
	s.Helper()
	for _, b := range bundles {
		for store, name := range map[repository.Content]string{s.shared: b.List, s.content: b.Object} {
			r, err := store.Open(s.Context(), repository.Section{Object: name})
			if want {
				require.NoError(s, err)
				require.NoError(s, r.Close())
				continue
			}
			require.Equal(s, domain.NotFound, domain.KindOf(err), "%s: %v", name, err)
		}
	}
}

// The folder with the list of a bundle is removed with the first drawer of the bundle, even if the drawer
// has no payloads.
func TestSharedContent_IsRemovedWithTheFirstDrawerOfItsBundle(t *testing.T) {
	s := newSharing(t, 3)
	s.saveEvents(7) // fill two drawers and begin a third one
	long := s.openAnswered()
	s.dequeueBundle(long)
	s.saveEvents(3) // the bundle with these events begins in the third drawer and ends in the fourth
	short := s.openAnswered()
	s.saveEvents(1)
	for range 4 * 7 { // seven days, in steps of a quarter of a day
		s.passTime(6 * time.Hour)
		s.runSweep()
		s.requireShared(true, long, short)
	}
	s.passTime(7 * day)
	require.Equal(t, 2, s.runSweep().Drawers, "the gate stands in the third")
	s.requireShared(false, long)
	s.requireShared(true, short)
	s.dequeueBundle(short)
	s.runSweep()
	s.requireShared(true, short)
	s.passTime(7 * day)
	s.runSweep()
	s.requireShared(false, short)
	require.NoError(t, s.repairMailbox(s.actor))
}

// A Replay may reopen a bundle just before the retention ends, and the bundle may then stay open forever.
// Its list and content must exist as long as it is open.
func TestABundleThatCanBeReplayed_HasItsSharedContent(t *testing.T) {
	for _, late := range []time.Duration{time.Second, 6 * time.Hour, 3 * day} { // time between the Replay and the end of the retention
		for _, swept := range []bool{true, false} {
			s := newSharing(t, 3)
			s.saveEvents(7)
			s.dequeueBundle(s.openAnswered())
			s.runSweep() // this sweep adds a milestone
			s.passTime(day)
			s.saveEvents(7)
			b := s.openAnswered()
			s.dequeueBundle(b)
			s.runSweep()
			s.passTime(7*day - late)
			if swept {
				s.runSweep()
			}
			s.requireShared(true, b)
			again, err := s.node.Replay(t.Context(), s.actor, b.Group, becauseOfATest)
			require.NoError(t, err)
			require.Equal(t, b.Object, again.Object)
			for range 10 {
				s.passTime(10 * day)
				s.runSweep()
				s.expireDocuments()
				s.requireShared(true, b)
			}
			found, run, err := s.node.Find(t.Context(), s.actor, b.ID)
			require.NoError(t, err)
			require.Equal(t, again, found)
			require.True(t, strings.HasPrefix(b.List, run.Folder()+"/"))
			events, err := repositorytest.ReadEvents(t.Context(), run)
			require.NoError(t, err)
			require.Len(t, events, b.Count)
			s.dequeueBundle(b)
			s.runSweep()
			s.passTime(9 * day)
			s.runSweep()
			s.requireShared(false, b)
		}
	}
}

// After its first drawer was removed, a bundle cannot be reopened, even if its document still exists.
func TestABundleWithoutItsFolder_IsNotReplayed(t *testing.T) {
	s := newSharing(t, 3)
	s.saveEvents(7)
	b := s.openAnswered()
	s.dequeueBundle(b)
	_, err := s.rig.node(Options{DrawerCapacity: 3, Retention: 1, Clock: s.clock, Shared: s.shared}, false).Sweep(t.Context())
	require.NoError(t, err)
	s.passTime(time.Second)
	_, err = s.rig.node(Options{DrawerCapacity: 3, Retention: 1, Clock: s.clock, Shared: s.shared}, false).Sweep(t.Context())
	require.NoError(t, err)
	s.requireShared(false, b)
	_, err = s.node.Replay(t.Context(), s.actor, b.Group, becauseOfATest)
	require.Equal(t, domain.NotFound, domain.KindOf(err), "%v", err)
}

func TestUnlimitedRetention_KeepsSharedContent(t *testing.T) {
	s := newSharing(t, 3)
	s.node = s.rig.node(Options{DrawerCapacity: 3, Retention: -1, Clock: s.clock, Shared: s.shared}, true)
	s.saveEvents(7)
	b := s.openAnswered()
	s.dequeueBundle(b)
	s.passTime(1000 * day)
	s.runSweep()
	s.expireDocuments()
	s.requireShared(true, b)
	_, err := s.node.Replay(t.Context(), s.actor, b.Group, becauseOfATest)
	require.NoError(t, err)
}

// A lockedContent is a content store that refuses to delete folders.
type lockedContent struct{ repository.Content }

func (lockedContent) DeleteFolder(context.Context, string) error {
	return domain.Errorf(domain.Unavailable, "content: out of reach")
}

func TestASweepThatCannotReachTheSharedStore_IsCompletedByTheNext(t *testing.T) {
	s := newSharing(t, 3)
	s.saveEvents(7)
	b := s.openAnswered()
	s.dequeueBundle(b)
	s.runSweep()
	s.passTime(7 * day)
	_, err := s.rig.node(Options{DrawerCapacity: 3, Clock: s.clock, Shared: lockedContent{s.shared}}, false).Sweep(t.Context())
	require.ErrorContains(t, err, "out of reach")
	require.Equal(t, 3, s.runSweep().Drawers)
	s.requireShared(false, b)
	require.NoError(t, s.repairMailbox(s.actor))
}
