package cosmos

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// manyGroups returns the default groups and n additional groups.
func manyGroups(t *testing.T, n int) domain.Groups {
	t.Helper()
	groups := domain.DefaultGroups()
	for i := range n {
		origin, err := domain.ParseOrigin(fmt.Sprintf("Origin%d", i))
		require.NoError(t, err)
		groups = groups.With(origin, domain.Group{})
	}
	return groups
}

// countDocuments returns the number of documents of a recipient in all containers.
func (r *rig) countDocuments(recipient domain.ActorID) int {
	r.t.Helper()
	c := r.node(Options{}, false).beginCall("test")
	n := 0
	for _, container := range []string{bundlesContainer, catalogContainer} {
		handle, err := r.connect().Container(container)
		require.NoError(r.t, err)
		docs, err := client.All[struct{ ID string }](r.t.Context(), c.Query(handle, recipient.String(), "SELECT c.id FROM c"))
		require.NoError(r.t, err)
		n += len(docs)
	}
	return n
}

// absentCalls are calls about a bundle or an actor that does not exist.
var absentCalls = map[string]func(context.Context, *Repository, domain.ActorID) error{
	"Dequeue": func(ctx context.Context, r *Repository, actor domain.ActorID) error {
		_, err := r.Acknowledge(ctx, actor, repositorytest.NewBundleID())
		return err
	},
	"GET of a bundle": func(ctx context.Context, r *Repository, actor domain.ActorID) error {
		_, _, err := r.Find(ctx, actor, repositorytest.NewBundleID())
		return err
	},
	"Release": func(ctx context.Context, r *Repository, actor domain.ActorID) error {
		return r.Release(ctx, actor, repositorytest.NewBundleID(), becauseOfATest)
	},
	"Skip": func(ctx context.Context, r *Repository, actor domain.ActorID) error {
		return r.Skip(ctx, actor, repositorytest.NewBundleID(), becauseOfATest)
	},
	"Replay": func(ctx context.Context, r *Repository, actor domain.ActorID) error {
		_, err := r.Replay(ctx, actor, allGroups[0], becauseOfATest)
		return err
	},
	"Freeze": func(ctx context.Context, r *Repository, actor domain.ActorID) error {
		return r.Freeze(ctx, actor, becauseOfATest)
	},
	"Thaw": func(ctx context.Context, r *Repository, actor domain.ActorID) error {
		return r.Thaw(ctx, actor, becauseOfATest)
	},
}

func TestCallForAnAbsentActor_WritesNothingAndIsCheap(t *testing.T) {
	for _, consistency := range []string{"Session", "Strong"} {
		for _, more := range []int{0, 150} { // 150 groups need several batches, because a batch has at most 100 documents
			s := newRig(t, embedded.Options{Consistency: consistency})
			node := s.node(Options{Groups: manyGroups(t, more)}, false)
			for name, do := range absentCalls {
				actor := repositorytest.NewActor()
				requests, before := s.engine.Requests(), s.engine.RequestUnits()
				err := do(t.Context(), node, actor)
				units := s.engine.RequestUnits() - before
				what := fmt.Sprintf("%s, %s, %d groups", name, consistency, more+len(allGroups))
				t.Logf("%s: %.1f RU, %d requests", what, units, s.engine.Requests()-requests)
				assert.Equal(t, domain.NotFound, domain.KindOf(err), "%s: %v", what, err)
				assert.LessOrEqual(t, units, 5.0, what)
				assert.Zero(t, s.countDocuments(actor), what)
			}
		}
	}
}

func TestFreeze_CoversAnyNumberOfGroups(t *testing.T) {
	for _, lost := range []int{0, 1, 2} { // lost is the number of the batch whose reply is lost; 0 means none
		s := newTrust(t)
		s.rig = newRig(t, embedded.Options{Consistency: "Session"})
		groups := manyGroups(t, 150)
		node := s.node(Options{Groups: groups}, false)
		s.save(node, 0, repositorytest.Events(1, s.actor))
		batches := 0
		s.line.Break(func(_ int, req *http.Request) faulty.Fault {
			if req.Header.Get("x-ms-cosmos-is-batch-request") != "" {
				if batches++; batches == lost {
					return faulty.ReplyLostAfter
				}
			}
			return faulty.None
		})
		require.NoError(t, node.Freeze(t.Context(), s.actor, becauseOfATest))
		for _, group := range groups.All() {
			_, err := node.NextUnacknowledged(t.Context(), s.actor, []domain.Group{group})
			require.ErrorIs(t, err, repository.ErrFrozen, "%s", group)
		}
		require.NoError(t, node.Thaw(t.Context(), s.actor, becauseOfATest))
		records, err := node.Records(t.Context(), s.actor, 10)
		require.NoError(t, err)
		require.Len(t, records, 2, "a freeze and a thaw, each recorded once")
		s.drainAll()
	}
}
