package cosmos

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestTooManyKindsOfDataAreRefusedBeforeTheyFillTheHead(t *testing.T) {
	s := newTrust(t)
	node := s.node(small, false)
	kinds := make([]domain.Event, maxCabinets)
	for i := range kinds {
		kinds[i] = repositorytest.Event(s.actor, repositorytest.WithContentType(fmt.Sprintf("kind-%d", i)))
	}
	s.save(node, 0, kinds)

	more := repositorytest.Events(3, s.actor, repositorytest.WithContentType("one kind too many"))
	_, err := node.Save(context.Background(), s.actor, more)
	require.Equal(t, domain.Invalid, domain.KindOf(err))
	require.ErrorContains(t, err, "1000 are the most")

	again := repositorytest.Events(3, s.actor, repositorytest.WithContentType("kind-7"))
	s.save(node, 0, again)
	saved, err := node.Save(context.Background(), s.actor, kinds)
	require.NoError(t, err)
	assert.Equal(t, repository.Saved{Duplicates: maxCabinets}, saved)
	require.NoError(t, s.auditMailbox(s.actor))
}

func TestAPeekAmongManyCabinetsReadsTheirCatalogOnce(t *testing.T) {
	s := newTrust(t)
	node := s.node(small, false)
	for i := range 40 {
		s.save(node, 0, repositorytest.Events(1, s.actor, repositorytest.WithContentType(fmt.Sprintf("kind-%d", i))))
	}
	before := s.engine.Requests()
	next, err := node.NextUnacknowledged(context.Background(), s.actor, allGroups)
	require.NoError(t, err)
	assert.Equal(t, int64(4), s.engine.Requests()-before, "gates, head, catalog, first page")
	assert.Equal(t, int64(40), next.Waiting)
	s.drainAll()
}

func TestTheChoiceAmongCabinets_CostsTheSameWithAnyNumberOfDrawers(t *testing.T) {
	const cabinets = 6
	s := newTrust(t)
	node := s.node(Options{DrawerCapacity: 2}, false)
	s.save(node, 0, repositorytest.Events(1, s.actor, repositorytest.WithContentType("of one drawer")))
	var units []float64
	for _, drawers := range []int{10, 90} {
		for i := range cabinets {
			s.save(node, 0, repositorytest.Events(2*drawers, s.actor, repositorytest.WithContentType(fmt.Sprintf("kind-%d", i))))
		}
		c := node.beginCall("test")
		h, err := c.readHead(t.Context(), s.actor)
		require.NoError(t, err)
		gates := make(map[domain.Group]*gate)
		require.NoError(t, c.readGates(t.Context(), s.actor, allGroups, gates))
		candidates, _, err := c.findCandidates(s.actor, gates, h)
		require.NoError(t, err)
		require.Len(t, candidates, cabinets+1)
		before := s.engine.RequestUnits()
		require.NoError(t, c.readEntries(t.Context(), candidates))
		units = append(units, s.engine.RequestUnits()-before)
		for _, cand := range candidates {
			require.NotNil(t, cand.entry, cand.cabinet.ContentType)
			require.Equal(t, 1, cand.entry.Ordinal)
		}
	}
	require.InEpsilon(t, units[0], units[1], 0.02)
	require.Less(t, units[1], 3.1*(cabinets+1))
}

func TestTheMemoryForReceivedIdsIsBounded(t *testing.T) {
	s := newTrust(t)
	options := small
	options.IndexBytes = 20_000
	node := s.node(options, false)
	for range 50 {
		actor := repositorytest.NewActor()
		_, err := node.Save(context.Background(), actor, repositorytest.Events(3, actor))
		require.NoError(t, err)
	}
	assert.LessOrEqual(t, len(node.writers.of), 8, "of 50 recipients")
	assert.LessOrEqual(t, node.writers.bytes, options.IndexBytes)
}

func TestAnIndexAboveItsLimit_IsEvictedPartByPart(t *testing.T) {
	r := newRig(t, embedded.Options{})
	node := r.node(Options{IndexBytes: 40_000, Exclusive: true}, false)
	actor := repositorytest.NewActor()
	for range 3 {
		_, err := node.Save(t.Context(), actor, repositorytest.Events(200, actor))
		require.NoError(t, err)
	}
	assert.LessOrEqual(t, node.writers.bytes, node.opts.IndexBytes/2, "one recipient takes up to a half")
	before := r.engine.Requests()
	_, err := node.Save(t.Context(), actor, repositorytest.Events(1, actor))
	require.NoError(t, err)
	assert.EqualValues(t, 4, r.engine.Requests()-before, "nothing is read again")
}

func TestASaveThatIsRefusedBeforeItsIntent_LeavesNoPayloads(t *testing.T) {
	for name, refuse := range map[string]func(*rig, *namedContent){
		"a payload cannot be stored": func(_ *rig, c *namedContent) { c.refuses = 2 },
		"the head may not be written": func(r *rig, _ *namedContent) {
			r.line.Break(func(_ int, req *http.Request) faulty.Fault {
				if strings.HasSuffix(req.URL.Path, "/docs") && strings.Contains(req.URL.Path, "catalog") || isHeadReplacement(req) {
					return faulty.Forbidden
				}
				return faulty.None
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, embedded.Options{})
				content := &namedContent{Content: r.content, names: make(map[string]bool)}
				r.content = content
				node := r.node(Options{}, false)
				actor := repositorytest.NewActor()
				events := repositorytest.Events(1, actor, repositorytest.WithPayload(`"one"`))
				events = append(events, repositorytest.Events(1, actor, repositorytest.WithPayload(`"two"`), repositorytest.WithOrigin(domain.Charges))...)
				refuse(r, content)
				_, err := node.Save(t.Context(), actor, events)
				require.Error(t, err)
				require.Empty(t, content.names)
			})
		})
	}
}

// The Saves for a busy recipient overlap, so its writer is never idle. The memory for ids must stay below
// the limit.
func TestTheMemoryForIDsIsBoundedWhileCallersOverlap(t *testing.T) {
	r := newRig(t, embedded.Options{})
	actor := repositorytest.NewActor()
	const limit = 60_000
	node := r.node(Options{SweepEvery: -1, DrawerCapacity: 1000, IndexBytes: limit}, true)
	w := node.writers.acquire(actor)
	for i := range 60 {
		_, err := node.Save(t.Context(), actor, repositorytest.Events(1000, actor))
		require.NoError(t, err)
		if i%10 == 9 {
			t.Logf("%d drawers: %d bytes", i+1, w.index.size())
		}
	}
	size := w.index.size()
	node.writers.release(w)
	t.Logf("idle: %d bytes", w.index.size())
	require.Less(t, size, limit+80*1000)
}
