package level

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
)

// levels are the levels of a fictitious product.
var levels = Table{
	{Since: "v1"},
	{Since: "v2", Changes: []string{"Mailboxes may have a colour."}},
	{Since: "v3", Changes: []string{"Bundles may have a colour."}},
}

// optionsUpTo returns the options of a version that knows levels up to n.
func optionsUpTo(n int) Options {
	return Options{Table: levels[:n], Version: levels[n-1].Since}
}

func isUsed(context.Context) (bool, error) { return true, nil }

// A rig is a store on which nodes of several versions work.
type rig struct {
	*testing.T
	account *accounttest.Account
}

func newRig(t *testing.T) *rig {
	return &rig{t, accounttest.New(t, embedded.Options{}, []client.ContainerSpec{{Name: containerName, PartitionKey: "/partitionKey"}})}
}

// open opens the store as a node of a version does.
func (r *rig) open(opts Options) *Store {
	r.Helper()
	s, err := Open(r.Context(), r.account.Connect(), opts)
	require.NoError(r, err)
	return s
}

// openBy opens the store with a separate connection, which a test can break.
func (r *rig) openBy(opts Options) (*Store, *faulty.Transport) {
	r.Helper()
	line := &faulty.Transport{Next: r.account.Engine.Transport()}
	s, err := Open(r.Context(), r.account.ConnectBy(line), opts)
	require.NoError(r, err)
	return s, line
}

// beforeRequest calls do before the n-th request from now is sent.
func beforeRequest(line *faulty.Transport, n int, do func()) {
	line.Break(func(call int, _ *http.Request) faulty.Fault {
		if call == n {
			do()
		}
		return faulty.None
	})
}

// openAtLevel creates the store with a level.
func (r *rig) openAtLevel(level int) { r.open(optionsUpTo(level)) }

// join starts a node, which runs until end is called or the level is higher than the node knows.
func (r *rig) join(s *Store, host string) (m *Member, end func() error) {
	r.Helper()
	m, err := s.Join(r.Context(), host)
	require.NoError(r, err)
	ctx, cancel := context.WithCancel(r.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	return m, func() error { cancel(); return <-ended }
}

func (r *rig) status(s *Store) Status {
	r.Helper()
	st, err := s.Status(r.Context())
	require.NoError(r, err)
	return st
}

// inVirtualTime runs a test in simulated time.
func inVirtualTime(t *testing.T, test func(r *rig)) {
	synctest.Test(t, func(t *testing.T) { test(newRig(t)) })
}

// passTime lets the nodes run for a duration of simulated time.
func (r *rig) passTime(d time.Duration) {
	require.True(r, client.Sleep(r.Context(), d))
	synctest.Wait()
}
