package cosmos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/cosmos/survey"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// surveyedTraffic makes random calls for a few mailboxes.
type surveyedTraffic struct {
	t      testing.TB
	rng    *rand.Rand
	rig    *rig
	node   *Repository
	actors []domain.ActorID
}

func newSurveyedTraffic(t testing.TB, r *rig, node *Repository, seed uint64) *surveyedTraffic {
	f := &surveyedTraffic{t: t, rng: rand.New(rand.NewPCG(seed, 7)), rig: r, node: node}
	for range 6 {
		f.actors = append(f.actors, repositorytest.NewActor())
	}
	return f
}

// step makes one random call. A call that fails because no event waits, or because no bundle is open,
// changes no document.
func (f *surveyedTraffic) step() {
	ctx, actor := context.Background(), f.actors[f.rng.IntN(len(f.actors))]
	origin := []domain.Origin{domain.TimeSeries, domain.Charges, domain.MarketRoles}[f.rng.IntN(3)]
	by := repository.AdminAction{Who: "kim", Why: "ticket 4711"}
	queues, err := f.node.Queues(ctx, actor)
	require.NoError(f.t, err)
	group := queues[f.rng.IntN(len(queues))]
	switch f.rng.IntN(12) {
	case 0, 1, 2:
		_, err = f.node.Save(ctx, actor, repositorytest.Events(1+f.rng.IntN(30), actor, repositorytest.WithOrigin(origin)))
	case 3, 4, 5:
		err = f.open(actor, group.Group)
	case 6, 7:
		if group.Open != nil {
			_, err = f.node.Acknowledge(ctx, actor, group.Open.ID)
		}
	case 8:
		if group.Open != nil && group.Open.Content == domain.Request {
			_, err = f.node.Fail(ctx, actor, group.Open.ID, domain.ContentFailure{Reason: "no-answer"})
		}
	case 9:
		if group.Open != nil && group.Open.IsUnanswered() {
			_, err = f.node.Answer(ctx, actor, group.Open.ID, "payloads/"+group.Open.ID.String(), domain.Body{Length: 1})
		}
	case 10:
		switch f.rng.IntN(3) {
		case 0:
			_, err = f.node.Replay(ctx, actor, group.Group, by)
		case 1:
			if group.Open != nil {
				err = f.node.Release(ctx, actor, group.Open.ID, by)
			}
		case 2:
			if group.Open != nil {
				err = f.node.Skip(ctx, actor, group.Open.ID, by)
			}
		}
	case 11:
		order := f.node.Freeze
		if f.rng.IntN(3) > 0 {
			order = f.node.Thaw
		}
		err = order(ctx, actor, by)
	}
	if kind := domain.KindOf(err); err != nil && kind != domain.NotFound && kind != domain.Conflict && !errors.Is(err, repository.ErrFrozen) && !errors.Is(err, repository.ErrUnanswered) {
		require.NoError(f.t, err)
	}
	waitInBubble(time.Duration(f.rng.IntN(3000)) * time.Millisecond) // simulated time
}

// open opens a bundle. Every second bundle has the content mode request, in which a domain produces its
// content.
func (f *surveyedTraffic) open(actor domain.ActorID, group domain.Group) error {
	ctx := context.Background()
	next, err := f.node.NextUnacknowledged(ctx, actor, []domain.Group{group})
	if errors.Is(err, domain.ErrNoData) || errors.Is(err, repository.ErrNoMailbox) || err == nil && next.Open != nil {
		return nil
	}
	if err != nil {
		return err
	}
	bundle, _, err := repositorytest.MakeBundle(ctx, next.Run)
	if err != nil {
		return err
	}
	bundle.ID, bundle.Content, bundle.Format = repositorytest.NewBundleID(), domain.Manifest, domain.JSON
	if f.rng.IntN(2) == 0 {
		bundle.Content = domain.Request
	}
	_, err = f.node.Add(ctx, bundle, next.Run)
	return err
}

// settleSurveys runs rounds of surveys until the surveys have read all changes.
func settleSurveys(t testing.TB, surveys ...*survey.Survey) {
	t.Helper()
	for range 40 {
		for _, s := range surveys {
			isOwner, err := s.Round(context.Background())
			if err == nil && isOwner {
				return
			}
		}
		waitInBubble(10 * time.Second) // in this time, a lease may expire
	}
	t.Fatal("no node surveys")
}

// requireLines requires that the lines of each survey match the store.
func (f *surveyedTraffic) requireLines(surveys ...*survey.Survey) {
	f.t.Helper()
	for _, s := range surveys {
		for _, actor := range f.actors {
			in, err := f.node.Inspect(context.Background(), actor)
			require.NoError(f.t, err)
			if in.Reserved > 0 {
				requireLine(f.t, s, f.node, actor)
			}
		}
	}
}

func TestSurvey_LinesEqualTheStoreOnceTrafficStops(t *testing.T) {
	for _, tails := range []int{0, 2, DefaultTailEvents} {
		for seed := range uint64(4) {
			inBubble(t, fmt.Sprintf("tail %d, seed %d", tails, seed), func(t *testing.T) {
				r := newRig(t, embedded.Options{})
				node := r.node(Options{Exclusive: true, TailEvents: tails, DrawerCapacity: 25}, false)
				f := newSurveyedTraffic(t, r, node, seed)
				s := surveyOf(r, node, survey.Options{Exclusive: true})
				for i := range 150 {
					f.step()
					switch {
					case i%10 == 0:
						settleSurveys(t, s)
					case i%37 == 0: // a sweep
						_, err := node.SweepRecipient(context.Background(), f.actors[f.rng.IntN(len(f.actors))])
						require.NoError(t, err)
					}
				}
				settleSurveys(t, s)
				f.requireLines(s)
			})
		}
	}
}

// Two nodes alternate in surveying. At random requests, the active node is paused or dies, and replies
// are lost. The other node continues from the stored state. At the end, both nodes return the right
// lines.
func TestSurvey_LosesNothingWhenNodesDieAndRepliesAreLost(t *testing.T) {
	for seed := range uint64(12) {
		inBubble(t, fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := newRig(t, embedded.Options{})
			node := r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents}, false)
			f := newSurveyedTraffic(t, r, node, seed)
			faults := append(faulty.CommonFaults(), faulty.RareFaults()...)
			var surveys []*survey.Survey
			var lines []*faulty.Transport
			add := func() {
				line := &faulty.Transport{Next: r.engine.Transport()}
				surveys = append(surveys, survey.New(r.account.ConnectBy(line), node.SurveyReader(), survey.Options{Retries: 2}))
				lines = append(lines, line)
			}
			add()
			add()
			for range 60 {
				f.step()
				f.step()
				i := f.rng.IntN(2)
				switch f.rng.IntN(6) {
				case 0: // the node dies, and another process replaces it
					lines[i].CrashAt(1+f.rng.IntN(12), faults[f.rng.IntN(len(faults))])
					_, _ = surveys[i].Round(context.Background())
					add()
					surveys[i], lines[i] = surveys[2], lines[2]
					surveys, lines = surveys[:2], lines[:2]
				case 1: // the node is paused until the other node has the lease
					settleSurveys(t, surveys[1-i])
				case 2:
					fault := faults[f.rng.IntN(len(faults))]
					lines[i].Break(func(_ int, _ *http.Request) faulty.Fault {
						if f.rng.IntN(4) == 0 {
							return fault
						}
						return faulty.None
					})
					_, _ = surveys[i].Round(context.Background())
					lines[i].Break(nil)
				default:
					_, _ = surveys[i].Round(context.Background())
				}
			}
			settleSurveys(t, surveys...)
			waitInBubble(time.Minute) // in this time, a round stores the changes
			settleSurveys(t, surveys...)
			waitInBubble(time.Minute)
			f.requireLines(surveys...)
		})
	}
}

// A survey reads the change-feed tokens before it first reads all mailboxes. So the feeds return the
// changes that it misses in that time.
func TestSurvey_SeesWhatChangesDuringItsFirstWalk(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		r := newRig(t, embedded.Options{})
		node := r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents}, false)
		ctx := context.Background()
		var actors []domain.ActorID
		for range 30 {
			actor := repositorytest.NewActor()
			actors = append(actors, actor)
			_, err := node.Save(ctx, actor, repositorytest.Events(2, actor))
			require.NoError(t, err)
		}
		waitInBubble(time.Hour)
		line := &faulty.Transport{Next: r.engine.Transport()}
		s := survey.New(r.account.ConnectBy(line), node.SurveyReader(), survey.Options{})
		line.Break(func(call int, _ *http.Request) faulty.Fault {
			if call%2 == 0 && call < 60 { // make changes between the requests of the walk, and a few after the walk
				actor := actors[call/2%len(actors)]
				_, err := node.Save(ctx, actor, repositorytest.Events(1, actor))
				require.NoError(t, err)
				_, err = repositorytest.Peek(ctx, r.stores(node), actor, allGroups, domain.BundleID{})
				require.NoError(t, err)
			}
			return faulty.None
		})
		runRound(t, s)
		line.Break(nil)
		runRound(t, s) // this round reads the changes after the walk
		for _, actor := range actors {
			requireLine(t, s, node, actor)
		}
	})
}

func TestSurvey_ListsAMailboxThatCannotBeRead(t *testing.T) {
	r := newRig(t, embedded.Options{})
	node := r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents}, false)
	ctx := context.Background()
	sound, damaged, newer, noGate := repositorytest.NewActor(), repositorytest.NewActor(), repositorytest.NewActor(), repositorytest.NewActor()
	for _, actor := range []domain.ActorID{sound, damaged, newer, noGate} {
		_, err := node.Save(ctx, actor, repositorytest.Events(2, actor))
		require.NoError(t, err)
		_, err = repositorytest.Peek(ctx, r.stores(node), actor, allGroups, domain.BundleID{})
		require.NoError(t, err)
	}
	c := node.beginCall("test")
	put := func(actor domain.ActorID, text string) {
		require.NoError(t, c.DeleteIfExists(ctx, node.db.catalog, headKey(actor), headID))
		_, err := c.Put(ctx, node.db.catalog, headKey(actor), headID, "", rawDocument(text))
		require.NoError(t, err)
	}
	state := func(s *survey.Survey, actor domain.ActorID) (domain.MailboxState, string) {
		lines, err := s.Surveyed(ctx)
		require.NoError(t, err)
		m, ok := lines.Mailbox(actor)
		require.True(t, ok)
		return m.State(), m.Damage
	}
	check := func(s *survey.Survey) {
		runRound(t, s)
		got, reason := state(s, damaged)
		require.Equal(t, domain.MailboxDamaged, got)
		require.Contains(t, reason, "decode document")
		got, reason = state(s, newer)
		require.Equal(t, domain.MailboxDamaged, got)
		require.Contains(t, reason, "format 99")
		got, _ = state(s, sound)
		require.Equal(t, domain.MailboxOpen, got)
	}
	s := surveyOf(r, node, survey.Options{Exclusive: true})
	runRound(t, s)
	whole, err := node.beginCall("test").readHead(ctx, damaged)
	require.NoError(t, err)
	put(damaged, `{"id":"head","partitionKey":"`+damaged.String()+`","cabinets":7}`)
	put(newer, `{"id":"head","partitionKey":"`+newer.String()+`","v":99}`)
	check(s) // s has read the document from a feed
	r2 := surveyOf(r, node, survey.Options{Exclusive: true})
	require.NoError(t, c.DeleteIfExists(ctx, node.db.cabinets, "|survey", "state"))
	check(r2) // r2 has read the document in a walk

	put(damaged, string(client.Encode(whole)))
	runRound(t, r2)
	requireLine(t, r2, node, damaged)
}

// A rawDocument is a document that is already encoded as JSON.
type rawDocument string

func (d rawDocument) MarshalJSON() ([]byte, error) { return []byte(d), nil }

// A node dies at one request of a round that stores lines, for each request, before or after the store
// applies the request. The next node returns all lines.
func TestSurvey_ContinuesAfterADeathAtAnyRequest(t *testing.T) {
	for _, fault := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
		for n, died := 1, true; died; n++ {
			inBubble(t, fmt.Sprintf("%s at request %d", fault, n), func(t *testing.T) {
				r := newRig(t, embedded.Options{})
				node := r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents}, false)
				f := newSurveyedTraffic(t, r, node, uint64(n))
				line := &faulty.Transport{Next: r.engine.Transport()}
				dying := survey.New(r.account.ConnectBy(line), node.SurveyReader(), survey.Options{Retries: -1})
				for range 10 {
					f.step()
				}
				settleSurveys(t, dying)
				for range 20 {
					f.step()
				}
				waitInBubble(time.Minute) // in this time, the next round stores the changes
				line.CrashAt(n, fault)
				_, _ = dying.Round(context.Background())
				died = line.Fired() > 0
				next := surveyOf(r, node, survey.Options{})
				settleSurveys(t, next)
				reader := surveyOf(r, node, survey.Options{})
				f.requireLines(next)
				waitInBubble(time.Minute)
				settleSurveys(t, next)
				f.requireLines(reader)
			})
		}
	}
}
