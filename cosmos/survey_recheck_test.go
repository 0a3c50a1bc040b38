package cosmos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/cosmos/survey"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A deafReader ignores the results of the feeds while isDeaf is set. The lines then differ from the
// store, as after an account has lost writes.
type deafReader struct {
	survey.Reader

	isDeaf *bool
}

func (d deafReader) Recipient(container string, doc []byte) (domain.ActorID, bool) {
	if *d.isDeaf {
		return domain.ActorID{}, false
	}
	return d.Reader.Recipient(container, doc)
}

// recheckedAt returns the start time of the last recheck of all lines, and whether that recheck has
// ended.
func recheckedAt(t testing.TB, node *Repository) (began time.Time, ended bool) {
	t.Helper()
	var doc struct {
		Recheck struct {
			Began time.Time `json:"began"`
			Ended bool      `json:"ended"`
		} `json:"recheck"`
	}
	_, err := node.beginCall("test").Read(context.Background(), node.db.cabinets, "|survey", "state", &doc)
	require.NoError(t, err)
	return doc.Recheck.Began, doc.Recheck.Ended
}

// recheckLines runs surveys until they have rechecked all lines, which takes more than six hours of
// simulated time.
func recheckLines(t testing.TB, node *Repository, each func(), surveys ...*survey.Survey) {
	t.Helper()
	before, _ := recheckedAt(t, node)
	waitInBubble(6 * time.Hour)
	for range 400 {
		settleSurveys(t, surveys...)
		if each != nil {
			each()
		}
		waitInBubble(20 * time.Second)
		if began, ended := recheckedAt(t, node); ended && began.After(before) {
			return
		}
	}
	t.Fatal("no recheck has ended")
}

// discardMailbox removes the documents of a mailbox.
func discardMailbox(t testing.TB, node *Repository, actor domain.ActorID) {
	t.Helper()
	ctx := context.Background()
	for _, from := range []*azcosmos.ContainerClient{node.db.catalog, node.db.bundles} {
		docs, err := client.All[struct {
			ID string `json:"id"`
		}](ctx, node.beginCall("test").Query(from, actor.String(), "SELECT c.id FROM c"))
		require.NoError(t, err)
		for _, d := range docs {
			require.NoError(t, node.beginCall("test").DeleteIfExists(ctx, from, actor.String(), d.ID))
		}
	}
}

// requireNoLine requires that the list of a survey does not contain a mailbox.
func requireNoLine(t testing.TB, s *survey.Survey, actor domain.ActorID) {
	t.Helper()
	lines, err := s.Surveyed(context.Background())
	require.NoError(t, err)
	_, ok := lines.Mailbox(actor)
	require.False(t, ok, "%s has a line", actor)
	for m := range lines.Summaries() {
		require.NotEqual(t, actor, m.Recipient)
	}
}

// The store loses writes after the survey has read them, and nodes die at random requests of the recheck.
// At the end, the lines match the store.
func TestSurvey_RecheckCorrectsLinesOfLostWrites(t *testing.T) {
	for seed := range uint64(16) {
		inBubble(t, fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := newRig(t, embedded.Options{})
			node := r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents, DrawerCapacity: 25}, false)
			f := newSurveyedTraffic(t, r, node, seed)
			isDeaf, dies := false, seed%2 == 1
			rng := rand.New(rand.NewPCG(seed, 3))
			faults := faulty.CommonFaults()
			var surveys []*survey.Survey
			var lines []*faulty.Transport
			start := func(i int) {
				lines[i] = &faulty.Transport{Next: r.engine.Transport()}
				surveys[i] = survey.New(r.account.ConnectBy(lines[i]), deafReader{node.SurveyReader(), &isDeaf}, survey.Options{Retries: 2, Units: 50})
			}
			surveys, lines = make([]*survey.Survey, 2), make([]*faulty.Transport, 2)
			start(0)
			start(1)
			for range 40 {
				f.step()
			}
			settleSurveys(t, surveys...)
			isDeaf = true
			for range 40 {
				f.step()
			}
			lost := f.actors[len(f.actors)-1]
			f.actors = f.actors[:len(f.actors)-1]
			discardMailbox(t, node, lost)
			if gate := gateID(allGroups[rng.IntN(len(allGroups))]); rng.IntN(2) == 0 { // the store loses only a gate
				_ = node.beginCall("test").DeleteIfExists(context.Background(), node.db.bundles, f.actors[0].String(), gate)
			}
			waitInBubble(10 * time.Minute)
			settleSurveys(t, surveys...)
			isDeaf = false
			recheckLines(t, node, func() {
				if !dies {
					return
				}
				i := rng.IntN(2)
				if rng.IntN(3) == 0 {
					lines[i].CrashAt(1+rng.IntN(8), faults[rng.IntN(len(faults))])
					_, _ = surveys[i].Round(context.Background())
					start(i)
				}
				if rng.IntN(3) == 0 {
					f.step()
				}
			}, surveys...)
			settleSurveys(t, surveys...)
			waitInBubble(time.Minute)
			settleSurveys(t, surveys...)
			f.requireLines(surveys...)
			requireNoLine(t, surveys[0], lost)
		})
	}
}

// Queries and reads of a recheck return old versions of changing documents. The recheck must not replace
// lines that are based on newer versions from the feeds.
func TestSurvey_RecheckKeepsWhatTheFeedsHaveReturned(t *testing.T) {
	for seed := range uint64(4) {
		inBubble(t, fmt.Sprint("seed ", seed), func(t *testing.T) {
			lag := func() time.Duration { return 0 }
			r := newRig(t, embedded.Options{Lag: func() time.Duration { return lag() }})
			node := r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents}, false)
			f := newSurveyedTraffic(t, r, node, seed)
			rng := rand.New(rand.NewPCG(seed, 9))
			line := &faulty.Transport{Next: r.engine.Transport()}
			old := func() time.Duration { return time.Duration(rng.IntN(50)) * time.Second }
			line.Break(func(_ int, req *http.Request) faulty.Fault { // only the feeds return new versions
				lag = func() time.Duration { return 0 }
				if req.Header.Get("A-IM") == "" && req.Header.Get("x-ms-documentdb-partitionkey") != `["|survey"]` {
					lag = old
				}
				return faulty.None
			})
			s := survey.New(r.account.ConnectBy(line), node.SurveyReader(), survey.Options{})
			round := func() {
				isOwner, err := s.Round(context.Background())
				require.NoError(t, err)
				require.True(t, isOwner)
				lag = func() time.Duration { return 0 }
			}
			requireReadings := func() { // compare before a later change could correct a line
				for _, actor := range f.actors {
					in, err := node.Inspect(context.Background(), actor)
					require.NoError(t, err)
					if in.Reserved > 0 {
						require.Equal(t, domain.MailboxDamaged, requireReading(t, s, node, actor).State())
					}
				}
			}
			for range 20 {
				f.step()
			}
			for _, actor := range f.actors { // damage these mailboxes, because damaged mailboxes are rechecked every five minutes
				_, err := node.beginCall("test").Put(context.Background(), node.db.bundles, actor.String(), "gate.?", "", map[string]string{"id": "gate.?", "kind": gateKind, "recipient": actor.String()})
				require.NoError(t, err)
			}
			round()
			for range 6 {
				waitInBubble(6 * time.Hour)
				for range 60 {
					f.step()
					f.step()
					round()
				}
				waitInBubble(2 * time.Minute) // in this time, the survey reads the changed documents again
				round()
				round()
				requireReadings()
			}
			_, ended := recheckedAt(t, node)
			require.True(t, ended)
			round()
			requireReadings()
		})
	}
}

// A document is damaged. Within minutes after it was removed, or was repaired without a change in the
// feed, the line of its mailbox is correct.
func TestSurvey_RechecksDamagedLinesWithinMinutes(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		r := newRig(t, embedded.Options{})
		node := r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents}, false)
		ctx := context.Background()
		var all []domain.ActorID
		for range 150 { // more mailboxes than one recheck reads
			actor := repositorytest.NewActor()
			all = append(all, actor)
			_, err := node.Save(ctx, actor, repositorytest.Events(2, actor))
			require.NoError(t, err)
		}
		isDeaf := false
		s := survey.New(r.connect(), deafReader{node.SurveyReader(), &isDeaf}, survey.Options{})
		whole := make(map[domain.ActorID]string)
		c := node.beginCall("test")
		put := func(actor domain.ActorID, text string) {
			require.NoError(t, c.DeleteIfExists(ctx, node.db.catalog, headKey(actor), headID))
			_, err := c.Put(ctx, node.db.catalog, headKey(actor), headID, "", rawDocument(text))
			require.NoError(t, err)
			c = c.renewCall()
		}
		for _, actor := range all {
			h, err := c.readHead(ctx, actor)
			require.NoError(t, err)
			whole[actor] = string(client.Encode(h))
			put(actor, `{"id":"head","partitionKey":"`+actor.String()+`","cabinets":7}`)
		}
		runRound(t, s)
		lines, err := s.Surveyed(ctx)
		require.NoError(t, err)
		for _, actor := range all {
			m, ok := lines.Mailbox(actor)
			require.True(t, ok)
			require.Equal(t, domain.MailboxDamaged, m.State())
		}
		isDeaf = true
		for _, actor := range all[1:] {
			put(actor, whole[actor])
		}
		require.NoError(t, c.DeleteIfExists(ctx, node.db.catalog, headKey(all[0]), headID))
		runRound(t, s)
		isDeaf = false
		for range 12 * 6 {
			waitInBubble(10 * time.Second)
			runRound(t, s)
		}
		for _, actor := range all[1:] {
			requireLine(t, s, node, actor)
		}
		requireNoLine(t, s, all[0])
	})
}

// Rechecks use up to a tenth of the request units of the survey. If all lines are correct, rechecks store
// no line.
func TestSurvey_RecheckStaysWithinItsShare(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		r := newRig(t, embedded.Options{Pessimistic: true})
		node := r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents}, false)
		ctx := context.Background()
		const mailboxes = 400
		for i := range mailboxes {
			actor := repositorytest.NewActor()
			_, err := node.Save(ctx, actor, repositorytest.Events(2, actor))
			require.NoError(t, err)
			if i%2 == 0 {
				_, err = repositorytest.Peek(ctx, r.stores(node), actor, allGroups, domain.BundleID{})
				require.NoError(t, err)
			}
		}
		m := newSurveyMeter(r, node, 1) // 50 RU/s
		runRound(t, m.Survey)
		for range 10 {
			waitInBubble(10 * time.Second)
			runRound(t, m.Survey)
		}
		documents := slices.Sorted(slices.Values(surveyDocuments(t, node)))
		waitInBubble(6 * time.Hour)
		began, units := time.Now(), m.units(t)
		for ended := false; !ended; _, ended = recheckedAt(t, node) {
			waitInBubble(10 * time.Second)
			runRound(t, m.Survey)
			waitInBubble(30 * time.Second) // in this time, the position of the recheck is stored
			runRound(t, m.Survey)
		}
		took, spent := time.Since(began), m.units(t)-units
		t.Logf("%.2f RU for each mailbox, in %s", spent/mailboxes, took)
		require.LessOrEqual(t, spent/took.Seconds(), 5+3.0, "and what rounds cost that find nothing")
		require.LessOrEqual(t, spent/mailboxes, 5.0)
		require.Equal(t, documents, slices.Sorted(slices.Values(surveyDocuments(t, node))), "no line was stored again")
	})
}

// A recheck continues at the position that a previous node has stored.
func TestSurvey_AnotherNodeContinuesTheRecheck(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		r := newRig(t, embedded.Options{})
		node := r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents}, false)
		ctx := context.Background()
		var all []domain.ActorID
		for range 250 { // three pages
			actor := repositorytest.NewActor()
			all = append(all, actor)
			_, err := node.Save(ctx, actor, repositorytest.Events(2, actor))
			require.NoError(t, err)
		}
		isDeaf := false
		newSurvey := func() *survey.Survey {
			return survey.New(r.connect(), deafReader{node.SurveyReader(), &isDeaf}, survey.Options{Exclusive: true, Every: time.Second, Units: 2})
		}
		s := newSurvey()
		runRound(t, s)
		isDeaf = true
		for _, actor := range all {
			_, err := node.Save(ctx, actor, repositorytest.Events(1, actor))
			require.NoError(t, err)
		}
		waitInBubble(10 * time.Minute)
		for range 20 {
			runRound(t, s)
			waitInBubble(10 * time.Second)
		}
		isDeaf = false
		waitInBubble(6 * time.Hour)
		runRound(t, s)
		first, ended := recheckedAt(t, node)
		positions := make(map[string]bool)
		for range 2000 {
			for range 2 {
				waitInBubble(40 * time.Second)
				runRound(t, s)
			}
			began, isEnded := recheckedAt(t, node)
			if ended = isEnded && began.After(first); ended {
				break
			}
			var doc struct {
				Recheck json.RawMessage `json:"recheck"`
			}
			_, err := node.beginCall("test").Read(ctx, node.db.cabinets, "|survey", "state", &doc)
			require.NoError(t, err)
			positions[string(doc.Recheck)] = true
			s = newSurvey() // another process replaces the dead one
			waitInBubble(2 * time.Minute)
			runRound(t, s)
			waitInBubble(2 * time.Minute)
			runRound(t, s)
		}
		require.True(t, ended)
		require.Greater(t, len(positions), 2)
		for _, actor := range all {
			requireLine(t, s, node, actor)
		}
	})
}
