package cosmos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A rig is a store that any number of nodes share, with a line to it that breaks
// on demand.
type rig struct {
	t       testing.TB
	engine  *embedded.Engine
	line    *faulty.Transport
	content repository.Content
}

func newRig(t testing.TB, opts embedded.Options) *rig {
	t.Helper()
	engine, err := embedded.Open(opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	r := &rig{t: t, engine: engine, line: &faulty.Transport{Next: engine.Transport()}, content: memory.NewContent()}
	require.NoError(t, r.connect().Provision(t.Context()))
	return r
}

func (r *rig) connect() *Database {
	r.t.Helper()
	db, err := Connect(Connection{Endpoint: r.engine.Endpoint(), Key: r.engine.Key(), Transport: r.line})
	require.NoError(r.t, err)
	r.t.Cleanup(db.Close)
	return db
}

// node starts a node of its own. Without hints it leaves every pointer to be
// mended.
func (r *rig) node(opts Options, hints bool) *Repository {
	r.t.Helper()
	repo := New(r.connect(), r.content, opts)
	if hints {
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _ = repo.Run(ctx) })
		r.t.Cleanup(func() { cancel(); running.Wait() })
	}
	return repo
}

func (r *rig) stores(repo *Repository) repositorytest.Stores {
	return repositorytest.Stores{Events: repo, Bundles: repo, Content: r.content}
}

// seeded returns a source of randomness that repeats itself.
func seeded(seed uint64) func() uint64 {
	var mu sync.Mutex
	source := rand.New(rand.NewPCG(seed, 42))
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return source.Uint64()
	}
}

var allGroups = domain.DefaultGroups().All()

// audit reads everything that is stored of a recipient and holds it to the
// invariants, whatever the state in which the last crash has left it.
func (r *rig) audit(recipient domain.ActorID) error {
	repo := New(r.connect(), r.content, Options{})
	o := repo.begin("audit")
	ctx := context.Background()
	h, err := o.readHead(ctx, recipient)
	if err != nil {
		return err
	}
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if h.Watermark > h.Reserved {
		fault("H5: watermark %d is above the reserved %d", h.Watermark, h.Reserved)
	}
	ids := make(map[domain.EventID]cabinetName)
	sequences := make(map[domain.Sequence]domain.EventID)
	for name, last := range h.Cabinets {
		key, err := cabinetOf(recipient, name)
		if err != nil {
			return err
		}
		drawers, err := all[drawer](ctx, o.query(repo.db.cabinets, cabinetKey(key), "SELECT * FROM c WHERE c.ordinal >= @from ORDER BY c.ordinal",
			azcosmos.QueryParameter{Name: "@from", Value: 0}))
		if err != nil {
			return err
		}
		committed, previous := int64(0), domain.Sequence(0)
		for i, d := range drawers {
			if d.Ordinal != i+1 {
				fault("H8: %s: drawer %s has ordinal %d at place %d", name, d.ID, d.Ordinal, i+1)
			}
			if d.Ordinal > last.Ordinal {
				continue // of an unfinished intent
			}
			visible := d.Count
			if d.ID == last.Drawer {
				visible = last.Fill
				if d.Count < last.Fill || d.Sealed && d.Count != last.Fill {
					fault("H8: %s: the head says that drawer %s holds %d, it says %d", name, d.ID, last.Fill, d.Count)
				}
			} else if d.Ordinal == last.Ordinal && !d.Sealed {
				fault("H8: %s: drawer %s was left behind by a rollback and is not sealed", name, d.ID)
			}
			if visible == 0 {
				continue
			}
			events, err := readAll(ctx, o.readDrawer(key, slots{Drawer: d.ID, Ordinal: d.Ordinal, To: visible}))
			if err != nil {
				fault("H8: %s: drawer %s: slots 0 to %d: %w", name, d.ID, visible, err)
				continue
			}
			for _, e := range events {
				if other, twice := ids[e.ID]; twice {
					fault("H2: event %s is in %s and in %s", e.ID, other, name)
				}
				if other, twice := sequences[e.Sequence]; twice {
					fault("H3: events %s and %s have sequence number %d", other, e.ID, e.Sequence)
				}
				if e.Sequence <= previous || e.Sequence > h.Watermark {
					fault("H3, H5: %s: sequence number %d follows %d, watermark %d", name, e.Sequence, previous, h.Watermark)
				}
				ids[e.ID], sequences[e.Sequence], previous = name, e.ID, e.Sequence
				committed++
			}
		}
		if committed != last.Total || previous != last.Sequence && committed > 0 {
			fault("H1: %s: the drawers hold %d events up to %d, the head says %d up to %d", name, committed, previous, last.Total, last.Sequence)
		}
	}
	gates := make(map[domain.Group]*gate)
	if err := o.readGates(ctx, recipient, allGroups, gates); err != nil {
		return err
	}
	for group, g := range gates {
		for name, at := range g.At {
			if last := h.Cabinets[name]; at.Sequence > last.Sequence || at.Total > last.Total || at.Ordinal > last.Ordinal {
				fault("H7: gate %s is at %+v of %s, of which the head says %+v", group, at, name, last)
			}
		}
		if g.Open == "" {
			continue
		}
		var doc bundleDoc
		if _, err := o.read(ctx, repo.db.bundles, recipient.String(), g.Open, &doc); err != nil || doc.State != stateOpen {
			fault("H6: gate %s has bundle %s open, which is %q: %w", group, g.Open, doc.State, err)
		}
	}
	return errors.Join(faults...)
}

func readAll(ctx context.Context, d *drawerReader) ([]storedEvent, error) {
	var events []storedEvent
	for !d.done() {
		some, err := d.next(ctx)
		if err != nil {
			return nil, err
		}
		events = append(events, some...)
	}
	return events, nil
}
