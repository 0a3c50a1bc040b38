package domain_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/domain"
)

// A cursorModel contains a stream, a store with every version of one cursor, and two nodes. At any
// time, a node may take over the cursor, end, read an old version, or lose the reply of a write.
// After each write that the store accepts, checkRules checks the rules P1 to P9.
type cursorModel struct {
	t        *rapid.T
	now      time.Time
	policy   domain.Policy
	stream   []domain.EntryID // entries in the order in which they were appended
	versions []version
	nodes    []*modelNode
	limit    int
	order    modelOrder
	poison   domain.EntryID // entry whose call crashes the calling node
	deadlyAt int            // number of failed attempts after which the poison crashes nodes
	kills    int            // number of nodes that the poison crashed
	started  int            // number of nodes that were started

	delivered    map[domain.EntryID]int // for each entry, the number of calls that the receiver accepted
	called       map[domain.EntryID]int
	calls        int
	takeovers    int // number of times that a node ended or took over the cursor
	dueOf        map[domain.EntryID]time.Time
	listed       time.Time // time stored in the shard's entry
	requests     domain.ReplayRequests
	replayed     int                    // number of replayed deliveries
	revived      int                    // number of replayed dead letters
	firstBundled map[domain.EntryID]int // for each entry, the first version with a bundle that contains its delivery
	dequeued     int                    // number of dequeued deliveries
}

type version struct {
	standing domain.Standing
	retries  map[domain.EntryID]domain.Retry
	dead     map[domain.EntryID]domain.Retry
}

type modelNode struct {
	incarnation string
	cursor      *domain.Cursor
	ordered     bool
	before      *domain.Cursor // the previous cursor, while the cursor is loaded again
	version     int
	calls       []domain.Call
	taken       []domain.EntryID // entries that the replay of a range has taken since the last settlement
	revived     int              // number of dead letters that were replayed since the last settlement, before they were stored
}

func (m *cursorModel) currentVersion() *version { return &m.versions[len(m.versions)-1] }

func passesFilter(e domain.EntryID) bool { return e.Number%4 != 3 }

func newCursorModel(t *rapid.T) *cursorModel {
	stream := must(domain.ParseTopic("t"))
	m := &cursorModel{
		t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), limit: rapid.IntRange(1, 3).Draw(t, "limit"),
		policy:    domain.Policy{Attempts: 3, First: 10 * time.Second, Max: 15 * time.Second},
		versions:  []version{{standing: domain.Standing{Stream: stream}, retries: map[domain.EntryID]domain.Retry{}, dead: map[domain.EntryID]domain.Retry{}}},
		delivered: map[domain.EntryID]int{}, called: map[domain.EntryID]int{},
		dueOf: map[domain.EntryID]time.Time{}, firstBundled: map[domain.EntryID]int{},
		poison: domain.EntryID{Number: -1},
	}
	m.order = rapid.SampledFrom([]modelOrder{unordered, unordered, ordered, changing}).Draw(t, "order")
	if rapid.IntRange(0, 3).Draw(t, "breaker") == 0 {
		m.policy.BreakAfter, m.policy.BreakFor = 2, 20*time.Second
	}
	if rapid.IntRange(0, 3).Draw(t, "poisoned") == 0 {
		m.poison = domain.EntryID{Number: int64(rapid.IntRange(0, 2).Draw(t, "poison"))}
		m.deadlyAt = rapid.IntRange(0, 1).Draw(t, "deadly attempt")
	}
	m.nodes = []*modelNode{m.startNode()}
	if rapid.Bool().Draw(t, "two nodes") {
		m.nodes = append(m.nodes, m.startNode())
	}
	return m
}

func (m *cursorModel) startNode() *modelNode {
	m.started++
	return &modelNode{incarnation: fmt.Sprintf("incarnation-%d", m.started)}
}

// publishEntry appends an entry to the stream.
func (m *cursorModel) publishEntry() {
	e := domain.EntryID{Priority: rapid.IntRange(0, 1).Draw(m.t, "priority")}
	for _, other := range m.stream {
		if other.Priority == e.Priority {
			e.Number++
		}
	}
	m.stream = append(m.stream, e)
}

// loadVersion reads the last version or an older one. The retries may come from a different
// version.
func (m *cursorModel) loadVersion(n *modelNode) {
	last := len(m.versions) - 1
	i, j := last, last
	if rapid.IntRange(0, 2).Draw(m.t, "stale") == 0 {
		i = max(last-rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(m.t, "age"), 0)
		j = max(last-rapid.IntRange(0, 3).Draw(m.t, "age of the retries"), 0)
	}
	v := m.versions[i]
	var stored []domain.Retry
	for _, e := range slices.SortedFunc(maps.Keys(m.versions[j].retries), domain.CompareEntries) {
		stored = append(stored, m.versions[j].retries[e])
	}
	if v.standing.By != "" && v.standing.By != n.incarnation {
		m.takeovers++
	}
	isOrdered := m.isOrdered()
	c, err := domain.OpenCursor(v.standing, stored, domain.Owner{Incarnation: n.incarnation, Limit: m.limit, Policy: m.policy, IsOrdered: isOrdered}, m.now)
	if err != nil {
		require.ErrorIs(m.t, err, domain.ErrIncomplete)
		require.NotEqual(m.t, i, j, "retries of the same version are complete")
		return
	}
	n.ordered = isOrdered
	kept := n.cursor
	if kept == nil {
		kept = n.before
	}
	n.version = i
	n.cursor, n.before = nil, kept
	// No call begins before the first settlement is stored, because it makes settlements of earlier
	// owners fail.
	if !m.storeSettlement(n, c) {
		return
	}
	n.taken, n.revived = nil, 0
	if kept != nil {
		c.TakeOverCalls(kept)
	}
	n.cursor, n.before = c, nil
}

// storeSettlement stores a settlement of c. It succeeds only if c was loaded from the last stored
// version.
func (m *cursorModel) storeSettlement(n *modelNode, c *domain.Cursor) bool {
	s := c.Settlement()
	if n.version != len(m.versions)-1 {
		n.before, n.cursor = firstCursor(n.cursor, n.before), nil
		return false
	}
	if s.List && rapid.IntRange(0, 4).Draw(m.t, "not listed") == 0 {
		c.Unstored()
		return false
	}
	if s.List && (m.listed.IsZero() || s.Standing.Listed.Before(m.listed)) {
		m.listed = s.Standing.Listed // a crash after this write would leave a time in the shard's entry that is too early
		if rapid.IntRange(0, 9).Draw(m.t, "only listed") == 0 {
			c.Unstored()
			return false
		}
	}
	if rapid.IntRange(0, 9).Draw(m.t, "busy") == 0 {
		c.Unstored()
		return false
	}
	before := m.currentVersion()
	m.checkReplays(before, &s, n.taken)
	m.revived += n.revived
	n.taken, n.revived = nil, 0
	v := version{standing: s.Standing, retries: maps.Clone(before.retries), dead: maps.Clone(before.dead)}
	for _, r := range s.Create {
		require.NotContains(m.t, v.retries, r.EntryID, "a retry that is created does not exist")
		require.NotContains(m.t, v.dead, r.EntryID)
		m.putRetry(&v, r)
	}
	for _, r := range s.Replace {
		require.Contains(m.t, v.retries, r.EntryID, "a retry that is replaced exists")
		m.putRetry(&v, r)
	}
	for _, r := range s.Put {
		require.NotContains(m.t, v.retries, r.EntryID, "a retry that is put does not exist as a retry")
		if dead, ok := v.dead[r.EntryID]; ok && !r.Dead {
			require.GreaterOrEqual(m.t, len(r.History), len(dead.History), "the history of a dead letter is kept")
			m.revived++
		}
		m.putRetry(&v, r)
	}
	for _, e := range s.Delete {
		require.Contains(m.t, v.retries, e, "a retry that is deleted exists")
		delete(v.retries, e)
	}
	require.LessOrEqual(m.t, len(s.Create)+len(s.Replace)+len(s.Put)+len(s.Delete), domain.MaxConcurrency+1)
	m.versions = append(m.versions, v)
	n.version = len(m.versions) - 1
	m.checkBundle(n, before)
	m.checkRules(before)
	if rapid.IntRange(0, 7).Draw(m.t, "reply lost") == 0 {
		n.before, n.cursor = firstCursor(n.cursor, n.before), nil // the cursor has to be loaded again
		return false
	}
	c.Stored()
	return true
}

func firstCursor(a, b *domain.Cursor) *domain.Cursor {
	if a != nil {
		return a
	}
	return b
}

func (m *cursorModel) putRetry(v *version, r domain.Retry) {
	delete(v.retries, r.EntryID)
	delete(v.dead, r.EntryID)
	if r.Dead {
		v.dead[r.EntryID] = r
		return
	}
	v.retries[r.EntryID] = r
	m.dueOf[r.EntryID] = r.Due
}

// takeEntry takes the next entry of a priority.
func (m *cursorModel) takeEntry(n *modelNode, priority int) {
	at := n.cursor.Position(priority)
	for _, e := range m.stream {
		if e.Priority == priority && e.Number == at.Number && n.cursor.CanTake(priority, m.now) {
			n.cursor.Take(at, passesFilter(e))
			return
		}
	}
}

// endCaution ends the claiming of fresh deliveries if the stream contains no entry that the cursor
// may take.
func (m *cursorModel) endCaution(n *modelNode) {
	for _, e := range m.stream {
		if e.Number >= n.cursor.Position(e.Priority).Number && n.cursor.CanTake(e.Priority, m.now) {
			return
		}
	}
	n.cursor.EndCaution(m.now)
}

// beginCall begins the next call of a node.
func (m *cursorModel) beginCall(n *modelNode) {
	call, ok := n.cursor.Next(m.now)
	if !ok {
		return
	}
	if call.Claim {
		if !m.storeSettlement(n, n.cursor) || n.cursor == nil {
			return
		}
		if call, ok = n.cursor.Next(m.now); !ok {
			return
		}
		require.False(m.t, call.Claim, "the claim is stored")
	}
	if call.Attempts > 0 && n.version == len(m.versions)-1 { // for an older version, another owner may have changed the due time
		require.False(m.t, m.now.Before(m.dueOf[call.EntryID]), "P8: no attempt before its due time")
	}
	require.Less(m.t, call.Attempts, m.policy.Attempts, "P8: no attempt beyond the budget")
	for _, other := range n.calls {
		require.NotEqual(m.t, other.EntryID, call.EntryID, "a delivery is called once at a time")
	}
	if first, ok := m.firstBundled[call.EntryID]; ok {
		require.Less(m.t, n.version, first, "P15: %v is in a bundle, and is not called", call.EntryID)
	}
	m.checkOrder(n, &call)
	n.cursor.Begin(call)
	require.LessOrEqual(m.t, n.cursor.InFlight(), m.limit, "P5: calls under way, or not stored")
	m.called[call.EntryID]++
	m.calls++
	n.calls = append(n.calls, call)
	if call.EntryID == m.poison && call.Attempts >= m.deadlyAt {
		m.kills++
		require.LessOrEqual(m.t, m.kills, (domain.MaxClaims+1)*(1+len(m.requests)), "P9: a poison ends few incarnations")
		m.endNode(n)
	}
}

// endCall ends a call of a node.
func (m *cursorModel) endCall(n *modelNode) {
	if len(n.calls) == 0 {
		return
	}
	i := rapid.IntRange(0, len(n.calls)-1).Draw(m.t, "call")
	call := n.calls[i]
	n.calls = slices.Delete(n.calls, i, i+1)
	a := domain.Answer{Began: m.now, Status: 200}
	switch rapid.IntRange(0, 8).Draw(m.t, "answer") {
	case 0, 1, 2:
		a.Status = 500
	case 3:
		a.Status, a.RetryAfter = 503, 5*time.Second
	}
	if a.Status == 200 {
		m.delivered[call.EntryID]++
	}
	n.ownedCursor().Settle(domain.Outcome{Entry: call.EntryID, Attempts: call.Attempts, Replay: call.Replay, Published: m.now, Answer: a})
}

func (n *modelNode) ownedCursor() *domain.Cursor { return firstCursor(n.cursor, n.before) }

// endNode ends a node and starts another one in its place.
func (m *cursorModel) endNode(n *modelNode) {
	m.takeovers++
	for i, other := range m.nodes {
		if other == n {
			m.nodes[i] = m.startNode()
		}
	}
}

// checkRules checks the rules for the last stored version. before is the version that it replaced.
func (m *cursorModel) checkRules(before *version) {
	v := m.currentVersion()
	s := &v.standing
	n := s.Counters
	require.EqualValues(m.t, n.Triggered, n.Delivered+n.Errored+n.Cancelled+n.Expired+int64(len(s.Open)+len(heldTaken(s))+len(v.retries)), "P2")
	require.Equal(m.t, len(v.retries), s.Retries, "P6")
	require.LessOrEqual(m.t, len(s.Open), 2*m.limit+1)
	accepted := 0
	for range m.delivered {
		accepted++
	}
	require.LessOrEqual(m.t, int(n.Delivered), accepted+m.dequeued+m.replayed, "P4: delivered is what the receiver has accepted")
	require.EqualValues(m.t, len(v.dead)+m.revived, n.Errored)
	for _, e := range m.stream {
		require.LessOrEqual(m.t, v.countPlaces(e), 1, "P3: %v", e)
		if before.hasEnded(e) && !m.isReplayed(before, v, e) {
			require.True(m.t, v.hasEnded(e), "P3: %v has ended, and no write begins it again", e)
		}
	}
	for _, r := range v.dead {
		require.LessOrEqual(m.t, r.Attempts, m.called[r.EntryID], "P8: an attempt is counted once")
	}
	for _, r := range v.retries {
		require.LessOrEqual(m.t, r.Attempts, m.called[r.EntryID], "P8: an attempt is counted once")
		require.False(m.t, m.listed.IsZero() || r.Due.Before(m.listed), "P7: the entry of the shard is not too late")
		require.Less(m.t, r.Attempts, m.policy.Attempts)
	}
}

// countPlaces counts where an entry waits: among the retries, dead letters, open deliveries,
// deliveries of the bundle, or entries that were not taken yet.
func (v *version) countPlaces(e domain.EntryID) int {
	n := 0
	if _, ok := v.retries[e]; ok {
		n++
	}
	if _, ok := v.dead[e]; ok {
		n++
	}
	if e.Number >= v.standing.Position(e.Priority).Number {
		n++
	}
	for _, p := range slices.Concat(v.standing.Open, heldTaken(&v.standing)) {
		if p.EntryID == e {
			n++
		}
	}
	return n
}

func (v *version) hasEnded(e domain.EntryID) bool {
	_, dead := v.dead[e]
	return dead || v.countPlaces(e) == 0
}

// finishAll makes one node finish all deliveries. If that node ends, another node finishes them.
func (m *cursorModel) finishAll() {
	if m.takeovers > 0 {
		m.takeovers++ // the second node ends, too
	}
	if m.nodes = m.nodes[:1]; m.takeovers > 0 && rapid.Bool().Draw(m.t, "new node") {
		m.endNode(m.nodes[0])
	}
	for range 200 {
		for range 200 {
			n := m.nodes[0]
			if n.cursor == nil {
				m.loadVersion(n)
				continue
			}
			m.dequeueBundle()
			m.followRequests(n)
			for p := range domain.Priorities {
				m.takeEntry(n, p)
			}
			m.replayEntry(n)
			m.beginCall(n)
			if n != m.nodes[0] || n.cursor == nil {
				continue
			}
			for len(n.calls) > 0 {
				call := n.calls[0]
				n.calls = n.calls[1:]
				m.delivered[call.EntryID]++
				n.cursor.Settle(domain.Outcome{Entry: call.EntryID, Attempts: call.Attempts, Replay: call.Replay, Answer: domain.Answer{Began: m.now, Status: 200}})
			}
			m.endCaution(n)
			if !m.storeSettlement(n, n.cursor) {
				continue
			}
			m.now = m.now.Add(20 * time.Second)
		}
		if m.nodes[0].cursor != nil {
			break
		}
	}
	v := m.currentVersion()
	want := 0
	for _, e := range m.stream {
		require.True(m.t, v.hasEnded(e), "P1: %v ends", e)
		if passesFilter(e) {
			want++
		}
	}
	require.LessOrEqual(m.t, m.calls-int(v.standing.Counters.Attempts), m.limit*m.takeovers, "P5: calls without a trace")
	require.Equal(m.t, len(m.requests), v.standing.Followed, "every request is carried out")
	require.Nil(m.t, v.standing.Held, "the last bundle is dequeued")
	if r := v.standing.Replay; r != nil {
		require.NotEqual(m.t, domain.ReplayRunning, r.State, "every replay ends")
	}
	want += m.replayed
	require.EqualValues(m.t, want, v.standing.Counters.Triggered, "P1")
	require.EqualValues(m.t, len(m.stream)+m.replayed-want, v.standing.Counters.Filtered)
	require.EqualValues(m.t, want, v.standing.Counters.Delivered+v.standing.Counters.Errored, "P1")
	for e := range m.called {
		require.True(m.t, passesFilter(e), "the filter does not match %v", e)
	}
}

func TestACursor_KeepsItsRulesUnderRandomFaults(t *testing.T) {
	for range 8 { // each subtest runs 100 models
		rapid.Check(t, checkCursorModel)
	}
}

func checkCursorModel(t *rapid.T) {
	m := newCursorModel(t)
	for range rapid.IntRange(10, 120).Draw(t, "steps") {
		n := m.nodes[rapid.IntRange(0, len(m.nodes)-1).Draw(t, "node")]
		op := rapid.IntRange(0, 14).Draw(t, "operation")
		switch {
		case op == 0 && len(m.stream) < 12:
			m.publishEntry()
		case op == 1:
			m.now = m.now.Add(time.Duration(rapid.IntRange(1, 12).Draw(t, "seconds")) * time.Second)
		case op == 2:
			m.endCall(n)
		case op == 3 && len(m.nodes) > 1 && rapid.IntRange(0, 3).Draw(t, "really") == 0:
			m.endNode(n)
		case n.cursor == nil:
			m.loadVersion(n)
		case op == 11:
			m.requestReplay()
		case op == 14:
			m.requestBundle()
		case op == 12:
			m.followRequests(n)
		case op == 13:
			m.replayEntry(n)
		case op <= 5:
			m.takeEntry(n, rapid.IntRange(0, 1).Draw(t, "priority"))
		case op <= 7:
			m.beginCall(n)
		case op == 8:
			m.endCaution(n)
		default:
			m.storeSettlement(n, n.cursor)
		}
	}
	m.finishAll()
}
