package cosmos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/cosmos/survey"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// TestMain reduces garbage collection: the tests open thousands of small stores, and would spend a fifth
// of their time in the garbage collector.
//
// The tests run on one thread. In most tests, one goroutine waits for another, and with several threads,
// waking threads would take a quarter of the time. The race detector does not need several threads, because
// it finds unordered accesses whenever they occur.
//
// TestMain also sets the number of rapid's checks, because each check makes many random calls.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	runtime.GOMAXPROCS(1)
	checks := "50"
	switch {
	case raced:
		checks = "25"
	case triesEveryCase:
		checks = "1000"
	}
	if err := flag.Set("rapid.checks", checks); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// inBubble runs a subtest in a synctest bubble, in which waiting takes no real time.
func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// A rig is a store that any number of nodes share. A test can inject faults into the connection to the
// store.
type rig struct {
	t       testing.TB
	account *accounttest.Account
	engine  *embedded.Engine
	line    *faulty.Transport
	content repository.Content
}

func newRig(t testing.TB, opts embedded.Options) *rig {
	t.Helper()
	return rigOf(t, accounttest.New(t, opts, Containers()))
}

func rigOf(t testing.TB, a *accounttest.Account) *rig {
	return &rig{t: t, account: a, engine: a.Engine, line: a.Transport, content: a.Content}
}

// rigOn returns a rig that uses an engine. The caller closes the engine.
func rigOn(t testing.TB, engine *embedded.Engine) *rig {
	t.Helper()
	return rigOf(t, accounttest.NewOnEngine(t, engine, Containers()))
}

func (r *rig) connect() *client.Database { return r.account.Connect() }

// node starts a node. If hints is false, the node writes no hints, so its Peeks repair catalog entries.
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
	return repositorytest.Stores{
		Events: repo, Bundles: repo, Content: r.content, Admin: repo, Answers: repo, Outbox: repo, Dequeues: repo, Watches: repo, Survey: surveyedNow{surveyOf(r, repo, survey.Options{Exclusive: true})}, Finder: repo, Letters: repo, Sweep: sweepOf(repo),
		Lose: func(cabinet domain.CabinetKey, first, last domain.Sequence) {
			losePages(r.t, repo, cabinet, first, last)
		},
	}
}

// A surveyedNow runs a round of the survey whenever its lines are read.
type surveyedNow struct{ survey *survey.Survey }

// Surveyed implements repository.Survey.
func (s surveyedNow) Surveyed(ctx context.Context) (repository.Surveyed, error) {
	if _, err := s.survey.Round(ctx); err != nil {
		return nil, err
	}
	return s.survey.Surveyed(ctx)
}

func sweepOf(node *Repository) func(context.Context, domain.ActorID) error {
	return func(ctx context.Context, recipient domain.ActorID) error {
		_, err := node.SweepRecipient(ctx, recipient)
		return err
	}
}

// losePages deletes the pages of a cabinet whose first sequence number is from first to last.
func losePages(t testing.TB, node *Repository, cabinet domain.CabinetKey, first, last domain.Sequence) {
	t.Helper()
	c, ctx := node.beginCall("test"), context.Background()
	drawers, err := client.All[drawer](ctx, c.Query(node.db.cabinets, cabinetKey(cabinet), "SELECT * FROM c WHERE c.ordinal > 0 ORDER BY c.ordinal"))
	require.NoError(t, err)
	for _, d := range drawers {
		pages, err := client.All[drawerPage](ctx, c.Query(node.db.cabinets, d.ID, "SELECT * FROM c WHERE c.until > 0 ORDER BY c.until"))
		require.NoError(t, err)
		for _, p := range pages {
			if first <= p.FirstSequence && p.FirstSequence <= last {
				require.NoError(t, c.DeleteIfExists(ctx, node.db.cabinets, d.ID, p.ID))
			}
		}
	}
}

// eachTail runs a test without tails, with short tails, and with tails of the default length.
func eachTail(t *testing.T, test func(t *testing.T, tails int)) {
	for _, tails := range []int{0, 2, DefaultTailEvents} {
		t.Run(fmt.Sprintf("%d events in a tail", tails), func(t *testing.T) { test(t, tails) })
	}
}

// seeded returns a random source that returns the same numbers for the same seed.
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

// auditMailbox checks the invariants of all stored documents of a recipient, which must hold after any
// crash. It ignores wrong hints, which repairMailbox corrects.
func (r *rig) auditMailbox(recipient domain.ActorID) error {
	report, err := r.checkMailbox(recipient, false)
	if err != nil {
		return err
	}
	return damageIn(report)
}

// repairMailbox repairs all hints of a recipient and requires that a second check finds nothing. Like
// auditMailbox, it returns damage as an error.
func (r *rig) repairMailbox(recipient domain.ActorID) error {
	report, err := r.checkMailbox(recipient, true)
	switch {
	case err != nil:
		return err
	case report.Found > report.Repaired:
		return fmt.Errorf("%d findings, %d repaired: %v", report.Found, report.Repaired, report.Findings)
	case report.Found == 0:
		return nil
	}
	if err := damageIn(report); err != nil {
		return err
	}
	report, err = r.checkMailbox(recipient, false)
	if err == nil && report.Found > 0 {
		err = fmt.Errorf("after the repair: %v", report.Findings)
	}
	return err
}

// checkMailbox starts a node that checks the documents of a recipient.
func (r *rig) checkMailbox(recipient domain.ActorID, repair bool) (repository.CheckReport, error) {
	repo := New(r.connect(), r.content, Options{Exclusive: true})
	return repo.Check(context.Background(), CheckOptions{Recipient: recipient, Repair: repair})
}

// damageIn returns the findings of damage in a report as one error.
func damageIn(report repository.CheckReport) error {
	var faults []error
	for i := range report.Findings {
		if f := &report.Findings[i]; f.Damage {
			faults = append(faults, errors.New(f.String()))
		}
	}
	return errors.Join(faults...)
}
