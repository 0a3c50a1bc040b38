package push

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A clock returns a time that the test sets.
type clock struct{ now time.Time }

func (c *clock) readTime() time.Time { return c.now }

// A life publishes some messages and delivers them, on a connection that may break. It repeats calls that
// fail, as the contract of the store permits.
type life struct {
	*testing.T
	*rig
	opts     Options
	clock    *clock
	stream   domain.StreamName
	id       domain.CursorID
	messages []domain.Message
	policy   domain.Policy

	owner     domain.Owner
	cursor    *domain.Cursor
	version   repository.CursorVersion
	lives     *int
	calls     *int
	failed    map[domain.EntryID]int // number of failed calls for each entry
	succeeded map[domain.EntryID]int // number of successful calls for each entry
}

// newLife returns a life of n messages. If allIDs is set, every message has an id; otherwise every second
// one.
func newLife(t *testing.T, r *rig, n int, allIDs bool, opts Options) *life {
	l := &life{
		T: t, rig: r, stream: repositorytest.NewStream(), id: repositorytest.NewCursorID(),
		messages: repositorytest.Messages(n), clock: &clock{time.Now().UTC().Truncate(time.Second)},
		policy: domain.Policy{Attempts: 3, First: time.Minute, Max: time.Hour},
		lives:  new(int), calls: new(int),
		failed: make(map[domain.EntryID]int), succeeded: make(map[domain.EntryID]int),
	}
	for i := range l.messages {
		if allIDs || i%2 == 0 {
			l.messages[i].ID = fmt.Sprintf("id-%d", i)
		}
		l.messages[i].Payload = fmt.Appendf(nil, "%0700d", i)
	}
	opts.Clock = l.clock.readTime
	l.opts = opts
	return l
}

// publishMessages appends all messages, at most three in each call.
func (l *life) publishMessages(s *Store) error {
	for i := 0; i < len(l.messages); i += 3 {
		if _, err := s.Append(context.Background(), l.stream, l.messages[i:min(i+3, len(l.messages))]); err != nil {
			return err
		}
	}
	return nil
}

func (l *life) createCursor(s *Store) error {
	err := s.Create(context.Background(), l.id, domain.Standing{Stream: l.stream})
	if domain.KindOf(err) == domain.Conflict {
		return nil
	}
	return err
}

// loadCursor loads the cursor, unless this node has loaded it already.
func (l *life) loadCursor(s *Store) (err error) {
	if l.version != "" {
		return nil
	}
	before := l.cursor
	cursor, version, err := s.Load(context.Background(), l.id, l.owner, l.clock.readTime)
	if err != nil {
		return err
	}
	if before != nil {
		cursor.TakeOverCalls(before)
	}
	l.cursor, l.version = cursor, version
	return nil
}

func (l *life) storeSettlement(s *Store) error {
	l.cursor.Mark(l.clock.now)
	version, err := s.Settle(context.Background(), l.id, l.version, l.cursor.Settlement())
	switch domain.KindOf(err) {
	case domain.Busy, domain.Unavailable:
		l.cursor.Unstored()
		return err
	default:
	}
	if err != nil {
		l.cursor.Unstored()
		l.version = "" // forget the version, so that the next step loads the cursor again
		return err
	}
	l.cursor.Stored()
	l.version = version
	return nil
}

// runStep reads the waiting entries, calls the receiver for each, and stores the results. done reports
// that no delivery is outstanding.
func (l *life) runStep(s *Store) (done bool, err error) {
	if err := l.loadCursor(s); err != nil {
		return false, err
	}
	found, err := s.Read(context.Background(), l.stream, l.cursor.Position(0), 100)
	if err != nil {
		return false, err
	}
	took := false
	for _, e := range found.Entries {
		if l.cursor.CanTake(0, l.clock.now) {
			l.cursor.Take(e.Position, true)
			took = true
		}
	}
	for {
		call, ok := l.cursor.Next(l.clock.now)
		if !ok {
			break
		}
		if call.Claim {
			if err := l.storeSettlement(s); err != nil {
				return false, err
			}
			continue
		}
		l.cursor.Begin(call)
		*l.calls++
		a := domain.Answer{Began: l.clock.now, Status: 200}
		if n := call.Number % 4; n == 1 && call.Attempts == 0 || n == 3 { // entries whose number has remainder 3 become dead letters
			a.Status = 500
			l.failed[call.EntryID]++
		} else {
			l.succeeded[call.EntryID]++
		}
		l.cursor.Settle(domain.Outcome{Entry: call.EntryID, Attempts: call.Attempts, Published: l.clock.now, Answer: a})
	}
	if l.cursor.InFlight() > 0 { // the results of some calls are not stored yet
		return false, l.storeSettlement(s)
	}
	if !took {
		l.cursor.EndCaution(l.clock.now)
	}
	if len(found.Entries) > 0 {
		return false, nil
	}
	standing := l.cursor.Standing()
	if standing.Outstanding() == 0 {
		return true, nil
	}
	l.clock.now = l.clock.now.Add(3 * time.Minute)
	return false, nil
}

// startStore starts a node with a new incarnation and an empty memory.
func (l *life) startStore(retries int) *Store {
	*l.lives++
	l.owner = domain.Owner{Incarnation: fmt.Sprintf("life-%d", *l.lives), Limit: 4, Policy: l.policy}
	l.cursor, l.version = nil, ""
	opts := l.opts
	opts.Retries = retries
	return l.node(opts)
}

// runLife runs all steps of the life on one node. again limits the number of steps that may fail.
func (l *life) runLife(s *Store, again int) error {
	for _, step := range []func(*Store) (bool, error){
		func(s *Store) (bool, error) { return true, l.publishMessages(s) },
		func(s *Store) (bool, error) { return true, l.createCursor(s) },
		l.runStep,
	} {
		for tries := 0; ; tries++ {
			require.Less(l, tries, 100)
			done, err := step(s)
			if err != nil {
				if again--; again < 0 {
					return err
				}
				continue
			}
			if done {
				break
			}
		}
	}
	return nil
}

// checkRules checks, through a new node, the rules that must hold after every step.
func (l *life) checkRules() {
	l.Helper()
	s := l.node(l.opts)
	c := s.client.Begin("test")
	doc, err := s.readCursor(context.Background(), c, l.id)
	if domain.KindOf(err) == domain.Unknown && err != nil { // the read failed because the cursor does not exist yet
		return
	}
	require.NoError(l, err)
	standing, err := doc.toStanding()
	require.NoError(l, err)
	n := standing.Counters
	require.EqualValues(l, n.Triggered, n.Delivered+n.Errored+int64(standing.Outstanding()), "P2")
	require.LessOrEqual(l, int(n.Delivered), len(l.succeeded), "P4")
	retries, err := s.readRetries(context.Background(), c, l.id, retryDocument, domain.EntryID{Number: -1}, 0)
	require.NoError(l, err)
	_, err = domain.OpenCursor(standing, retries, l.owner, l.clock.now)
	require.NoError(l, err, "P6: the retries are those of the cursor")
	entries, _, err := s.Cursors(context.Background(), repository.ShardOf(l.id))
	require.NoError(l, err)
	require.Len(l, entries, 1, "P7: the shard lists the cursor")
	for _, r := range retries {
		require.False(l, entries[0].Due.IsZero() || r.Due.Before(entries[0].Due), "P7: the entry is not too late")
	}
}

// wantEnded requires that each message was delivered or became a dead letter. If exactly is set, it also
// requires that the cursor has counted every call.
func (l *life) wantEnded(exactly bool) {
	l.Helper()
	l.checkRules()
	s := l.node(l.opts)
	all, err := repositorytest.ReadAll(context.Background(), l.stores(s), l.stream, domain.Position{})
	require.NoError(l, err)
	require.Len(l, all, len(l.messages), "P1: each message is in the stream once")
	for i := range all {
		require.Equal(l, l.messages[i].Digest(), all[i].Digest())
	}
	cursor, _, err := s.Load(context.Background(), l.id, l.owner, l.clock.readTime)
	require.NoError(l, err)
	standing := cursor.Standing()
	dead := len(l.messages) / 4
	require.Zero(l, standing.Outstanding())
	require.EqualValues(l, len(l.messages), standing.Counters.Triggered, "P1")
	require.EqualValues(l, dead, standing.Counters.Errored, "P1")
	require.EqualValues(l, len(l.messages)-dead, standing.Counters.Delivered, "P1")
	letters, err := s.DeadLetters(context.Background(), l.id, domain.EntryID{Number: -1}, 100)
	require.NoError(l, err)
	require.Len(l, letters, dead)
	require.Len(l, l.succeeded, len(l.messages)-dead)
	untraced := *l.calls - int(standing.Counters.Attempts)
	if exactly {
		require.Zero(l, untraced, "P5: no call is without a trace if no node ended")
	}
	require.LessOrEqual(l, untraced, 4*(*l.lives-1), "P5")
	require.GreaterOrEqual(l, untraced, 0, "P8: an attempt is counted once")
}
