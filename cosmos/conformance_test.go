package cosmos

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// openOn returns a function that opens a new store on an embedded engine for each test. The tails of the
// store have up to tailEvents events.
func openOn(durable, hints bool, tailEvents int) func(*testing.T, repositorytest.Options) repositorytest.Stores {
	return func(t *testing.T, o repositorytest.Options) repositorytest.Stores {
		var opts embedded.Options
		if durable {
			opts.Dir = t.TempDir()
		}
		if !hints {
			opts.Consistency = "Session" // plain reads may be stale
		}
		r := newRig(t, opts)
		options := Options{DrawerCapacity: o.DrawerCapacity, Ordering: o.Ordering, Clock: o.Clock, Retention: o.Retention, TailEvents: tailEvents, StoreTraces: true}
		if !hints {
			options.IndexBytes = 1 // too small to retain ids between two Saves
		}
		return r.stores(r.node(options, hints))
	}
}

// conformance runs the suite on a variant of the store. Under the race detector it runs only the rules
// about concurrent calls; TestConformanceWithTails, which has the default options, always runs the whole
// suite.
func conformance(t *testing.T, open func(*testing.T, repositorytest.Options) repositorytest.Stores) {
	t.Parallel()
	if raced {
		repositorytest.RunOnly(t, open, "Race")
		return
	}
	repositorytest.Run(t, open)
}

func TestConformance(t *testing.T) { conformance(t, openOn(false, true, 0)) }

func TestConformanceWithoutHintsOnASessionAccount(t *testing.T) {
	conformance(t, openOn(false, false, 0))
}

func TestConformanceWithTails(t *testing.T) {
	t.Parallel()
	repositorytest.Run(t, openOn(false, true, DefaultTailEvents))
}

func TestConformanceWithTailsWithoutHintsOnASessionAccount(t *testing.T) {
	conformance(t, openOn(false, false, 2))
}

func TestRandomOperations_MatchTheMemoryStore(t *testing.T) { compareRandomOperations(t, 0) }

func TestRandomOperationsWithTails_MatchTheMemoryStore(t *testing.T) { compareRandomOperations(t, 3) }

func compareRandomOperations(t *testing.T, tailEvents int) {
	t.Parallel()
	oracle := func(_ *testing.T, o repositorytest.Options) repositorytest.Stores {
		s := memory.New(memory.Options{DrawerCapacity: o.DrawerCapacity, Ordering: o.Ordering, Clock: o.Clock, Retention: o.Retention})
		return repositorytest.Stores{Events: s, Bundles: s, Content: s, Admin: s, Answers: s, Outbox: s, Dequeues: s, Watches: s, Finder: s, Letters: s, Sweep: s.Sweep, Lose: s.Lose}
	}
	repositorytest.Random(t, oracle, openOn(false, true, tailEvents))
}

// TestConformanceOnAnAccount runs on the account in MESSAGEHUB_TEST_COSMOS_ENDPOINT, with
// MESSAGEHUB_TEST_COSMOS_KEY or the default credential, in a database that it creates and deletes. The
// account must have Strong or Bounded staleness, because the suite expects each read to return the latest
// write. Without the variable, the test is skipped.
func TestConformanceOnAnAccount(t *testing.T) {
	endpoint := os.Getenv("MESSAGEHUB_TEST_COSMOS_ENDPOINT")
	if endpoint == "" {
		t.Log("left out: MESSAGEHUB_TEST_COSMOS_ENDPOINT names no account")
		return
	}
	c := client.Connection{
		Endpoint: endpoint,
		Key:      os.Getenv("MESSAGEHUB_TEST_COSMOS_KEY"),
		Database: fmt.Sprintf("messagehub-test-%d", time.Now().UnixNano()),
	}
	var all *azcosmos.Client
	if c.Key == "" {
		credential, err := azidentity.NewDefaultAzureCredential(nil)
		require.NoError(t, err)
		c.Credential = credential
		all, err = azcosmos.NewClient(endpoint, credential, nil)
		require.NoError(t, err)
	} else {
		key, err := azcosmos.NewKeyCredential(c.Key)
		require.NoError(t, err)
		all, err = azcosmos.NewClientWithKey(endpoint, key, nil)
		require.NoError(t, err)
	}
	db, err := client.Connect(c)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	require.NoError(t, db.Provision(t.Context(), Containers()))
	t.Cleanup(func() {
		d, err := all.NewDatabase(c.Database)
		require.NoError(t, err)
		_, err = d.Delete(context.Background(), nil)
		require.NoError(t, err)
	})
	repositorytest.Run(t, func(_ *testing.T, o repositorytest.Options) repositorytest.Stores {
		content := memory.NewContent()
		node := New(db, content, Options{DrawerCapacity: o.DrawerCapacity, Ordering: o.Ordering, Clock: o.Clock, Retention: o.Retention})
		return repositorytest.Stores{
			Events: node, Bundles: node, Content: content, Admin: node, Answers: node, Outbox: node, Dequeues: node, Watches: node, Finder: node, Letters: node, Sweep: sweepOf(node),
			Lose: func(cabinet domain.CabinetKey, first, last domain.Sequence) { losePages(t, node, cabinet, first, last) },
		}
	})
}
